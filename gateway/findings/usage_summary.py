"""Usage summaries: how each version is used, for the views that show all of them.

Old summaries are computed again on request, by a separate task: only the first view waits for it.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.base.overrides import VersionKey
from gateway.findings.formatting import moment_text, plural
from gateway.findings.operator import Operator
from gateway.store.state import StateView
from gateway.usage.history import HistoryQuery, Interval, Resolution

DAYS = 30
"""The number of days of a summary, which ends today."""
# How long a view waits for new summaries before it shows the former ones, in seconds.
_PATIENCE = 0.01
# Past days change only by late counts, and are read again after this many seconds.
_WHOLE = 600.0
# The minimum age of summaries that are replaced, in seconds, and as a multiple of the time to make
# them, so that they take at most a twentieth of the time.
_AGE, _TIMES = 2.0, 20.0
_RECENT = 7


@dataclass(slots=True)
class UsageSummary:
    """How one version was used in the latest DAYS.

    Attributes:
        requests: the number of requests.
        failed: the number of those that failed.
        quick: the 95th percentile of their durations in seconds; None if unknown.
        callers: the maximum number of clients of a day in the last seven days.
        trend: the number of requests of each day, the latest last.
        last: the time of the latest request, in seconds since 1970; 0 for never.
        served: the time of the latest request that was let through; 0 for never.
    """

    requests: int = 0
    failed: int = 0
    quick: float | None = None
    callers: int = 0
    trend: tuple[int, ...] = (0,) * DAYS
    last: float = 0.0
    served: float = 0.0

    @property
    def calls(self) -> str:
        """The number of callers, as the end of a sentence about a version that was called."""
        last = f"last on {moment_text(self.last)}"
        if not self.callers:
            return f"nobody has called it for {_RECENT} days, {last}"
        verb = "calls" if self.callers == 1 else "call"
        return f"up to {self.callers:,} {plural(self.callers, 'client')} a day {verb} it, {last}"


@dataclass(slots=True)
class UsageSummaries:
    """The summaries of all versions; the former ones while the store of a fleet is unreachable.

    Attributes:
        operator: the access to the gateway.
    """

    operator: Operator
    _known: tuple[StateView, Mapping[VersionKey, UsageSummary]] | None = None
    _until: float = 0.0
    _making: "asyncio.Task[None] | None" = field(default=None)
    _days: dict[VersionKey, dict[int, Interval]] = field(default_factory=dict)
    _whole_until: float = 0.0

    async def latest(self) -> tuple[StateView, Mapping[VersionKey, UsageSummary]]:
        """Return the counts and the summaries, which may be a little old.

        Raises:
            StateError: there are no former summaries, and the state cannot be read.
        """
        if self._making is None and (self._known is None or time.monotonic() >= self._until):
            self._making = asyncio.create_task(self._make())
        if self._making is not None:
            making, patience = self._making, None if self._known is None else _PATIENCE
            await asyncio.wait([making], timeout=patience)
            if making.done():
                self._making = None
                if making.exception() is not None and self._known is None:
                    making.result()
        assert self._known is not None  # it is made, or has raised
        return self._known

    async def _make(self) -> None:
        began = time.monotonic()
        view = await self.operator.state.view(clients=False)
        if self._known is not None and any(gap.replica is None for gap in view.gaps):
            # The store is unreachable: the counts of other replicas stay as they were.
            self._known = view, self._known[1]
            self._until = time.monotonic() + _AGE
            return
        days = await self._latest_days(began)
        today = Resolution.DAY.start(view.now)
        found: dict[VersionKey, UsageSummary] = {}
        for key in {*days, *view.totals.clients}:
            found[key] = one = _sums(days.get(key, {}), today)
            clients = view.totals.clients.get(key)
            if clients is not None:
                one.last, one.served = clients.last, clients.served
            await asyncio.sleep(0)  # requests have their turn
        self._known = view, found
        self._until = time.monotonic() + max(_AGE, _TIMES * (time.monotonic() - began))

    async def _latest_days(self, began: float) -> Mapping[VersionKey, Mapping[int, Interval]]:
        """Return the days of each version; read those that may have changed."""
        day = Resolution.DAY.seconds
        whole = began >= self._whole_until
        query = HistoryQuery(
            Resolution.DAY, span=(DAYS if whole else 2) * day, callers=_RECENT * day
        )
        read = await self.operator.state.history(query)
        if whole:
            self._days = {}
            # Days of this replica alone, while the store is unreachable, are read again at once.
            self._whole_until = 0.0 if read.replica is not None else began + _WHOLE
        for key, found in read.series.items():
            self._days.setdefault(key, {}).update(found)
        return self._days


def _sums(days: Mapping[int, Interval], today: int) -> UsageSummary:
    first = today - (DAYS - 1) * Resolution.DAY.seconds
    trend = [0] * DAYS
    parts, callers = [], 0
    for start, each in days.items():
        place = (start - first) // Resolution.DAY.seconds
        if 0 <= place < DAYS:
            parts.append(each)
            trend[place] = each.requests
            if place >= DAYS - _RECENT:
                callers = max(callers, each.callers.count)
    whole = Interval.total(Resolution.DAY, parts)
    return UsageSummary(whole.requests, whole.errors, whole.quantile(0.95), callers, tuple(trend))
