"""The room for conversions: bounds the bodies that one process holds to convert them.

A body that is converted is held whole, from its first byte until its receiver has taken it. All of
them together share one budget of bytes. The elements of large bodies, which take many times the
memory of their bytes, exist only during the conversion itself, one at a time
(`conversion_thread`).
"""

import asyncio
from collections.abc import AsyncIterator
from io import BytesIO

import msgspec

from gateway.core.errors import Fault, FaultCode, FaultError
from gateway.proxy.bounds.slow_holders import SLOW_BYTES, SLOW_SECONDS, SlowHolders

AT_ONCE = 64 * 1024
"""A body of more bytes is large: it is converted in a thread, so that others do not wait for it."""
# The budget of all bodies, and what small bodies may take beside it, so that large ones do not keep
# them out. A single body is bounded by `limits.convert`, which may be larger.
_ALL = 64 * 1024 * 1024
_SMALL = 16 * 1024 * 1024
# For how many seconds a body waits for others to make room.
_PATIENCE = 5.0


class _Budget:
    """The bytes that this process holds for conversions, and who holds them for slow clients."""

    def __init__(self) -> None:
        self.held = 0
        self._waiting: list[asyncio.Future[None]] = []
        self.slow = SlowHolders(0, lambda: self._waiting)

    async def change(self) -> None:
        """Wait until bytes are given back."""
        change = asyncio.get_running_loop().create_future()
        self._waiting.append(change)
        self.slow.make_way()
        await change

    def give_back(self, size: int) -> None:
        """Give bytes back, and let those that wait look again."""
        self.held -= size
        waiting, self._waiting = self._waiting, []
        for change in waiting:
            if not change.done():
                change.set_result(None)


_budget = _Budget()


class ConversionRoom(msgspec.Struct):
    """The share of one exchange in the budget.

    Attributes:
        limit: the maximum size in bytes of one body, both coded and decoded.
        elements: the maximum number of elements of one body.
        held: the number of bytes that are held; to be released at the end of the exchange.
    """

    limit: int
    elements: int
    held: int = 0

    def take(self, more: int) -> bool:
        """Hold so many bytes more, if there is room for them; return whether there is."""
        most = max(_ALL, self.limit)
        if self.held + more <= AT_ONCE:
            most += _SMALL
        if _budget.held + more > most:
            return False
        _budget.held += more
        self.held += more
        return True

    @property
    def holders(self) -> SlowHolders:
        """Those who hold bytes of the budget for slow clients."""
        return _budget.slow

    async def collect(self, body: AsyncIterator[bytes], collected: BytesIO) -> None:
        """Collect what is still to come of a large body.

        Raises:
            FaultError: there is no room for it in time, or it came slowly and had to make room.
        """
        loop = asyncio.get_running_loop()
        slow = _budget.slow
        try:
            async with asyncio.timeout(None) as limit:

                def give_way() -> None:
                    limit.reschedule(loop.time())

                came, timer = 0, loop.call_later(SLOW_SECONDS, slow.add, give_way)
                try:
                    async for piece in body:
                        if not self.take(len(piece)):
                            await self.wait(len(piece))
                        collected.write(piece)
                        came += len(piece)
                        if came >= SLOW_BYTES:
                            timer.cancel()
                            slow.remove(give_way)
                            came, timer = 0, loop.call_later(SLOW_SECONDS, slow.add, give_way)
                finally:
                    timer.cancel()
                    slow.remove(give_way)
        except TimeoutError:
            raise overloaded() from None

    async def grow(self, size: int) -> None:
        """Hold so many bytes in all, as soon as there is room for them; raises FaultError."""
        more = size - self.held
        if more > 0 and not self.take(more):
            await self.wait(more)

    async def wait(self, more: int) -> None:
        """Hold so many bytes more, as soon as there is room for them.

        Raises:
            FaultError: there is none in time.
        """
        try:
            async with asyncio.timeout(_PATIENCE):
                while not self.take(more):
                    await _budget.change()
        except TimeoutError:
            raise overloaded() from None

    def release(self) -> None:
        """Give back all that is held."""
        _budget.give_back(self.held)
        self.held = 0


def overloaded() -> FaultError:
    """Return the fault for a body that finds no room, or no time, to be converted."""
    detail = "As many bodies as possible are being converted; try again."
    again = ((b"Retry-After", b"1"),)
    return FaultError(Fault(FaultCode.OVERLOADED, detail, fields=again))
