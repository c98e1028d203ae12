"""What the tests of gates share: outcomes of requests, as counts by name."""

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
    """Return the outcomes of requests; those that `ends` does not name, as `_404=3`, are 2xx.

    Args:
        requests: their number.
        mean: their mean duration in seconds.
        spread: the standard deviation of the durations in seconds.
        overdue: how many of them are overdue.
        writes: how many of them write.
        failed_writes: how many of those fail.
        ends: how many of them ended otherwise.
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
