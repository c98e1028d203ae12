"""The concurrency limiter of a service: bounds the requests in flight and those that wait."""

import asyncio

from gateway.base.errors import Fault, FaultCode, FaultError
from gateway.http.bounds.slow_holders import SlowHolders
from gateway.http.turns.fair_line import FairLine

# From a quarter of the places on, those who are slow to take their answers give way to others.
_SPARED_SHARE = 4


class ConcurrencyLimiter:
    """Bounds the requests in flight to one service; the networks of clients have turns.

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
        self._waiting = FairLine[None]()
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

    async def enter(self, network: str) -> None:
        """Take a slot, and wait for it if none is free.

        Raises:
            FaultError: too many requests wait already, or no slot became free in time.
        """
        if self.entered():
            return
        full = len(self._waiting) >= self._line
        if full and not self._waiting.displace(network, overloaded()):
            raise overloaded()
        place = self._waiting.join(network)
        self.slow.make_way()
        try:
            async with asyncio.timeout(self._patience):
                await place
        except BaseException as error:
            if place.done() and not place.cancelled() and place.exception() is None:
                self.leave()  # the slot was granted just as the wait ended
            else:
                self._waiting.leave(network, place)
            if isinstance(error, TimeoutError):
                raise overloaded() from None
            raise

    def leave(self) -> None:
        """Release a slot, or pass it to the next waiting request."""
        place = self._waiting.pop() if self._waiting.size else None
        if place is None:
            self._inside -= 1
        else:
            place.set_result(None)


def overloaded() -> FaultError:
    """Return the fault for a request that gets no place at its service in time."""
    fault = Fault(
        FaultCode.OVERLOADED,
        "The backend has as many requests as it can take; try again.",
        fields=((b"Retry-After", b"1"),),
    )
    return FaultError(fault)
