"""Version summaries for all views of the page: the configuration and the usage of each version."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from math import inf

from gateway.base.overrides import VersionKey
from gateway.findings.formatting import moment_text, plural
from gateway.findings.operator import Operator
from gateway.findings.retirement import WITHIN, verdict
from gateway.http.cooperative import turns
from gateway.lifecycle.brownout import VersionBrownout, WindowOccurrence
from gateway.lifecycle.lifecycle import VersionLifecycle
from gateway.rollout.cutover import VersionCutover
from gateway.rollout.shadow import VersionShadow
from gateway.routing.snapshot import Snapshot
from gateway.store.state import StateView
from gateway.usage.history import HistoryQuery, Interval, Resolution

_UPCOMING = 10


@dataclass(slots=True)
class VersionSummary:
    """The configuration of one version.

    Attributes:
        key: the API and the version's label, which is empty if the API has no versions.
        shadowed_by_newer: whether the shadow uses the service of a newer version.
    """

    key: VersionKey
    terms: VersionLifecycle | None = None
    via: str | None = None
    services: list[str] = field(default_factory=list)
    endpoints: list[str] = field(default_factory=list)
    brownout: VersionBrownout | None = None
    shadow: VersionShadow | None = None
    shadowed_by_newer: bool = False
    cutover: VersionCutover | None = None
    _upcoming: list[WindowOccurrence] = field(default_factory=list)

    def upcoming(self, now: float) -> list[WindowOccurrence]:
        """Return the next ten brownout windows, including current windows.

        All windows end no later than the version's sunset. The result is cached until the first
        window is over, since computing a schedule is slow.
        """
        end = inf if self.terms is None else self.terms.sunset
        if self.brownout is None or end <= now:
            return []
        if not self._upcoming or self._upcoming[0].ends <= now:
            found = islice(self.brownout.occurrences(now), _UPCOMING)
            self._upcoming = [
                each._replace(ends=min(each.ends, end)) for each in found if each.begins < end
            ]
        return self._upcoming


def version_summaries(rules: Snapshot) -> Mapping[VersionKey, VersionSummary]:
    """Return the summaries of all versions, grouped by API, the oldest version first."""
    found: dict[VersionKey, VersionSummary] = {}

    def version(api: str, label: object) -> VersionSummary:
        key = api, "" if label is None else str(label)
        return found.setdefault(key, VersionSummary(key))

    for endpoint in rules.router:
        for label, lifecycle in endpoint.retired.items():
            version(endpoint.api, label).terms = lifecycle
        for label, route in endpoint.routes.items():
            one = version(endpoint.api, label)
            one.endpoints.append(endpoint.template.text)
            if route.service.name not in one.services:
                one.services.append(route.service.name)
            if route.lifecycle is not None:
                one.terms = route.lifecycle
            if route.version != route.service_version:
                one.via = str(route.service_version)
            one.brownout = route.brownout or one.brownout
            if route.shadow is not None and route.version and route.shadow.route.service_version:
                one.shadow = route.shadow.rule
                one.shadowed_by_newer = route.version < route.shadow.route.service_version
            one.cutover = route.cutover.rule if route.cutover else one.cutover
    keys = ((api.name, label) for api in rules.apis for label in api.versions or ("",))
    return {key: found[key] for key in keys if key in found}


DAYS = 30
"""The number of days that a usage summary covers, including today."""
# The number of seconds that a view waits for new summaries before it shows the previous ones.
_PATIENCE = 0.01
# Past days are read again after this number of seconds. They change only if counts arrive late.
_WHOLE = 600.0
# Summaries are replaced after at least _AGE seconds, and after at least _TIMES times the time that
# it took to compute them. So computing summaries takes at most a twentieth of the time.
_AGE, _TIMES = 2.0, 20.0
_RECENT = 7


@dataclass(slots=True)
class UsageSummary:
    """The usage of one version in the last DAYS days.

    Attributes:
        quick: the 95th percentile of request durations in seconds; None if unknown.
        callers: the highest number of clients on one of the last seven days.
        trend: the number of requests on each day, the latest day last.
        last: the time of the latest request, in seconds since 1970; 0 without requests.
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
        last = f"last on {moment_text(self.last)}"
        if not self.callers:
            return f"no client has called it for {_RECENT} days, {last}"
        verb = "calls" if self.callers == 1 else "call"
        return f"up to {self.callers:,} {plural(self.callers, 'client')} a day {verb} it, {last}"


@dataclass(slots=True)
class UsageSummaries:
    """The usage summaries of all versions; the previous ones while the store is unreachable."""

    operator: Operator
    _known: tuple[StateView, Mapping[VersionKey, UsageSummary]] | None = None
    _until: float = 0.0
    _making: "asyncio.Task[None] | None" = field(default=None)
    _days: dict[VersionKey, dict[int, Interval]] = field(default_factory=dict)
    _whole_until: float = 0.0

    async def latest(self) -> tuple[StateView, Mapping[VersionKey, UsageSummary]]:
        """Return the counts and the summaries, which may be slightly old; raises StateError."""
        if self._making is None and (self._known is None or time.monotonic() >= self._until):
            self._making = asyncio.create_task(self._make())
        if self._making is not None:
            making, patience = self._making, None if self._known is None else _PATIENCE
            await asyncio.wait([making], timeout=patience)
            if making.done():
                self._making = None
                if making.exception() is not None and self._known is None:
                    making.result()
        assert self._known is not None  # the task has either set the summaries or raised
        return self._known

    async def _make(self) -> None:
        began = time.monotonic()
        view = await self.operator.state.view(clients=False)
        if self._known is not None and any(gap.replica is None for gap in view.gaps):
            # The store is unreachable, so the previous summaries are kept, which include the counts
            # of other replicas.
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
            await asyncio.sleep(0)  # let the event loop serve requests
        self._known = view, found
        self._until = time.monotonic() + max(_AGE, _TIMES * (time.monotonic() - began))

    async def _latest_days(self, began: float) -> Mapping[VersionKey, Mapping[int, Interval]]:
        day = Resolution.DAY.seconds
        whole = began >= self._whole_until
        query = HistoryQuery(
            Resolution.DAY, span=(DAYS if whole else 2) * day, callers=_RECENT * day
        )
        read = await self.operator.state.history(query)
        if whole:
            self._days = {}
            # While the store is unreachable, the days contain only this replica's counts. Then they
            # are read again at the next call.
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


# The maximum number of verdicts in one call.
_JUDGED = 50
_WITHIN_SECONDS = 30 * 86_400


async def _goes(operator: Operator, key: VersionKey) -> bool:
    view, in_force = await operator.state.view(key), operator.state.in_force
    return verdict(key, view, operator.rules, in_force, within=WITHIN).answer == "yes"


async def retirable(
    operator: Operator,
    versions: Mapping[VersionKey, VersionSummary],
    view: StateView,
    summaries: Mapping[VersionKey, UsageSummary],
) -> list[VersionKey]:
    begin = view.now - _WITHIN_SECONDS
    aside = bool(operator.state.in_force.aside(view.now))
    over = [
        key
        for key, version in versions.items()
        if version.terms is not None
        and version.terms.sunset <= view.now
        and view.totals.since <= begin
        and (aside or summaries.get(key, UsageSummary()).served < begin)
    ]
    return [key async for key in turns(islice(over, _JUDGED)) if await _goes(operator, key)]
