"""RecordQueue: requests that have ended, recorded together at the end of a turn of the event loop.

The log and the counters have code and memory of their own. To run them once for all requests of a
turn, and not between the steps of requests, saves the processor from fetching both again and again.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from gateway.proxy.exchange import Exchange

# With so many, they are recorded at once, so that the end of a turn does not take long.
_MOST: Final = 64


class RecordQueue:
    """Holds exchanges that have ended, and hands each on once, in the order in which they ended.

    Args:
        loop: the event loop.
        record: records exchanges; it must not raise.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, record: Callable[[Sequence[Exchange]], None]
    ) -> None:
        self._loop = loop
        self._record = record
        self._waiting: list[Exchange] = []

    def add(self, exchange: Exchange) -> None:
        """Add an exchange that has ended."""
        waiting = self._waiting
        waiting.append(exchange)
        if len(waiting) == 1:
            self._loop.call_soon(self.flush)
        elif len(waiting) >= _MOST:
            self.flush()

    def flush(self) -> None:
        """Record what waits."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._record(waiting)
