"""Gates: the limits that hold a cutover or roll it back when the new route is worse."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from gateway.core.cutover.route_outcomes import RouteOutcomes
from gateway.core.cutover.significance import (
    CONVINCING,
    design_effect,
    mean_above,
    share_above,
    share_beyond,
)


class GateAction(StrEnum):
    """The reaction when a limit is exceeded, or when too little was seen to judge."""

    WAIT = "wait"
    HOLD = "hold"
    ROLL_BACK = "roll_back"


class GateOutcome(StrEnum):
    """The result of a comparison."""

    PASSED = "passed"
    EXCEEDED = "exceeded"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Gates:
    """The limits of a cutover for its new route; a limit that is None is not checked.

    Attributes:
        differences: The maximum share of compared responses that differ, from 0 to 1.
        errors: The maximum by which each share of MEASURES on the new route exceeds that on the
            old route, from 0 to 1.
        latency: The maximum ratio of the mean duration of requests on the new route to that on the
            old route.
        window: The seconds back to which the evidence reaches.
        minimum: The minimum number of responses that a share or a mean is judged by.
        overdue: The seconds after which a request counts although it is still under way.
        then: The reaction when a limit is exceeded: HOLD or ROLL_BACK.
        inconclusive: The reaction when a step has lasted its time and too little was seen.
        dry_run: Whether the gates are judged and reported, and have no effect.
    """

    differences: float | None = None
    errors: float | None = None
    latency: float | None = None
    window: float = 300.0
    minimum: int = 100
    overdue: float = 10.0
    then: GateAction = GateAction.ROLL_BACK
    inconclusive: GateAction = GateAction.WAIT
    dry_run: bool = False


class GateEvidence(NamedTuple):
    """The measurements of a cutover within the window of its gates.

    Attributes:
        old: The outcomes of the requests on the old route.
        new: The outcomes of the requests on the new route.
        compared: The number of requests whose old and new responses were compared.
        differing: The number of those whose responses differ.
        before: The outcomes of the moved clients on the old route, before they were moved. A client
            that is refused everywhere does not count against the new route.
        cells: The outcomes on the old route by cell of clients; see `Cutover.cell_of`.
        served_old: The outcomes on the old route since the percentage was set, for people.
        served_new: The same on the new route.
    """

    old: RouteOutcomes = RouteOutcomes()
    new: RouteOutcomes = RouteOutcomes()
    compared: int = 0
    differing: int = 0
    before: RouteOutcomes = RouteOutcomes()
    cells: tuple[RouteOutcomes, ...] = ()
    served_old: RouteOutcomes = RouteOutcomes()
    served_new: RouteOutcomes = RouteOutcomes()


@dataclass(frozen=True, slots=True)
class GateResult:
    """The result of one comparison of a gate.

    Attributes:
        gate: The gate: `errors`, `latency` or `differences`.
        measure: What is compared: one of MEASURES, `mean` or `share`.
        outcome: The result.
        new: The share or the mean in seconds on the new route; None where nothing was seen.
        old: The same on the old route; of differences, always None.
        limit: The maximum of the difference or the ratio of both; of differences, of the share.
        new_count: The number of requests of the measure on the new route; of a mean, of requests.
        new_requests: The number of requests on the new route.
        old_count: The number of requests of the measure on the old route; of a mean, of requests.
        old_requests: The number of requests on the old route.
        window: The seconds back to which the evidence of the new route reaches.
        text: What was compared, as a sentence for operators.
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


MEASURES = {
    "5xx": "were answered 5xx or broke off",
    "conversion": "could not be converted",
    "401": "were answered 401",
    "403": "were answered 403",
    "404": "were answered 404",
    "429": "were answered 429",
    "4xx": "were answered 4xx",
    "3xx": "were answered 3xx",
    "overdue": "took longer than {overdue:g} s",
    "abandoned": "were abandoned by the client",
}
"""What the gate `errors` compares, with a text for each."""

# Shares that are known to be 0 where all is well. Of them, an old route that has served less than
# _ASSUMED requests counts as if it had served so many without a failure.
_FAULTS = frozenset({"5xx", "conversion"})
_ASSUMED = 100


def judge(gates: Gates | None, evidence: GateEvidence) -> tuple[GateResult, ...]:
    """Return the results of all comparisons of the gates.

    A limit is exceeded if both hold:
    - The share or the mean is beyond it, where a share is computed from at least `minimum`
      responses, of which missing ones count as good.
    - Chance does not explain it; see `gateway.core.cutover.significance`.

    Both hold in the comparison with the old route and, where enough is known of them, in the
    comparison with the moved clients before they were moved. Where it is not, the evidence is
    weighed by how much clients differ from each other on the old route: the few that are moved
    first may be unlike the rest.
    """
    if gates is None:
        return ()
    return (*_errors(gates, evidence), *_latency(gates, evidence), *_differences(gates, evidence))


def objection(results: Sequence[GateResult]) -> str | None:
    """Return the reason against the new route as a sentence, or None if no limit is exceeded."""
    exceeded = (result.text for result in results if result.outcome is GateOutcome.EXCEEDED)
    return next(exceeded, None)


def missing(gates: Gates, evidence: GateEvidence) -> str | None:
    """Return what has to be seen until all is judged, or None if enough was seen."""
    new, old = (gates.minimum - outcomes.requests for outcomes in (evidence.new, evidence.old))
    if new > 0:
        return f"{new} more requests"
    if gates.latency is not None and old > 0:
        return f"{old} more requests on the old route"
    return None


def _errors(gates: Gates, seen: GateEvidence) -> Iterator[GateResult]:
    limit = gates.errors
    if limit is None:
        return
    old, new = seen.old, seen.new
    for measure, about in MEASURES.items():
        count, usual = new.count(measure), old.count(measure)
        served, among = new.total(measure), old.total(measure)
        fault = measure in _FAULTS

        def excess(base: RouteOutcomes, *, fault: bool = fault, measure: str = measure) -> float:
            bad, total = new.count(measure), new.total(measure)
            before = base.count(measure)
            among = max(base.total(measure), _ASSUMED if fault else 0)
            share = bad / max(total, gates.minimum)
            if not among or share <= limit + before / among:
                return 0.0
            return share_above((bad, total), (before, among), limit)

        def weight(*, measure: str = measure) -> float:
            found = [(cell.count(measure), cell.total(measure)) for cell in seen.cells]
            share = _share(sum(bad for bad, _ in found), sum(total for _, total in found)) or 0.0
            return design_effect(found, share * (1 - share))

        few = served < gates.minimum or (among < gates.minimum and not fault)
        text = (
            f"errors ({measure}): {_of(count, served)} {about.format(overdue=gates.overdue)}"
            f" on the new route, {_of(usual, among)} on the old route, {_within(gates)};"
            f" {_percent(limit)} more may"
        )
        yield GateResult(
            "errors",
            measure,
            _outcome(gates, seen, excess, weight, few=few),
            _share(count, served),
            _share(usual, among),
            limit,
            count,
            served,
            usual,
            among,
            gates.window,
            text,
        )


def _latency(gates: Gates, seen: GateEvidence) -> Iterator[GateResult]:
    limit, old, new = gates.latency, seen.old, seen.new
    if limit is None:
        return

    def excess(base: RouteOutcomes) -> float:
        if min(base.requests, new.requests) < gates.minimum:
            return 0.0
        return mean_above(
            (new.requests, new.seconds, new.squares),
            (base.requests, base.seconds, base.squares),
            limit,
        )

    def weight() -> float:
        found = [(cell.seconds, cell.requests) for cell in seen.cells]
        total = sum(number for _, number in found)
        mean = _share(sum(seconds for seconds, _ in found), total) or 0.0
        square = _share(sum(cell.squares for cell in seen.cells), total) or 0.0
        return design_effect(found, square - mean**2)

    after, before = _share(new.seconds, new.requests), _share(old.seconds, old.requests)
    text = (
        f"latency: a request takes {_milliseconds(after)} on the new route ({new.requests}"
        f" requests), {_milliseconds(before)} on the old route ({old.requests} requests),"
        f" {_within(gates)};"
        f" {limit:g}x is allowed"
    )
    few = min(old.requests, new.requests) < gates.minimum
    yield GateResult(
        "latency",
        "mean",
        _outcome(gates, seen, excess, weight, few=few),
        after,
        before,
        limit,
        new.requests,
        new.requests,
        old.requests,
        old.requests,
        gates.window,
        text,
    )


def _differences(gates: Gates, seen: GateEvidence) -> Iterator[GateResult]:
    limit = gates.differences
    if limit is None:
        return
    beyond = (
        seen.differing > limit * max(seen.compared, gates.minimum)
        and share_beyond(seen.differing, seen.compared, limit) >= CONVINCING
    )
    few = seen.compared < gates.minimum
    outcome = GateOutcome.INCONCLUSIVE if few else GateOutcome.PASSED
    text = (
        f"differences: {seen.differing} of {seen.compared} compared answers differ"
        f" ({_percent(_share(seen.differing, seen.compared))}), {_within(gates)};"
        f" {_percent(limit)} may"
    )
    yield GateResult(
        "differences",
        "share",
        GateOutcome.EXCEEDED if beyond else outcome,
        _share(seen.differing, seen.compared),
        None,
        limit,
        seen.differing,
        seen.compared,
        0,
        0,
        gates.window,
        text,
    )


def _outcome(
    gates: Gates,
    seen: GateEvidence,
    excess: Callable[[RouteOutcomes], float],
    weight: Callable[[], float],
    *,
    few: bool,
) -> GateOutcome:
    found = excess(seen.old)
    if found >= CONVINCING:
        if seen.before.requests >= gates.minimum:
            found = excess(seen.before)
        else:
            found /= weight()
    if found >= CONVINCING:
        return GateOutcome.EXCEEDED
    return GateOutcome.INCONCLUSIVE if few else GateOutcome.PASSED


def _share(count: float, total: int) -> float | None:
    return count / total if total else None


def _of(count: int, total: int) -> str:
    return f"{count} of {total} requests ({_percent(_share(count, total))})"


def _percent(share: float | None) -> str:
    return "none seen" if share is None else f"{share * 100:.3g}%"


def _milliseconds(seconds: float | None) -> str:
    return "an unknown time" if seconds is None else f"{seconds * 1000:.1f} ms"


def _within(gates: Gates) -> str:
    return f"within {gates.window:g} s"
