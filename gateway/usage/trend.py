"""Usage trend: the line through the number of callers, and the day on which it reaches zero."""

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

_MAX_DAYS = 28
_MIN_DAYS = 7


class UsageTrend(NamedTuple):
    """The line through the number of callers of the last days (Theil-Sen estimator).

    Attributes:
        level: The number of callers on the last day, by the line.
        slope: The change of the number of callers per day; negative where it decreases.
        days: The number of days from the last one until there are no callers; None where their
            number does not decrease.
    """

    level: float
    slope: float
    days: float | None


def usage_trend(callers: Sequence[float]) -> UsageTrend | None:
    """Return the trend of the last 28 days, or None if there are fewer than 7.

    The slope is the median of the slopes between all pairs of days, so that a few unusual days,
    such as holidays, do not change it.

    Args:
        callers: The number of callers of each whole day, the last day last.
    """
    latest = callers[-_MAX_DAYS:]
    if len(latest) < _MIN_DAYS:
        return None
    slope = median(
        (later - earlier) / (right - left)
        for left, earlier in enumerate(latest)
        for right, later in enumerate(latest[left + 1 :], left + 1)
    )
    last = len(latest) - 1
    level = max(median(value + slope * (last - day) for day, value in enumerate(latest)), 0.0)
    days = None
    if not any(latest[-_MIN_DAYS:]):
        days = 0.0
    elif slope < 0:
        days = level / -slope
    return UsageTrend(level, slope, days)
