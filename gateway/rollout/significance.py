"""Statistical significance: how strongly counts and durations contradict a limit.

The strength of the evidence is the logarithm of a likelihood ratio: the likelihood of the best
explanation of the data, divided by the likelihood of the best explanation within the limit. The
strength is 0 if the data are within the limit. At the limit, twice the strength is chi-squared
distributed with one degree of freedom by Wilks' theorem (1938, Annals of Mathematical Statistics
9:60-62). The probability of a share decreases with exp(-strength), also for small numbers, by
Chernoff's bound (1952, Annals of Mathematical Statistics 23:493-507).
"""

from collections.abc import Iterable
from math import inf, log, log1p

CONVINCING = 12.0
"""A limit counts as exceeded at this strength of evidence. If a share is at its limit, at most
exp(-12) of the judgements, 6 of a million, reach this strength by chance. If the share is lower,
far fewer judgements reach it. Gates are judged every second, so the usual level of 5 % would be
reached by chance within a minute (Johari et al. 2017, "Peeking at A/B Tests"). Two examples reach
this strength: 3 bad responses of 3, with a limit of 1 % and an old route without bad responses; 9
bad responses of 9, with 9 good responses on the old route."""

DOUBTFUL = 0.5
"""At this strength of evidence, a step needs more requests before it ends. The strength corresponds
to one standard deviation: 1 bad response of 5 reaches it, with 5 good responses on the old route. A
healthy route often reaches this strength. The only effect is that the step waits."""


def share_beyond(count: int, total: int, limit: float) -> float:
    """Return how strongly `count` of `total` contradicts a share of at most `limit`."""
    if not total or count / total <= limit:
        return 0.0
    return total * _divergence(count / total, limit)


def share_above(new: tuple[int, int], old: tuple[int, int], margin: float) -> float:
    """Return how strongly (count, total) pairs contradict `new share <= old share + margin`."""
    (count, total), (usual, among) = new, old
    if not total or not among:
        return 0.0
    share, before = count / total, usual / among
    low, high = before, share - margin
    if high <= low:
        return 0.0
    # Bisection: the sum of both divergences is a convex function of the old share. The minimum of
    # the sum is at slope 0.
    for _ in range(50):
        middle = (low + high) / 2
        moved = middle + margin
        if moved >= share:  # due to rounding
            break
        slope = total * (moved - share) / (moved * (1 - moved))
        slope += among * (middle - before) / (middle * (1 - middle))
        low, high = (low, middle) if slope > 0 else (middle, high)
    likely = (low + high) / 2
    return total * _divergence(share, likely + margin) + among * _divergence(before, likely)


def mean_above(
    new: tuple[int, float, float], old: tuple[int, float, float], factor: float
) -> float:
    """Return how strongly two samples contradict `new mean <= old mean * factor`.

    This is Welch's test (1947, Biometrika 34:28-35) for means with different variances. Small
    samples have few degrees of freedom and count as weaker evidence.

    Args:
        new: The number, the sum and the sum of squares of the new sample.
    """
    (after, error, degrees), (before, other, others) = _mean(*new), _mean(*old)
    excess = after - factor * before
    if excess <= 0 or not degrees or not others:
        return 0.0
    other *= factor**2
    variance = error + other
    if not variance:
        return inf
    freedom = variance**2 / (error**2 / degrees + other**2 / others)
    return (freedom + 1) / 2 * log1p(excess**2 / variance / freedom)


def design_effect(clusters: Iterable[tuple[float, int]], variance: float) -> float:
    """Return the factor by which clusters are weaker evidence than independent elements.

    The requests of one client are similar, so ten requests of one client are weaker evidence than
    one request of each of ten clients. The factor is Kish's design effect (1965, Survey Sampling,
    section 8.2), with the variance of a ratio for clusters of different sizes (Cochran 1977,
    Sampling Techniques, section 9A.1).

    Args:
        clusters: For each cluster, the sum and the number of its elements.
    """
    seen = [(total, number) for total, number in clusters if number]
    if len(seen) < 2 or variance <= 0:
        return 1.0
    among = sum(number for _, number in seen)
    mean = sum(total for total, _ in seen) / among
    spread = sum((total - mean * number) ** 2 for total, number in seen)
    return max(spread * len(seen) / (len(seen) - 1) / (among * variance), 1.0)


def _mean(number: int, total: float, squares: float) -> tuple[float, float, int]:
    """Return the mean, its variance and the degrees of freedom; zeros for fewer than 2 elements."""
    if number < 2:
        return 0.0, 0.0, 0
    mean = total / number
    variance = max(squares / number - mean**2, 0.0) / (number - 1)
    return mean, variance, number - 1


def _divergence(share: float, limit: float) -> float:
    """Return the Kullback-Leibler divergence of two shares, which may be infinite."""
    return _term(share, limit) + _term(1 - share, 1 - limit)


def _term(share: float, limit: float) -> float:
    if not share:
        return 0.0
    return share * log(share / limit) if limit else inf
