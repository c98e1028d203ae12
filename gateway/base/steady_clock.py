"""A clock that cannot be set, to detect that the system clock was set."""

import time

SET_TOLERANCE = 60.0
"""The system clock was set if it changed between two checks by this many seconds more or less than
the steady clock. A stalled disk or a drifting clock explains only a few seconds.
"""


def steady_seconds() -> float:
    """Return monotonic seconds, which on Linux continue while the machine sleeps."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()
