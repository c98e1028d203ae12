"""The concurrency limiter of a service: bounds the requests in flight and those that wait.

A client that sends or takes next to nothing costs its sender nothing, and holds a place at a
service or memory for a conversion as long as it likes. So while others wait for these, the one that
has been slow for the longest loses them.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sized
from contextlib import suppress

from gateway.core.errors import Fault, FaultCode, FaultError

# From a quarter of the places on, those who are slow to take their answers give way to others.
_SPARED_SHARE = 4


SECONDS = 5.0
"""A client is slow if less than `SHARE` bytes passed in so many seconds."""
SHARE = 64 * 1024
"""The bytes that pass to or from a client that is not slow."""


class SlowHolders:
    """Who is slow at the moment, the longest first.

    Args:
        spared: so many may be slow, whoever waits.
        waiting: those who wait for what they hold.
    """

    def __init__(self, spared: int, waiting: Callable[[], Sized]) -> None:
        self._spared = spared
        self._waiting = waiting
        self._slow: dict[Callable[[], None], None] = {}
        self._ending: set[Callable[[], None]] = set()

    def add(self, give_way: Callable[[], None]) -> None:
        """Count a holder as slow; `give_way` is called at most once, to have it end."""
        if give_way not in self._ending:
            self._slow.setdefault(give_way)
            self.make_way()

    def remove(self, give_way: Callable[[], None]) -> None:
        """Count a holder as slow no more; it may have ended."""
        self._slow.pop(give_way, None)
        self._ending.discard(give_way)

    def make_way(self) -> None:
        """Have a holder give way to each who waits, as long as more than those spared are slow."""
        while len(self._ending) < len(self._waiting()) and len(self._slow) > self._spared:
            give_way = next(iter(self._slow))
            del self._slow[give_way]
            self._ending.add(give_way)
            give_way()


class ConcurrencyLimiter:
    """Bounds the requests in flight to one service.

    Args:
        limit: the maximum number of requests in flight.
        line: the maximum number of waiting requests.
        patience: the maximum time that a request may wait, in seconds.

    Attributes:
        slow: those whose slow clients keep the service waiting, and so a slot.
    """

    def __init__(self, limit: int, line: int, patience: float) -> None:
        self._limit = limit
        self._line = line
        self._patience = patience
        self._inside = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.slow = SlowHolders(limit // _SPARED_SHARE, lambda: self._waiting)

    @property
    def half_full(self) -> bool:
        """Whether half of the limit is used, which leaves no room for background requests."""
        return self._inside * 2 >= self._limit

    def entered(self) -> bool:
        """Take a slot if one is free; return whether one was."""
        if self._inside >= self._limit:
            return False
        self._inside += 1
        return True

    async def enter(self) -> None:
        """Take a slot, and wait for it if none is free.

        Raises:
            FaultError: too many requests wait already, or no slot became free in time.
        """
        if self.entered():
            return
        if len(self._waiting) >= self._line:
            raise _overloaded()
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        self.slow.make_way()
        try:
            async with asyncio.timeout(self._patience):
                await place
        except BaseException as error:
            if place.done() and not place.cancelled():
                self.leave()  # the slot was granted just as the wait ended
            else:
                with suppress(ValueError):
                    self._waiting.remove(place)
            if isinstance(error, TimeoutError):
                raise _overloaded() from None
            raise

    def leave(self) -> None:
        """Release a slot, or pass it to the next waiting request."""
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        self._inside -= 1


def _overloaded() -> FaultError:
    fault = Fault(
        FaultCode.OVERLOADED,
        "The backend has as many requests as it can take; try again.",
        fields=((b"Retry-After", b"1"),),
    )
    return FaultError(fault)
