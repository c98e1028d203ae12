"""Builds outcomes of requests and results of gates, for the tests of cutovers."""

from gateway.rollout.gates import GateOutcome, GateResult
from gateway.rollout.route_outcomes import OUTCOMES, RouteOutcomes


def outcomes(requests: int, mean: float = 0.01, *, overdue: int = 0, **ends: int) -> RouteOutcomes:
    """Return the outcomes of requests.

    Args:
        mean: the mean duration in seconds.
        ends: the number of requests with other outcomes than 2xx, such as `_404=3`.
    """
    counts = {name: ends.pop(f"_{name}", 0) for name in OUTCOMES}
    assert not ends, "an outcome of another name"
    counts["2xx"] = requests - sum(counts.values())
    return RouteOutcomes(requests, overdue, tuple(counts.values()), requests * mean)


def result(
    outcome: GateOutcome, new: tuple[int, int], old: tuple[int, int] = (0, 100)
) -> GateResult:
    """Return a result of the measure 5xx, with the counts and totals of both routes."""
    (bad, total), (usual, among) = new, old
    text = f"errors (5xx): {bad} of {total} requests"
    shares = bad / total, usual / among
    return GateResult("errors", "5xx", outcome, *shares, 0.01, bad, total, usual, among, 60.0, text)
