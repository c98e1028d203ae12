"""Deadlines that are set far more often than they are missed."""

import asyncio
from collections.abc import Callable
from math import inf


class Deadline:
    """One deadline, within a last one; setting it is mostly an assignment, for the timer is lazy.

    Args:
        loop: the event loop.
        missed: called when a deadline passes.
    """

    __slots__ = ("_alarm", "_at", "_last", "_loop", "_missed", "_rings_at")

    def __init__(self, loop: asyncio.AbstractEventLoop, missed: Callable[[], None]) -> None:
        self._loop = loop
        self._missed = missed
        self._alarm: asyncio.TimerHandle | None = None
        self._at = self._last = self._rings_at = inf

    def begin(self, seconds: float) -> None:
        """Set the last deadline, and no nearer one; infinite seconds set none."""
        self._last = inf
        if seconds < inf:
            self.set(seconds)
            self._last = self._at
        self._at = self._last

    def set(self, seconds: float) -> None:
        """Set the deadline; the last one holds if it is nearer."""
        at = self._loop.time() + seconds
        if at > self._last:
            at = self._last
        self._at = at
        if at < self._rings_at:
            self._ring_at(at)

    def clear(self) -> None:
        """Set no deadline but the last one."""
        self._at = self._last  # no alarm is set: there is one, and none later than the last

    def cancel(self) -> None:
        """Miss none any more: who owns this is over, and goes at once if nothing here names it."""
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
