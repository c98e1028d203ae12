"""The concurrency limiter of a service: requests in flight, and a bounded line of waiting ones."""

import asyncio
from collections import deque
from contextlib import suppress

from gateway.core.errors import Fault, FaultCode, FaultError


class ConcurrencyLimiter:
    """Bounds the requests in flight to one service.

    Args:
        limit: how many may be inside.
        line: how many may wait.
        patience: how long one may wait, in seconds.
    """

    def __init__(self, limit: int, line: int, patience: float) -> None:
        self._limit = limit
        self._line = line
        self._patience = patience
        self._inside = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def half_full(self) -> bool:
        """Whether there is no spare room: half of all is for the requests that clients wait for."""
        return self._inside * 2 >= self._limit

    def entered(self) -> bool:
        """Go inside if there is room; return whether there was."""
        if self._inside >= self._limit:
            return False
        self._inside += 1
        return True

    async def enter(self) -> None:
        """Return when inside.

        Raises:
            FaultError: the line is full, or it did not move in time.
        """
        if self.entered():
            return
        if len(self._waiting) >= self._line:
            raise _overloaded()
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            async with asyncio.timeout(self._patience):
                await place
        except BaseException as error:
            if place.done() and not place.cancelled():
                self.leave()  # let in at the very moment of giving up
            else:
                with suppress(ValueError):
                    self._waiting.remove(place)
            if isinstance(error, TimeoutError):
                raise _overloaded() from None
            raise

    def leave(self) -> None:
        """Make room for the next."""
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
