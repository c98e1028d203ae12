"""The CPU load of this process, which decides whether background work may run."""

import os
import time
from collections.abc import Callable
from math import inf

# The seconds between two measurements.
_INTERVAL = 0.1
# The share of background work grows by so much in a second with CPU time left.
_GROWTH = 0.5
# A task that begins more than so many seconds after its creation shows that the event loop lags.
_LAG = 0.1
# While so much background work waits to begin, more of it would wait in vain.
_MOST_WAITING = 16


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
        self._due = self._at + _INTERVAL
        self._used = used()
        self._high = False
        self._crowded = False
        self._share = 1.0

    @property
    def high(self) -> bool:
        """Whether the process is too busy for background work."""
        if time.monotonic() >= self._due:
            self._look()
        return self._high

    def waits(self, waiting: int) -> None:
        """Note how much background work waits to begin, whenever that changes."""
        self._crowded = self._most < 1 and waiting >= _MOST_WAITING

    def thin(self, draw: float) -> float:
        """Return the draw of a request for the share of background work that there is time for.

        Of evenly distributed draws, as large a share stays below 1, and is evenly distributed; the
        others are 1. While the process is too busy, or much work waits, all are. After a
        measurement without time left the share is halved, and grows slowly (as in RFC 5681,
        section 3.1), so that a process close to its limit does not swing between all background
        work and none.

        Args:
            draw: a random number, at least 0 and below 1.
        """
        if time.monotonic() >= self._due:
            self._look()
        share = self._share
        return 1.0 if draw >= share or self._high or self._crowded else draw / share

    def _look(self) -> None:
        now, used = time.monotonic(), self._measure()
        passed = now - self._at
        self._high = self._most < 1 and used - self._used > self._most * passed
        self._at, self._used, self._due = now, used, now + _INTERVAL
        grown = min(1.0, self._share + _GROWTH * passed)
        self._share = self._share / 2 if self._high else grown


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
