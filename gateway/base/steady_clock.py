"""A clock that nobody sets: by it one notices that another one was set."""

import time

WAS_SET = 60.0
"""A clock was set that goes by so many seconds more or less than passed between two looks.

A disk that stalls, and quartz that drifts while nobody looks, are seconds.
"""


def passed() -> float:
    """Return seconds that pass evenly, also while this machine sleeps where it can tell."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()
