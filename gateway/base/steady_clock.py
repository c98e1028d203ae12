"""A clock that nobody sets, to detect that another clock was set."""

import time

WAS_SET = 60.0
"""A clock was set if it differs by these seconds from the time that passed between two checks.

A disk that stalls, and quartz that drifts while nobody looks, are seconds.
"""


def passed() -> float:
    """Return seconds that pass evenly, also while this machine sleeps where it can tell."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()
