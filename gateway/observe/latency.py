"""Latency: how long answers took, as a histogram whose quantiles have a known error.

Each bucket reaches a tenth further than the one before, as in DDSketch (Masson, Rim and Lee, 2019).
So a quantile is at most 5 % off, whatever the times are like, and histograms are added bucket by
bucket, in any order. Times beyond the first and the last bucket count in these.
"""

from collections.abc import Mapping
from math import ceil, log

_FACTOR = 1.1
_SHORTEST = 0.0001
BUCKETS = 150
"""The number of buckets, of which the last ends at 147 seconds."""


def bucket(seconds: float) -> int:
    """Return the index of the bucket of a time."""
    if seconds <= _SHORTEST:
        return 0
    return min(ceil(log(seconds / _SHORTEST, _FACTOR)), BUCKETS - 1)


def quantile(buckets: Mapping[int, int], share: float) -> float:
    """Return the time in seconds within which a share of the answers came; 0 for no answers.

    Args:
        buckets: the number of answers by the index of their bucket.
        share: above 0 and at most 1, such as 0.95.
    """
    wanted = share * sum(buckets.values())
    seen = 0
    for index in sorted(buckets):
        seen += buckets[index]
        if seen >= wanted:
            # The time of which both ends of the bucket are equally far, in relation to it.
            return _SHORTEST * _FACTOR**index * 2 / (1 + _FACTOR) if index else _SHORTEST
    return 0.0
