"""A deadline with a lazy timer, for deadlines that are moved often and missed rarely."""

import asyncio
from collections.abc import Callable
from math import inf


class Deadline:
    """A deadline that can be moved, bounded by a last one that cannot.

    Moving it later is one assignment: the timer is set again only when it fires too early.

    Args:
        loop: the event loop.
        missed: a function that is called when the deadline passes.
    """

    __slots__ = ("_alarm", "_at", "_last", "_loop", "_missed", "_rings_at")

    def __init__(self, loop: asyncio.AbstractEventLoop, missed: Callable[[], None]) -> None:
        self._loop = loop
        self._missed = missed
        self._alarm: asyncio.TimerHandle | None = None
        self._at = self._last = self._rings_at = inf

    def begin(self, last: float, first: float = inf) -> None:
        """Set the last deadline and the first one, in seconds from now; `inf` sets none."""
        now = self._loop.time()
        self._last = now + last
        self._at = at = now + (first if first < last else last)  # noqa: FURB136  # min() takes five times as much
        if at < self._rings_at:
            self._ring_at(at)

    def set(self, seconds: float) -> None:
        """Set the deadline, so many seconds from now, or to the last one if that is earlier."""
        self.set_at(self._loop.time() + seconds)

    def set_at(self, at: float) -> None:
        """Set the deadline, in seconds of the event loop's clock; see `set`."""
        if at > self._last:
            at = self._last
        self._at = at
        if at < self._rings_at:
            self._ring_at(at)

    def clear(self) -> None:
        """Remove the deadline; the last one stays."""
        self._at = self._last  # the timer set earlier fires no later than the last

    def cancel(self) -> None:
        """Remove all deadlines, and the reference to `missed`, so that its owner can be freed."""
        self._missed = _nothing
        self._at = self._last = inf
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
            self._rings_at = inf

    def _ring_at(self, at: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm, self._rings_at = self._loop.call_at(at, self._ring), at

    def _ring(self) -> None:
        self._alarm, self._rings_at = None, inf
        if self._at == inf:
            return
        if self._loop.time() < self._at:
            self._ring_at(self._at)
        else:
            self._at = inf
            self._missed()


def _nothing() -> None:
    pass
