"""A clock that cannot be set, used to detect changes of the system clock."""

import time

SET_TOLERANCE = 60.0
"""The tolerance in seconds: if the system clock and the steady clock advance by amounts that differ
by more than this, the system clock was set. A stalled disk or clock drift explains only a few
seconds."""


def steady_seconds() -> float:
    """Return monotonic seconds. On Linux, the clock also runs while the machine sleeps."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()
