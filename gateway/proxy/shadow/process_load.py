"""The CPU load of this process, which decides whether background work may run."""

import os
import time
from collections.abc import Callable

# The share of a process's time above which no background work begins, and the seconds between two
# measurements.
_MOST = 0.8
_INTERVAL = 0.1


class Load:
    """Measures whether this process has CPU time left.

    Time counts as used while the thread computes, and while it is ready to compute but waits for a
    processor, since other processes may occupy all of them.

    Args:
        used: a function that returns the time used so far, in seconds.
    """

    def __init__(self, used: Callable[[], float]) -> None:
        self._measure = used
        self._at = time.monotonic()
        self._used = used()
        self._high = False

    @property
    def high(self) -> bool:
        """Whether the process is too busy for background work."""
        now = time.monotonic()
        passed = now - self._at
        if passed >= _INTERVAL:
            used = self._measure()
            self._high = used - self._used > _MOST * passed
            self._at, self._used = now, used
        return self._high


def time_used() -> Callable[[], float]:
    """Return a function that measures the time used by this thread, in seconds."""
    try:
        # Linux counts nanoseconds of running and of waiting to run (scheduler/sched-stats.rst).
        # The file stays open as long as the process runs.
        held = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return time.thread_time

    def used() -> float:
        on, waiting, *_ = os.pread(held, 128, 0).split()
        return (int(on) + int(waiting)) / 1e9

    return used
