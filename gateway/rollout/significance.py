"""Significance: how strongly counts and durations contradict a limit, beyond chance.

All functions return a logarithm of a likelihood ratio: that of the most likely explanation of the
data to that of the most likely one that keeps the limit. It is 0 where the data keep the limit. By
Wilks' theorem (1938, Annals of Mathematical Statistics 9:60-62) twice the value is distributed as
chi-squared with one degree of freedom where the limit is just kept, and by Chernoff's bound (1952,
Annals of Mathematical Statistics 23:493-507) the chance of a share falls as exp(-value) for small
numbers too, where the normal approximation fails.
"""

from collections.abc import Iterable
from math import inf, log, log1p

CONVINCING = 12.0
"""The value from which a limit counts as exceeded.

Where a share is at its limit, chance exceeds it in at most exp(-12), 6 of a million looks, and far
less often where it is below. Gates are judged once a second, so a usual bound of one in twenty
would be passed within a minute (Johari et al. 2017, "Peeking at A/B Tests"). It takes 3 of 3 bad
answers at a limit of 1 % beside an old route without any, and 9 of 9 beside 9 good ones.
"""

DOUBTFUL = 0.5
"""The value from which few requests are not enough to go on by.

It is that of one standard deviation. A healthy route reaches it often, and then the step only
waits: 1 of 5 bad responses beside 5 good ones is enough.
"""


def share_beyond(count: int, total: int, limit: float) -> float:
    """Return how strongly `count` of `total` contradict a share of at most `limit`."""
    if not total or count / total <= limit:
        return 0.0
    return total * _divergence(count / total, limit)


def share_above(new: tuple[int, int], old: tuple[int, int], margin: float) -> float:
    """Return how strongly two samples contradict that the new share is within a margin of the old.

    Args:
        new: The count and the total of the new sample.
        margin: How far the new share may lie above the old one, from 0 to 1.
    """
    (count, total), (usual, among) = new, old
    if not total or not among:
        return 0.0
    share, before = count / total, usual / among
    low, high = before, share - margin
    if high <= low:
        return 0.0
    # The sum of both divergences is convex in the old share, with its minimum where the slope is 0.
    for _ in range(50):
        middle = (low + high) / 2
        moved = middle + margin
        if moved >= share:  # by rounding
            break
        slope = total * (moved - share) / (moved * (1 - moved))
        slope += among * (middle - before) / (middle * (1 - middle))
        low, high = (low, middle) if slope > 0 else (middle, high)
    likely = (low + high) / 2
    return total * _divergence(share, likely + margin) + among * _divergence(before, likely)


def mean_above(
    new: tuple[int, float, float], old: tuple[int, float, float], factor: float
) -> float:
    """Return how strongly two samples contradict that the new mean is within a factor of the old.

    It is Welch's test (1947, Biometrika 34:28-35) of means with different variances, whose few
    degrees of freedom weaken the evidence of small samples.

    Args:
        new: The number, the sum and the sum of squares of the new sample.
        factor: The ratio that the means may have.
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
    """Return by how much a sample of clusters is weaker than one of independent elements.

    The requests of one client resemble each other, so that ten of them prove less than those of ten
    clients. It is Kish's design effect (1965, Survey Sampling, section 8.2), with the variance of a
    ratio for clusters of different sizes (Cochran 1977, Sampling Techniques, section 9A.1).

    Args:
        clusters: The sum and the number of the elements of each cluster.
    """
    seen = [(total, number) for total, number in clusters if number]
    if len(seen) < 2 or variance <= 0:
        return 1.0
    among = sum(number for _, number in seen)
    mean = sum(total for total, _ in seen) / among
    spread = sum((total - mean * number) ** 2 for total, number in seen)
    return max(spread * len(seen) / (len(seen) - 1) / (among * variance), 1.0)


def _mean(number: int, total: float, squares: float) -> tuple[float, float, int]:
    """Return the mean, the variance of the mean, and the degrees of freedom; 0 of too few."""
    if number < 2:
        return 0.0, 0.0, 0
    mean = total / number
    variance = max(squares / number - mean**2, 0.0) / (number - 1)
    return mean, variance, number - 1


def _divergence(share: float, limit: float) -> float:
    """Return the Kullback-Leibler divergence of two shares; infinite if the limit rules it out."""
    return _term(share, limit) + _term(1 - share, 1 - limit)


def _term(share: float, limit: float) -> float:
    if not share:
        return 0.0
    return share * log(share / limit) if limit else inf
