"""`cutover` in gateway.yaml: how clients of a version move to another service, and the gates."""

from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field

from gateway.base.mistakes import Location, Mistakes
from gateway.base.model import Percent, PositiveInt, SectionModel, UnitText, matching
from gateway.base.overrides import Overrides, VersionKey
from gateway.base.request import RequestContext
from gateway.rollout.gates import GateAction, GateLimits
from gateway.rollout.route_outcomes import UNCELLED

BUCKETS = 10_000

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_DAY = 86_400
_OVERDUE = GateLimits().overdue

Share = Annotated[
    str,
    matching(r"^[0-9]{1,3}(\.[0-9]{1,6})?%$", "not a share; write one like 0.1%"),
    UnitText,
]
Factor = Annotated[
    str,
    matching(r"^[0-9]{1,4}(\.[0-9]{1,6})?x$", "not a factor; write one like 1.5x"),
    UnitText,
]
Duration = Annotated[
    str,
    matching(r"^[0-9]{1,5}(\.[0-9]{1,3})?[smh]$", "not a duration; write one like 30s, 5m or 1h"),
    UnitText,
]


class CutoverRoute(StrEnum):
    """The route that a request takes: the version's own service, or the new one."""

    OLD = "old"
    NEW = "new"


class StickyBy(StrEnum):
    """The unit that a cutover moves: all requests of a client, or each request by itself."""

    CLIENT = "client"
    REQUEST = "request"


class Gates(SectionModel):
    """How good the new route of a cutover has to be, and what happens if it is not."""

    differences: Share | None = None
    """The largest share of compared answers that may differ, in percent, such as 0.1%. Without
    it, differences are not judged."""
    errors: Share | None = None
    """How far the share of each kind of answer that a client may feel as an error may exceed that
    of the old route, in percentage points, such as 1%: 5xx, all 4xx, 401, 403, 404, 429 and the
    other 4xx each, 3xx, messages that cannot be converted, requests that are overdue, and requests
    that clients abandon; of writes alone, all 4xx and 5xx. Without it, errors are not judged."""
    latency: Factor | None = None
    """How many times as long as on the old route a request may take on average, such as 1.5x. The
    time of a request counts up to `overdue`. Without it, latency is not judged."""
    violations: Share = "1%"
    """How far the share of answers that violate the OpenAPI document of the version may exceed that
    of the old route, in percentage points: of all validated answers, and of those to writes alone.
    Samples of the answers on both routes are validated, up to 50 a second of reads, and as many of
    writes, in each process. 100% validates none. The default is 1%."""
    window: Duration = "5m"
    """The time that the gates look back, in seconds, minutes or hours: 30s, 5m, 1h. It is at most
    a day. Where less than 100 requests are in it, or less than 100 writes or requests of an
    operation, those since the percentage was set count, too. The default is 5m."""
    minimum: PositiveInt = 100
    """The number of answers that a share or a mean is judged by, and that a step needs before the
    next one begins. Until then, the missing answers count as good. The default is 100."""
    overdue: Duration | None = None
    """The time after which a request counts as overdue, though it is still under way, in seconds,
    minutes or hours, such as 0.5s. It is at most the window. The default is 10s, or half of the
    window if that is shorter."""
    then: Literal["roll_back", "hold"] = "roll_back"
    """What happens to the cutover when a gate fails: it goes back to 0 percent (roll_back) or
    stays where it is (hold). The default is roll_back."""
    inconclusive: Literal["wait", "hold", "roll_back"] = "wait"
    """What happens when a step has lasted its time and fewer answers than the minimum were seen:
    the step goes on until there are enough (wait), the cutover is reported as held until then
    (hold), or it goes back to 0 percent (roll_back). Few answers that leave doubt are waited for,
    or hold it. The default is wait."""
    dry_run: bool = False
    """Whether the gates are judged, shown and logged without any effect on the cutover. The default
    is false."""

    def compile(
        self, key: VersionKey, at: Location, mistakes: Mistakes, *, compared: bool
    ) -> GateLimits:
        """Return the limits of the gates.

        Args:
            key: The API and the label of the version.
            at: The location of the gates.
            mistakes: Collects the mistakes.
            compared: Whether a shadow compares responses, as a limit of differences needs.
        """
        if self.differences is not None and not compared:
            text = f'no shadow compares responses; add shadow: {{ via: "..." }} to version {key[1]}'
            mistakes.add(text, *at, "differences")
        if not {"differences", "errors", "latency", "violations"} & self.model_fields_set:
            mistakes.add("have no limit; add errors, latency, violations or differences", *at)
        window, overdue = _seconds(self.window), min(_OVERDUE, _seconds(self.window) / 2)
        if self.overdue is not None:
            overdue = _seconds(self.overdue)
        if not 1 <= window <= _DAY:
            mistakes.add("must be at least 1s and at most 24h", *at, "window")
        elif not 0 < overdue <= window:
            mistakes.add(f"must be above 0 and at most the window, {self.window}", *at, "overdue")
        violations = float(self.violations[:-1]) / 100
        return GateLimits(
            differences=None if self.differences is None else float(self.differences[:-1]) / 100,
            errors=None if self.errors is None else float(self.errors[:-1]) / 100,
            latency=None if self.latency is None else float(self.latency[:-1]),
            violations=None if violations >= 1 else violations,
            window=window,
            minimum=self.minimum,
            overdue=overdue,
            then=GateAction(self.then),
            inconclusive=GateAction(self.inconclusive),
            dry_run=self.dry_run,
        )


class Cutover(SectionModel):
    """A share of the version's clients is served via another version already."""

    via: str
    """The version whose service answers the clients that have moved, through the conversions
    between the two."""
    percent: Percent | None = None
    """The percentage of clients that move. A cutover has either this or steps."""
    steps: Annotated[tuple[Percent, ...], Field(min_length=1)] | None = None
    """The percentages of clients that move one step after the other, such as 1, 5, 25 and 100."""
    every: Duration = "10m"
    """The shortest time that each step lasts, in seconds, minutes or hours: 30s, 5m, 1h. The
    default is 10m."""
    sticky_by: Literal["client", "request"] = "client"
    """What moves as a whole: all requests of a client, or each request by itself. The default is
    client."""
    gates: Gates | None = None
    """The conditions that hold the cutover or roll it back. Without it, only operators do."""

    def compile(
        self, key: VersionKey, at: Location, mistakes: Mistakes, *, compared: bool
    ) -> "VersionCutover | None":
        """Return the cutover of one version; None after a mistake in its percentages.

        Args:
            key: The API and the label of the version.
            at: The location of the cutover.
            mistakes: Collects the mistakes.
            compared: Whether a shadow compares responses, as a limit of differences needs.
        """
        if (self.percent is None) == (self.steps is None):
            mistakes.add("needs either percent: 25 or steps: [1, 5, 25, 100]", *at)
            return None
        steps = self.steps or ()
        for index, (step, following) in enumerate(pairwise(steps), 1):
            if following <= step:
                text = "is not above the step before; write the percentages in ascending order"
                mistakes.add(text, *at, "steps", index)
        only_with_steps = "is only valid together with steps; remove it, or add steps"
        if "every" in self.model_fields_set and not steps:
            mistakes.add(only_with_steps, *at, "every")
        limits = None
        if self.gates is not None:
            if "inconclusive" in self.gates.model_fields_set and not steps:
                mistakes.add(only_with_steps, *at, "gates", "inconclusive")
            limits = self.gates.compile(key, (*at, "gates"), mistakes, compared=compared)
        percent = steps[-1] if self.percent is None else self.percent
        sticky, every = StickyBy(self.sticky_by), _seconds(self.every)
        return VersionCutover(key, self.via, percent, sticky, limits, steps, every)


@dataclass(frozen=True, slots=True)
class VersionCutover:
    """The cutover of one version.

    Attributes:
        key: The API and the label of the version whose clients are moved.
        via: The label of the version whose service answers the moved clients.
        percent: The percentage of clients or requests to move in the end, from 0 to 100.
        sticky: The unit that is moved.
        gates: The limits that hold the cutover or roll it back; None leaves that to the operator.
        steps: The ascending percentages of the cutover, of which the last is `percent`; without
            steps, the cutover begins at `percent`.
        every: The minimum of seconds that each step lasts.
    """

    key: VersionKey
    via: str
    percent: float
    sticky: StickyBy = StickyBy.CLIENT
    gates: GateLimits | None = None
    steps: tuple[float, ...] = ()
    every: float = 600.0

    def route_for(self, context: RequestContext) -> CutoverRoute:
        """Return the route that a request takes.

        A client without a name cannot be recognised in its next request, so it is moved at 100
        percent only.
        """
        percent = in_force(self, context.overrides)
        if percent >= 100:
            return CutoverRoute.NEW
        if percent <= 0:
            return CutoverRoute.OLD
        if self.sticky is StickyBy.REQUEST:
            return CutoverRoute.NEW if context.cutover_draw * 100 < percent else CutoverRoute.OLD
        if not context.client:
            return CutoverRoute.OLD
        below = bucket(self.key, context.client) < percent * (BUCKETS / 100)
        return CutoverRoute.NEW if below else CutoverRoute.OLD

    def cell_of(self, client: str) -> int:
        """Return the hundredth of all clients to which a client belongs; UNCELLED for none.

        A percentage moves whole cells, so the outcomes of a cell are those of the same clients,
        before and after. No client belongs to a cell where each request is moved by itself.
        """
        if self.sticky is StickyBy.REQUEST or not client:
            return UNCELLED
        return bucket(self.key, client) // (BUCKETS // 100)


def in_force(cutover: VersionCutover, overrides: Overrides) -> float:
    """Return the percentage in force: an override, or else the configured first percentage."""
    ordered = overrides.percents.get(cutover.key)
    return first(cutover) if ordered is None else ordered


def first(cutover: VersionCutover) -> float:
    """Return the percentage that a cutover begins with."""
    return cutover.steps[0] if cutover.steps else cutover.percent


def bucket(key: VersionKey, client: str) -> int:
    """Return the bucket of a client, from 0 to 9,999; it is independent for every version."""
    api, version = key
    name = f"{api}\0{version}\0{client}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(name, digest_size=8).digest()) % BUCKETS


def _seconds(duration: str) -> float:
    return float(duration[:-1]) * _UNITS[duration[-1]]
