"""A clock that nobody sets: by it one notices that another one was set."""

import time


def passed() -> float:
    """Return seconds that pass evenly, also while this machine sleeps where it can tell."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()
