"""`cutover` in gateway.yaml: how clients of a version move to another service, and the gates."""

from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field

from gateway.base.mistakes import Location, Mistakes
from gateway.base.model import Percent, PositiveInt, SectionModel, UnitText, matching
from gateway.base.overrides import VersionKey
from gateway.rollout.cutover import Cutover, StickyBy
from gateway.rollout.gates import GateAction, Gates

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_DAY = 86_400
_OVERDUE = Gates().overdue

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


class GatesConfig(SectionModel):
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


class CutoverConfig(SectionModel):
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
    gates: GatesConfig | None = None
    """The conditions that hold the cutover or roll it back. Without it, only operators do."""


def build_cutover(
    key: VersionKey, config: CutoverConfig, at: Location, mistakes: Mistakes, *, compared: bool
) -> Cutover | None:
    """Return the cutover of a version; mistakes go to `mistakes`.

    Args:
        key: the API and the version.
        config: the cutover as configured.
        at: the location of the cutover.
        mistakes: collects the mistakes.
        compared: whether a shadow compares answers, as a gate for differences needs.
    """
    if (config.percent is None) == (config.steps is None):
        mistakes.add(
            "sets how many clients are moved by exactly one of percent: 25 and"
            " steps: [1, 5, 25, 100]",
            *at,
        )
        return None
    steps = config.steps or ()
    for index, (step, following) in enumerate(pairwise(steps), 1):
        if following <= step:
            mistakes.add("is not above the step before; let them rise", *at, "steps", index)
    if "every" in config.model_fields_set and not steps:
        mistakes.add("is for steps, and there are none; remove it", *at, "every")
    if config.gates is not None:
        if "inconclusive" in config.gates.model_fields_set and not steps:
            mistakes.add(
                "is for steps, and there are none; remove it", *at, "gates", "inconclusive"
            )
        _check_gates(key, config.gates, (*at, "gates"), mistakes, compared=compared)
    return Cutover(
        key,
        config.via,
        config.percent if config.percent is not None else steps[-1],
        StickyBy(config.sticky_by),
        None if config.gates is None else _gates(config.gates),
        steps,
        _seconds(config.every),
    )


def _check_gates(
    key: VersionKey, config: GatesConfig, at: Location, mistakes: Mistakes, *, compared: bool
) -> None:
    if config.differences is not None and not compared:
        mistakes.add(
            f'nothing is compared; add shadow: {{ via: "..." }} to version {key[1]}',
            *at,
            "differences",
        )
    if not {"differences", "errors", "latency", "violations"} & config.model_fields_set:
        mistakes.add("look at nothing; add errors, latency, violations or differences", *at)
    if not 1 <= _seconds(config.window) <= _DAY:
        mistakes.add("is a second at least, and a day at most", *at, "window")
    elif config.overdue is not None and not 0 < _seconds(config.overdue) <= _seconds(config.window):
        mistakes.add(f"is above 0, and at most the window, {config.window}", *at, "overdue")


def _gates(config: GatesConfig) -> Gates:
    return Gates(
        differences=None if config.differences is None else float(config.differences[:-1]) / 100,
        errors=None if config.errors is None else float(config.errors[:-1]) / 100,
        latency=None if config.latency is None else float(config.latency[:-1]),
        violations=None if (allowed := float(config.violations[:-1]) / 100) >= 1 else allowed,
        window=_seconds(config.window),
        minimum=config.minimum,
        overdue=min(_OVERDUE, _seconds(config.window) / 2)
        if config.overdue is None
        else _seconds(config.overdue),
        then=GateAction(config.then),
        inconclusive=GateAction(config.inconclusive),
        dry_run=config.dry_run,
    )


def _seconds(duration: str) -> float:
    return float(duration[:-1]) * _UNITS[duration[-1]]
