"""`gates` in gateway.yaml: the limits that hold a cutover or roll it back, and their evidence."""

from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Annotated, Literal, NamedTuple

from gateway.base.mistakes import Location, Mistakes
from gateway.base.model import PositiveInt, SectionModel, UnitText, matching
from gateway.base.overrides import VersionKey
from gateway.rollout.route_outcomes import NOTHING, RouteOutcomes

GateAction = Literal["wait", "hold", "roll_back"]


class GateOutcome(StrEnum):
    PASSED = "passed"
    EXCEEDED = "exceeded"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class GateLimits:
    """The limits of `Gates`. Shares are from 0 to 1, times in seconds; None disables a limit."""

    differences: float | None = None
    errors: float | None = None
    latency: float | None = None
    violations: float | None = None
    window: float = 300.0
    minimum: int = 100
    overdue: float = 10.0
    then: GateAction = "roll_back"
    inconclusive: GateAction = "wait"
    dry_run: bool = False


class GateEvidence(NamedTuple):
    """The evidence about a cutover since its percentage was set.

    Attributes:
        old: The outcomes on the old route.
        known: The number of requests on the old route since counting began.
        compared: The number of responses that the shadow compared.
        results: The results of the gates.
        doubt: Why the step needs more requests although it has enough; empty if it does not.
    """

    old: RouteOutcomes = NOTHING
    new: RouteOutcomes = NOTHING
    known: int = 0
    compared: int = 0
    differing: int = 0
    results: "tuple[GateResult, ...]" = ()
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class GateResult:
    """The result of one comparison of a gate.

    Attributes:
        measure: The compared measure: a key of MEASURES or VIOLATIONS, `mean` or `share`.
        new: The share, or the mean in seconds, on the new route; None without requests.
        old: The share, or the mean in seconds, on the old route; always None for differences.
        limit: The maximum difference or ratio of `new` and `old`. For differences, the maximum
            share.
        new_count: The number of requests on the new route to which the measure applies. For a mean,
            the number of all requests.
        window: The time since which requests count, in seconds.
    """

    gate: str
    measure: str
    outcome: GateOutcome
    new: float | None
    old: float | None
    limit: float
    new_count: int
    new_requests: int
    old_count: int
    old_requests: int
    window: float
    text: str

    @property
    def pressure(self) -> float | None:
        """The used fraction of the limit. Above 1, the limit is exceeded, possibly by chance."""
        if self.new is None:
            return None
        if self.old is None:
            used, allowed = self.new, self.limit
        elif self.gate == "latency":
            used, allowed = self.new / self.old - 1 if self.old else 0.0, self.limit - 1
        else:
            used, allowed = self.new - self.old, self.limit
        return max(used, 0.0) / allowed if allowed > 0 else inf if used > 0 else 0.0


MEASURES = {
    "5xx": "were answered 5xx or broke off",
    "conversion": "could not be converted",
    "401": "were answered 401",
    "403": "were answered 403",
    "404": "were answered 404",
    "429": "were answered 429",
    "other 4xx": "were answered 4xx other than 401, 403, 404 and 429",
    "3xx": "were answered 3xx",
    "overdue": "took longer than {overdue:g} s",
    "abandoned": "were abandoned by the client",
}
"""The measures of the gate `errors`, with the words that describe them in messages."""

VIOLATIONS = {"answers": "validated answers"}
"""The measure of the gate `violations`, with the words that describe its total."""


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


class Gates(SectionModel):
    """The limits for the new route of a cutover, and what happens if they are exceeded."""

    differences: Share | None = None
    """The maximum share of responses that differ, in percent, such as 0.1%. Without this limit,
    differences are not judged."""
    errors: Share | None = None
    """The amount by which the share of each kind of error may exceed its share on the old route, in
    percentage points, such as 1%. These kinds are judged separately: 5xx, 401, 403, 404, 429, other
    4xx, 3xx, messages that cannot be converted, overdue requests, and abandoned requests. The limit
    applies to all requests, to reads and writes, to each operation, and to each client. Without
    this limit, errors are not judged."""
    latency: Factor | None = None
    """The factor by which requests of an operation may take longer than on the old route, such as
    1.5x. Without this limit, latency is not judged."""
    violations: Share = "1%"
    """The amount by which the share of responses that violate the OpenAPI document of the version
    may exceed the share on the old route, in percentage points. The limit applies to all validated
    responses, to those of each operation, and to those of each client. Samples on both routes are
    validated, up to 50 reads and 50 writes a second in each process. 100% turns the validation off.
    The default is 1%."""
    window: Duration = "5m"
    """The time for which evidence is collected after the last step, in seconds, minutes or hours:
    30s, 5m, 1h. Then the evidence restarts, since the usual behaviour may change. In each step,
    all requests since its beginning count. The window is at least as long as `every`, and at most a
    day. The default is 5m."""
    minimum: PositiveInt = 100
    """The minimum number of responses for ending a step. The default is 100."""
    overdue: Duration | None = None
    """The time after which a request counts as overdue, even while it is in progress, in seconds,
    minutes or hours, such as 0.5s. It must not exceed the window. The default is 10s, or half of
    the window if that is shorter."""
    then: Literal["roll_back", "hold"] = "roll_back"
    """The action when a gate is exceeded: the cutover goes back to 0 percent (roll_back) or keeps
    its percentage (hold). The default is roll_back."""
    inconclusive: GateAction = "wait"
    """The action if a step ends with fewer responses than the minimum. With `wait`, the step
    continues until there are enough. With `hold`, the step also continues, and the cutover is
    reported as held. With `roll_back`, the cutover goes back to 0 percent. If there are enough
    responses but the result is uncertain, the cutover waits, and is held after three times the
    length of the step. The default is wait."""
    dry_run: bool = False
    """Whether the gates are judged, shown and logged without an effect on the cutover. The default
    is false."""

    def compile(
        self, key: VersionKey, at: Location, mistakes: Mistakes, *, compared: bool
    ) -> GateLimits:
        if self.differences is not None and not compared:
            text = f'no shadow compares responses; add shadow: {{ via: "..." }} to version {key[1]}'
            mistakes.add(text, *at, "differences")
        if not {"differences", "errors", "latency", "violations"} & self.model_fields_set:
            mistakes.add("have no limit; add errors, latency, violations or differences", *at)
        window, overdue = seconds_of(self.window), min(_OVERDUE, seconds_of(self.window) / 2)
        if self.overdue is not None:
            overdue = seconds_of(self.overdue)
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
            then=self.then,
            inconclusive=self.inconclusive,
            dry_run=self.dry_run,
        )


def seconds_of(duration: str) -> float:
    return float(duration[:-1]) * _UNITS[duration[-1]]
