"""The judgement of gates: whether what was seen on the new route of a cutover speaks against it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gateway.rollout.compared_shares import (
    SINCE,
    compare_shares,
    judged,
    percent,
    share,
    within,
)
from gateway.rollout.gates import (
    MEASURES,
    VIOLATIONS,
    GateEvidence,
    GateLimits,
    GateOutcome,
    GateResult,
)
from gateway.rollout.route_outcomes import RouteOutcomes
from gateway.rollout.significance import (
    CONVINCING,
    DOUBTFUL,
    design_effect,
    mean_above,
    share_beyond,
)

# Fewer requests in the window are not enough for a decision by them alone.
_MANY = 100


def judge(gates: GateLimits | None, evidence: GateEvidence) -> tuple[GateResult, ...]:
    """Return the results of all comparisons of the gates.

    A limit is exceeded if both hold:
    - The share or the mean is beyond it, where a share is computed from at least `minimum`
      responses, of which missing ones count as good.
    - Chance does not explain it; see `gateway.rollout.significance`.

    Both hold in the comparison with the old route and, where enough is known of them, in the
    comparison with the moved clients before they were moved. Where it is not, the evidence is
    weighed by how much clients differ from each other on the old route: the few that are moved
    first may be unlike the rest.

    While there are few requests in the window, a limit is also exceeded if that holds for all
    requests since the percentage was set: what strikes one request a minute would never show
    otherwise.
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


def objection(results: Sequence[GateResult]) -> str | None:
    """Return the reason against the new route as a sentence, or None if no limit is exceeded."""
    exceeded = (result.text for result in results if result.outcome is GateOutcome.EXCEEDED)
    return next(exceeded, None)


def missing(gates: GateLimits, evidence: GateEvidence) -> str | None:
    """Return what has to be seen until all can be judged, or None if enough was seen."""
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


def doubt(gates: GateLimits, evidence: GateEvidence) -> str | None:
    """Return what has to be seen since few requests leave doubt; None where they leave none."""
    found = next(iter(_doubts(gates, evidence).values()), None)
    return None if found is None else f"more requests, since they leave doubt: {found}"


def _doubts(gates: GateLimits, seen: GateEvidence) -> Mapping[str, str]:
    """Return the texts of those comparisons, by measure, that few requests leave in doubt.

    No few requests are convincing, and a step that went on by them would move many clients to a
    route that fails half of its requests. So all requests since the step began are looked at.
    """
    found = [*_exceeded_since(gates, seen, DOUBTFUL)]
    if seen.compared < _MANY:
        found += _only_exceeded(_differences(gates, seen, DOUBTFUL))
    return {each.measure: each.text for each in found}


def _exceeded_since(gates: GateLimits, seen: GateEvidence, beyond: float) -> Iterator[GateResult]:
    """Yield what all requests since the percentage was set exceed, where the window has few."""
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
    """Yield the result of the mean duration; the arguments are those of `compare_shares`."""
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
    """Return whether durations exceed the limit for most of the window.

    Where nothing is to compare with at the same time, a machine that stands still for seconds would
    look like a slow route.
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
        f"differences: {seen.differing} of {seen.compared} compared answers differ"
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
