"""The CPU load of this process, which decides whether background work may run."""

import os
import time
from collections.abc import Callable
from math import inf

# The seconds between two measurements.
_INTERVAL = 0.1
# A task that begins more than so many seconds after its creation shows that the event loop lags.
_LAG = 0.1


class Load:
    """Measures whether this process has CPU time left.

    Time counts as used while the thread computes, and while it is ready to compute but waits for a
    processor, since other processes may occupy all of them.

    Args:
        used: a function that returns the time used so far, in seconds.
        most: the share of the process's time above which no background work begins; with 1,
            background work begins whatever the load.

    Attributes:
        longest_lag: the seconds after its creation in which a task begins unless the process is
            busy.
    """

    def __init__(self, used: Callable[[], float], most: float) -> None:
        self._measure = used
        self._most = most
        self.longest_lag = _LAG if most < 1 else inf
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
            self._high = self._most < 1 and used - self._used > self._most * passed
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
