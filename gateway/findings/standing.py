"""Standing: how each version is used, summed up for the views that show all of them.

The sums are made anew when somebody looks and they are old. That is a task of its own, so that no
view waits for it but the first one.
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
"""The days that are summed up; today is the last of them."""
# A view waits so long for new sums, in seconds, before it goes by the former ones.
_PATIENCE = 0.01
# Days that are over change where counts come late alone: they are read so seldom, in seconds.
_WHOLE = 600.0
# Sums are so old at least before they are made anew, and so many times as old as making them took:
# it costs a twentieth of the time at most.
_AGE, _TIMES = 2.0, 20.0
_RECENT = 7


@dataclass(slots=True)
class Standing:
    """How one version was used in the latest DAYS.

    Attributes:
        requests: the number of requests.
        failed: the number of those that failed.
        quick: the time within which 95% of them ended, in seconds; None if it is not known.
        callers: the most clients of a day, of the last seven.
        trend: the number of requests of each day, the latest last.
        last: when it was called last, in seconds since 1970; 0 for never.
        served: when a request was let through last; 0 for never.
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
        """How much it is called, to follow `and`; of a version that was called."""
        last = f"last on {moment_text(self.last)}"
        if not self.callers:
            return f"nobody has called it for {_RECENT} days, {last}"
        verb = "calls" if self.callers == 1 else "call"
        return f"up to {self.callers:,} {plural(self.callers, 'client')} a day {verb} it, {last}"


@dataclass(slots=True)
class Standings:
    """Holds how all versions are used; while the store of a fleet is away, as it was before.

    Attributes:
        operator: the access to the gateway.
    """

    operator: Operator
    _known: tuple[StateView, Mapping[VersionKey, Standing]] | None = None
    _until: float = 0.0
    _making: "asyncio.Task[None] | None" = field(default=None)
    _days: dict[VersionKey, dict[int, Interval]] = field(default_factory=dict)
    _whole_until: float = 0.0

    async def latest(self) -> tuple[StateView, Mapping[VersionKey, Standing]]:
        """Return what was counted, and how each version is used; both may be a little old.

        Raises:
            StateError: nothing is known yet, and the state cannot be read.
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
            # The store is away, and with it what others counted: what was known of them stays.
            self._known = view, self._known[1]
            self._until = time.monotonic() + _AGE
            return
        days = await self._latest_days(began)
        today = Resolution.DAY.start(view.now)
        found: dict[VersionKey, Standing] = {}
        for key in {*days, *view.totals.clients}:
            found[key] = one = _sums(days.get(key, {}), today)
            clients = view.totals.clients.get(key)
            if clients is not None:
                one.last, one.served = clients.last, clients.served
            await asyncio.sleep(0)  # requests have their turn
        self._known = view, found
        self._until = time.monotonic() + max(_AGE, _TIMES * (time.monotonic() - began))

    async def _latest_days(self, began: float) -> Mapping[VersionKey, Mapping[int, Interval]]:
        """Return the days of each version, with those read again that may have changed."""
        day = Resolution.DAY.seconds
        whole = began >= self._whole_until
        query = HistoryQuery(
            Resolution.DAY, span=(DAYS if whole else 2) * day, callers=_RECENT * day
        )
        read = await self.operator.state.history(query)
        if whole:
            self._days = {}
            # Those of this replica alone, as the store is away, are read again at once.
            self._whole_until = 0.0 if read.replica is not None else began + _WHOLE
        for key, found in read.series.items():
            self._days.setdefault(key, {}).update(found)
        return self._days


def _sums(days: Mapping[int, Interval], today: int) -> Standing:
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
    return Standing(whole.requests, whole.errors, whole.quantile(0.95), callers, tuple(trend))
