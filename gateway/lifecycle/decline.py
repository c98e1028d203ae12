"""Decline: when the callers of a version reach zero, if they go on as they did lately."""

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

# So many days are looked at, and fewer than the least say nothing.
_LATEST = 28
_LEAST = 7


class Decline(NamedTuple):
    """A straight line through the callers of the latest days.

    Attributes:
        level: The number of callers at the last day, by the line.
        slope: How many more callers there are each day; negative where they become fewer.
        days: After how many days from the last one there is none; None where they do not become
            fewer.
    """

    level: float
    slope: float
    days: float | None


def decline(callers: Sequence[float]) -> Decline | None:
    """Return the line through the latest days, or None if there are too few.

    Its slope is the median of the slopes between each two days (Theil and Sen), so that a few days
    unlike the others, such as holidays, do not bend it.

    Args:
        callers: The number of callers of each whole day, the last one last.
    """
    latest = callers[-_LATEST:]
    if len(latest) < _LEAST:
        return None
    slope = median(
        (later - earlier) / (right - left)
        for left, earlier in enumerate(latest)
        for right, later in enumerate(latest[left + 1 :], left + 1)
    )
    last = len(latest) - 1
    level = max(median(value + slope * (last - day) for day, value in enumerate(latest)), 0.0)
    days = None
    if not any(latest[-_LEAST:]):
        days = 0.0
    elif slope < 0:
        days = level / -slope
    return Decline(level, slope, days)
