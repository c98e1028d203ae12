"""The judgement of gates: whether the evidence on the new route of a cutover exceeds a limit.

`judge` compares both routes by each measure. Moved clients are also compared with their own
outcomes before the move, since the failures of one client are few among all requests. Each
operation is also compared separately; see `gateway.rollout.failing_operations`.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from math import log
from typing import NamedTuple

from gateway.rollout.failing_operations import STALL_MEASURES, worst_operation
from gateway.rollout.gates import (
    MEASURES,
    VIOLATIONS,
    GateEvidence,
    GateLimits,
    GateOutcome,
    GateResult,
    MovedClients,
)
from gateway.rollout.route_outcomes import RouteOutcomes
from gateway.rollout.significance import (
    CONVINCING,
    DOUBTFUL,
    design_effect,
    mean_above,
    share_above,
    share_beyond,
)

# Any client may send some bad requests. The route is at fault only if nearly all requests of the
# client fail.
_NEARLY_ALL = 0.9


def worst_moved_clients(
    seen: GateEvidence, measure: str, limit: float, looks: int
) -> MovedClients | None:
    """Return moved clients for whom nearly all requests fail on the new route, or None.

    Moved clients are compared only if the percentage was set before the window. If this holds for
    several cells, the cell with the strongest evidence is returned.

    Args:
        looks: The number of measures that are compared for each cell. The more measures there are,
            the more often a limit is exceeded by chance.
    """
    if not seen.outlasts or not seen.served_new.count(measure):
        return None
    convincing = CONVINCING + log(max(looks * len(seen.moved), 1))
    failed = (cell for cell in seen.moved if cell.since.count(measure))
    found = [(_strength(cell, measure, limit), cell) for cell in failed]
    strength, worst = max(found, key=lambda each: each[0], default=(0.0, None))
    return worst if strength >= convincing else None


def _strength(cell: MovedClients, measure: str, limit: float) -> float:
    bad, total = cell.since.count(measure), cell.since.total(measure)
    if bad < _NEARLY_ALL * total:
        return 0.0
    return share_above(
        (bad, total), (cell.before.count(measure), cell.before.total(measure)), limit
    )


# Kinds of failures whose usual share is 0. An old route without such failures is treated as if it
# had served at least this number of requests. The old route converts nothing, so its share of
# failed conversions is certainly 0.
_ASSUMED = {"5xx": 100, "conversion": 10_000}
# A stall of the machine affects at most this number of parts of a window.
_OF_A_STALL = 2
SINCE = "since the percentage was set"
# The kinds of failed requests. Each failed request has exactly one kind.
_KINDS = ("5xx", "conversion", "401", "403", "404", "429", "other 4xx")


def compare_shares(
    gates: GateLimits,
    seen: GateEvidence,
    beyond: float = CONVINCING,
    span: str = "",
    measures: Collection[str] = (*MEASURES, *VIOLATIONS),
) -> Iterator[GateResult]:
    """Yield the results of the gates `errors` and `violations`.

    The OpenAPI document may be wrong about both services, so violations are judged only if the old
    route also has responses.

    Args:
        beyond: The strength of evidence at which a limit counts as exceeded; see `significance`.
    """
    span = span or within(gates)
    if gates.errors is not None:
        compared = _Comparison("errors", gates, gates.errors, seen, beyond, span)
        for measure, about in MEASURES.items():
            if measure in measures:
                writes = measure == "writes"
                kind = "writes" if writes else "requests"
                what = about.format(overdue=gates.overdue)
                more = _how(_old(seen, measure, gates.minimum), seen.new) if writes else ""
                yield compared.result(measure, kind, what, more)
    if gates.violations is not None:
        compared = _Comparison("violations", gates, gates.violations, seen, beyond, span)
        for measure, kind in VIOLATIONS.items():
            if measure in measures:
                yield compared.result(measure, kind, "violate the document", _where(seen))


class _Comparison(NamedTuple):
    gate: str
    gates: GateLimits
    limit: float
    seen: GateEvidence
    beyond: float
    span: str

    def result(self, measure: str, kind: str, what: str, more: str) -> GateResult:
        """Return the result of a comparison.

        Args:
            kind: What the total of the share counts, in words, such as "requests".
            what: What happened to the counted requests, in words, such as "were answered 404".
        """
        limit, seen, new = self.limit, self.seen, self.seen.new
        old = _old(seen, measure, self.gates.minimum)
        count, usual = new.count(measure), old.count(measure)
        served, among = new.total(measure), old.total(measure)
        few = served < self.gates.minimum
        few = few or (among < self.gates.minimum and measure not in _ASSUMED)
        known = seen.before.total(measure) >= self.gates.minimum

        def weight() -> float:
            found = [(cell.count(measure), cell.total(measure)) for cell in seen.cells]
            usual = share(sum(bad for bad, _ in found), sum(total for _, total in found)) or 0.0
            return design_effect(found, usual * (1 - usual))

        outcome = judged(
            lambda base: self._excess(measure, base),
            old,
            seen.before if known else None,
            weight,
            self.beyond,
            few=few,
        )
        whose, span = "on the old route", self.span
        if outcome is not GateOutcome.EXCEEDED and self.beyond >= CONVINCING:
            worst = worst_moved_clients(seen, measure, limit, len(MEASURES) + len(VIOLATIONS))
            failing = worst_operation(seen.failing, measure, limit, self.gates.minimum)
            if worst is not None:
                outcome, whose, span = GateOutcome.EXCEEDED, "of the same clients before", SINCE
                count, usual = worst.since.count(measure), worst.before.count(measure)
                served, among = worst.since.total(measure), worst.before.total(measure)
                kind = _named(kind, worst.operation)
            elif failing is not None:
                outcome, whose = GateOutcome.EXCEEDED, "on the old route so far"
                span = f"within {failing.span:.0f} s"
                (count, served), (usual, among) = failing.new, failing.usual
                kind = _named(kind, failing.operation)
        text = (
            f"{self.gate} ({measure}): {_of(count, served, kind)} {what} on the new route,"
            f" {_of(usual, among, kind)} {whose}, {span};"
            f" {percent(limit)} more may{more}"
        )
        return GateResult(
            gate=self.gate,
            measure=measure,
            outcome=outcome,
            new=share(count, served),
            old=share(usual, among),
            limit=limit,
            new_count=count,
            new_requests=served,
            old_count=usual,
            old_requests=among,
            window=self.gates.window,
            text=text,
        )

    def _excess(self, measure: str, base: RouteOutcomes) -> float:
        bad, total = self._on_the_new_route(measure)
        before, among = base.count(measure), base.total(measure)
        if measure in _ASSUMED and not before:
            among = max(among, _ASSUMED[measure])
        if not among or bad / max(total, self.gates.minimum) <= self.limit + before / among:
            return 0.0
        return share_above((bad, total), (before, among), self.limit)

    def _on_the_new_route(self, measure: str) -> tuple[int, int]:
        """Return the count and the total, without parts of the window that may contain a stall."""
        new = self.seen.new
        bad, total = new.count(measure), new.total(measure)
        if measure in STALL_MEASURES:
            parts = [(part.count(measure), part.total(measure)) for part in self.seen.parts]
            for count, among in sorted(parts)[-_OF_A_STALL:]:
                bad, total = bad - count, total - among
        return bad, total


def judged(
    excess: Callable[[RouteOutcomes], float],
    old: RouteOutcomes,
    before: RouteOutcomes | None,
    weight: Callable[[], float],
    beyond: float,
    *,
    few: bool,
) -> GateOutcome:
    """Return the outcome of two comparisons: with the old route, and with the same clients before.

    Args:
        excess: Returns the strength of the evidence that the limit is exceeded, compared with the
            given outcomes.
        before: The outcomes of the moved clients before the move; None if there are too few.
        weight: Returns the factor by which the evidence is weaker without `before`, since clients
            differ.
        few: Whether there are too few requests to be sure that the limit is not exceeded.
    """
    found = excess(old)
    if found >= beyond:
        found = found / weight() if before is None else excess(before)
    if found >= beyond:
        return GateOutcome.EXCEEDED
    return GateOutcome.INCONCLUSIVE if few else GateOutcome.PASSED


def share(count: float, total: int) -> float | None:
    return count / total if total else None


def percent(part: float | None) -> str:
    return "none seen" if part is None else f"{part * 100:.3g}%"


def within(gates: GateLimits) -> str:
    return f"within {gates.window:g} s"


def _old(seen: GateEvidence, measure: str, minimum: int) -> RouteOutcomes:
    """Return the old route's outcomes in the window, or over a longer time if these are too few."""
    if seen.old.total(measure) >= minimum:
        return seen.old
    return max(seen.old, seen.served_old, key=lambda outcomes: outcomes.total(measure))


def _how(old: RouteOutcomes, new: RouteOutcomes) -> str:
    def more(measure: str) -> float:
        usual = share(old.count(measure), old.total(measure)) or 0.0
        return new.count(measure) - usual * new.total(measure)

    foremost = max(_KINDS, key=more)
    if more(foremost) <= 0:
        return ""
    number, total = new.count(foremost), new.total(foremost)
    return f"; {number} of all {total} requests {MEASURES[foremost]}"


def _where(seen: GateEvidence) -> str:
    old, new = max(seen.served_old.checked, 1), max(seen.served_new.checked, 1)
    more = {field.name: field.new / new - field.old / old for field in seen.fields}
    foremost = max(more, key=lambda name: more[name], default="")
    return f"; most of all {foremost}" if foremost and more[foremost] > 0 else ""


def _named(kind: str, operation: str) -> str:
    return f"{kind} {operation}" if operation else kind


def _of(count: int, total: int, kind: str) -> str:
    return f"{count} of {total} {kind} ({percent(share(count, total))})"


# If the window has fewer requests, all requests since the percentage was set are also judged.
_MANY = 100


def judge(gates: GateLimits | None, evidence: GateEvidence) -> tuple[GateResult, ...]:
    """Return the results of all comparisons of the gates.

    A limit is exceeded if both conditions hold:

    - The share or the mean is above the limit. A share has a total of at least `minimum` responses:
    missing responses are treated as good.
    - Chance does not explain the excess; see `gateway.rollout.significance`.

    Both conditions must hold in two comparisons: with the old route, and with the moved clients
    before the move. If there are too few requests for the second comparison, the evidence is
    weakened by the differences between clients on the old route, since the few clients that move
    first may differ from the rest.

    If the window has few requests, a limit is also exceeded if both conditions hold for all
    requests since the percentage was set. Otherwise, one failure per minute would remain unnoticed.
    """
    if gates is None:
        return ()
    found = (
        *compare_shares(gates, evidence),
        *_latency(gates, evidence),
        *_differences(gates, evidence),
    )
    longer: dict[str, GateResult] = {}
    if evidence.outlasts:
        longer = {each.measure: each for each in _exceeded_since(gates, evidence, CONVINCING)}
    doubted = _doubts(gates, evidence)
    return tuple(
        _with_longer(result, longer.get(result.measure), doubted=result.measure in doubted)
        for result in found
    )


def _with_longer(result: GateResult, longer: GateResult | None, *, doubted: bool) -> GateResult:
    if result.outcome is GateOutcome.EXCEEDED:
        return result
    if longer is not None:
        return longer
    return replace(result, outcome=GateOutcome.INCONCLUSIVE) if doubted else result


def first_exceeded(results: Sequence[GateResult]) -> str | None:
    exceeded = (result.text for result in results if result.outcome is GateOutcome.EXCEEDED)
    return next(exceeded, None)


def missing_requests(gates: GateLimits, evidence: GateEvidence) -> str | None:
    new, old = (
        gates.minimum - max(outcomes.requests, served.requests)
        for outcomes, served in (
            (evidence.new, evidence.served_new),
            (evidence.old, evidence.served_old),
        )
    )
    if new > 0:
        return f"{_more(new)} on the new route"
    if gates.latency is not None and old > 0:
        return f"{_more(old)} on the old route"
    if gates.differences is not None and evidence.compared < gates.minimum:
        return f"{gates.minimum - evidence.compared} more comparisons of the shadow"
    return None


def _more(count: int) -> str:
    return "1 more request" if count == 1 else f"{count} more requests"


def doubtful_result(gates: GateLimits, evidence: GateEvidence) -> str | None:
    found = next(iter(_doubts(gates, evidence).values()), None)
    return None if found is None else f"more requests, since the result is uncertain: {found}"


def _doubts(gates: GateLimits, seen: GateEvidence) -> Mapping[str, str]:
    """Return a sentence about each comparison with a doubtful result, by measure.

    With few requests, a limit is never clearly exceeded. But the next step could move many clients
    to a route on which half of the requests fail. So all requests since the beginning of the step
    are compared.
    """
    found = [*_exceeded_since(gates, seen, DOUBTFUL)]
    if seen.compared < _MANY:
        found += _only_exceeded(_differences(gates, seen, DOUBTFUL))
    return {each.measure: each.text for each in found}


def _exceeded_since(gates: GateLimits, seen: GateEvidence, beyond: float) -> Iterator[GateResult]:
    old = max(seen.old, seen.served_old, key=lambda outcomes: outcomes.requests)
    longer = seen._replace(old=old, new=seen.served_new)
    few = {
        measure
        for measure in (*MEASURES, *VIOLATIONS)
        if seen.new.total(measure) < _MANY and longer.new.count(measure)
    }
    yield from _only_exceeded(compare_shares(gates, longer, beyond, SINCE, few))
    if seen.new.requests < _MANY and longer.new.requests:
        yield from _only_exceeded(_latency(gates, longer, beyond, SINCE))


def _only_exceeded(results: Iterator[GateResult]) -> Iterator[GateResult]:
    return (each for each in results if each.outcome is GateOutcome.EXCEEDED)


def _latency(
    gates: GateLimits, seen: GateEvidence, beyond: float = CONVINCING, span: str = ""
) -> Iterator[GateResult]:
    limit, old, new = gates.latency, seen.old, seen.new
    if limit is None:
        return

    def excess(base: RouteOutcomes) -> float:
        if seen.old_ceased or min(base.requests, new.requests) < gates.minimum:
            return 0.0
        if seen.parts and not _mostly_slower(seen.parts, base, limit):
            return 0.0
        return mean_above(
            (new.requests, new.seconds, new.squares),
            (base.requests, base.seconds, base.squares),
            limit,
        )

    def weight() -> float:
        found = [(cell.seconds, cell.requests) for cell in seen.cells]
        total = sum(number for _, number in found)
        mean = share(sum(seconds for seconds, _ in found), total) or 0.0
        square = share(sum(cell.squares for cell in seen.cells), total) or 0.0
        return design_effect(found, square - mean**2)

    after, before = share(new.seconds, new.requests), share(old.seconds, old.requests)
    text = (
        f"latency: a request takes {_milliseconds(after)} on the new route ({new.requests}"
        f" requests), {_milliseconds(before)} on the old route ({old.requests} requests),"
        f" {span or within(gates)};"
        f" {limit:g}x is allowed" + (", but those were too long ago" if seen.old_ceased else "")
    )
    few = seen.old_ceased or min(old.requests, new.requests) < gates.minimum
    known = seen.before.requests >= gates.minimum
    yield GateResult(
        gate="latency",
        measure="mean",
        outcome=judged(excess, old, seen.before if known else None, weight, beyond, few=few),
        new=after,
        old=before,
        limit=limit,
        new_count=new.requests,
        new_requests=new.requests,
        old_count=old.requests,
        old_requests=old.requests,
        window=gates.window,
        text=text,
    )


def _mostly_slower(parts: Sequence[RouteOutcomes], base: RouteOutcomes, limit: float) -> bool:
    """Return whether durations exceed the limit in most parts of the window.

    Without this check, a machine that stalls for seconds would look like a slow route if the old
    route has no requests at the same time.
    """
    means = [part.seconds / part.requests for part in parts if part.requests]
    slower = [mean for mean in means if mean > limit * base.seconds / base.requests]
    return len(slower) * 2 > len(means)


def _differences(
    gates: GateLimits, seen: GateEvidence, beyond: float = CONVINCING
) -> Iterator[GateResult]:
    limit = gates.differences
    if limit is None:
        return
    exceeded = (
        seen.differing > limit * max(seen.compared, gates.minimum)
        and share_beyond(seen.differing, seen.compared, limit) >= beyond
    )
    few = seen.compared < gates.minimum
    outcome = GateOutcome.INCONCLUSIVE if few else GateOutcome.PASSED
    text = (
        f"differences: {seen.differing} of {seen.compared} compared responses differ"
        f" ({percent(share(seen.differing, seen.compared))}), {within(gates)};"
        f" {percent(limit)} may"
    )
    yield GateResult(
        gate="differences",
        measure="share",
        outcome=GateOutcome.EXCEEDED if exceeded else outcome,
        new=share(seen.differing, seen.compared),
        old=None,
        limit=limit,
        new_count=seen.differing,
        new_requests=seen.compared,
        old_count=0,
        old_requests=0,
        window=gates.window,
        text=text,
    )


def _milliseconds(seconds: float | None) -> str:
    return "an unknown time" if seconds is None else f"{seconds * 1000:.1f} ms"
