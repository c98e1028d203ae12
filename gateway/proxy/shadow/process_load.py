"""The load of this process: whether it has time left for what no client waits for."""

import os
import time
from collections.abc import Callable

# The share of a process's time that may be used before the background gives way, and how often that
# is measured, in seconds.
_MOST = 0.8
_INTERVAL = 0.1


class Load:
    """Measures whether this process has time left over.

    Time is used while the thread computes, and while it could but has to wait for a processor,
    which others may keep as busy as we do.

    Args:
        used: returns how much was used so far, in seconds.
    """

    def __init__(self, used: Callable[[], float]) -> None:
        self._measure = used
        self._at = time.monotonic()
        self._used = used()
        self._high = False

    @property
    def high(self) -> bool:
        """Whether the requests that clients wait for need all of the time."""
        now = time.monotonic()
        passed = now - self._at
        if passed >= _INTERVAL:
            used = self._measure()
            self._high = used - self._used > _MOST * passed
            self._at, self._used = now, used
        return self._high


def time_used() -> Callable[[], float]:
    """Return what measures the time that this thread has used, in seconds."""
    try:
        # Linux counts nanoseconds on a processor and in line for one (scheduler/sched-stats.rst).
        # The file stays open as long as the process lives.
        held = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return time.thread_time

    def used() -> float:
        on, waiting, *_ = os.pread(held, 128, 0).split()
        return (int(on) + int(waiting)) / 1e9

    return used
