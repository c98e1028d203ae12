"""Builds request outcomes from counts by name, for the tests of gates."""

from gateway.rollout.route_outcomes import OUTCOMES, RouteOutcomes


def outcomes(
    requests: int,
    mean: float = 0.01,
    *,
    spread: float = 0.0,
    overdue: int = 0,
    writes: int = 0,
    failed_writes: int = 0,
    **ends: int,
) -> RouteOutcomes:
    """Return the outcomes of requests.

    Args:
        mean: the mean duration in seconds.
        spread: the standard deviation of the durations in seconds.
        ends: the number of requests with other outcomes than 2xx, such as `_404=3`.
    """
    counts = {name: ends.pop(f"_{name}", 0) for name in OUTCOMES}
    assert not ends, "an outcome of another name"
    counts["2xx"] = requests - sum(counts.values())
    return RouteOutcomes(
        requests,
        overdue,
        tuple(counts.values()),
        requests * mean,
        requests * (mean**2 + spread**2),
        writes,
        failed_writes,
    )
