"""The memory budget of conversions.

A converted body stays in memory until its receiver has read it, and all bodies share one budget of
bytes. Networks of clients that hold fewer bytes have priority. So if one network sends as fast as
possible, other clients wait only for its current bodies. The parsed elements of a large body need
many times its bytes, but only one heavy body is converted at a time (`conversion_threads`).
"""

import asyncio
from collections.abc import AsyncIterator
from io import BytesIO
from typing import NamedTuple

import msgspec

from gateway.base.errors import FaultCode, FaultError, temporary_fault
from gateway.http.bounds import SlowBody, SlowClients
from gateway.http.client.message import ClientExchange

AT_ONCE = 64 * 1024
"""The maximum bytes of a small body. A larger body is converted in a thread, so that other requests
do not wait for it."""
# The budget in bytes. All bodies share _ALL. Large bodies of networks that hold at most _LITTLE may
# also use _SPARE, so that other networks cannot lock them out. Small bodies may also use _SPARE and
# _SMALL. `limits.convert` is the limit for a single body, and may be larger than _ALL.
_ALL = 64 * 1024 * 1024
_SPARE = 16 * 1024 * 1024
_LITTLE = 8 * 1024 * 1024
_SMALL = 16 * 1024 * 1024
PATIENCE = 5.0
"""The maximum seconds for which a body waits for room in the budget. A light body also waits at
most this long for its conversion."""


class _Waiting(NamedTuple):
    holder: "ConversionShare"
    more: int
    change: asyncio.Future[None]


class ConversionBudget:
    """`slow` has the exchanges that hold bytes because a client or service is slow."""

    def __init__(self) -> None:
        self._held = 0
        self._shares: dict[str, int] = {}  # the bytes of large bodies, by network
        self._waiting: list[_Waiting] = []
        self.slow = SlowClients(0, lambda: self._waiting)

    def take(self, holder: "ConversionShare", more: int) -> bool:
        """Reserve more bytes if the budget has room, and return whether it had.

        A large body gets no bytes while an exchange of a network that holds fewer bytes is waiting.
        """
        if not self._fits(holder, more):
            return False
        if self._waiting and holder.held + more > AT_ONCE:
            share = self._share(holder)
            if any(self._share(each.holder) < share for each in self._waiting):
                return False
        self._hold(holder, more)
        return True

    async def wait(self, holder: "ConversionShare", more: int) -> None:
        """Wait for room and reserve more bytes; raises FaultError after the time limit."""
        change = asyncio.get_running_loop().create_future()
        waiting = _Waiting(holder, more, change)
        self._waiting.append(waiting)
        self._end_deadlock()
        self.slow.make_way()
        try:
            async with asyncio.timeout(PATIENCE):
                await change
        except TimeoutError:
            raise overloaded() from None
        finally:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
                self._grant()

    def give_back(self, holder: "ConversionShare") -> None:
        """Release all bytes of a holder, and grant free bytes to waiting holders."""
        if holder.held > AT_ONCE:
            network = holder.network
            self._shares[network] -= holder.held
            if not self._shares[network]:
                del self._shares[network]
        self._held -= holder.held
        holder.held = 0
        self._grant()

    def _grant(self) -> None:
        kept_free = False
        for each in sorted(self._waiting, key=lambda each: self._share(each.holder)):
            small = each.holder.held + each.more <= AT_ONCE
            if each.change.done() or not self._fits(each.holder, each.more):
                kept_free = True
            elif small or not kept_free:
                self._waiting.remove(each)
                self._hold(each.holder, each.more)
                each.change.set_result(None)
        self.slow.make_way()

    def _end_deadlock(self) -> None:
        """Fail one waiting holder if none can finish, because waiting bodies hold all memory."""
        held = sum(each.holder.held for each in self._waiting)
        if any(held + each.more <= max(_ALL, each.holder.limit) for each in self._waiting):
            return
        last = max(reversed(self._waiting), key=lambda each: self._share(each.holder))
        self._waiting.remove(last)
        if not last.change.done():
            last.change.set_exception(overloaded())

    def _fits(self, holder: "ConversionShare", more: int) -> bool:
        most = max(_ALL, holder.limit)
        if holder.held + more <= AT_ONCE:
            most += _SPARE + _SMALL
        elif self._held + more > most and self._share(holder) + more <= _LITTLE:
            most += _SPARE
        return self._held + more <= most

    def _share(self, holder: "ConversionShare") -> int:
        return self._shares.get(holder.network, 0)

    def _hold(self, holder: "ConversionShare", more: int) -> None:
        before = holder.held if holder.held > AT_ONCE else 0
        self._held += more
        holder.held += more
        if holder.held > AT_ONCE:
            network = holder.network
            self._shares[network] = self._shares.get(network, 0) + holder.held - before


def overloaded() -> FaultError:
    detail = "Too many bodies are being converted; try again."
    return FaultError(temporary_fault(FaultCode.OVERLOADED, detail))


_budget = ConversionBudget()


class ConversionShare(msgspec.Struct):
    """The share of one exchange in the memory budget, with the limits for its bodies.

    Attributes:
        limit: The maximum size of one body in bytes, both before and after decoding.
        sender: The client's exchange; None if no client is waiting, as for a shadow.
        held: The number of bytes that the exchange holds. Only the budget changes it. They are
            released at the end of the exchange.
    """

    limit: int
    elements: int
    sender: ClientExchange | None = None
    held: int = 0
    _network: str | None = None

    @property
    def network(self) -> str:
        """The network of the client's address, whose clients share its bytes; empty without one."""
        if self._network is None:
            self._network = "" if self.sender is None else self.sender.network()
        return self._network

    @property
    def holders(self) -> SlowClients:
        return _budget.slow

    async def gather(self, pieces: AsyncIterator[bytes], length: int = 0) -> bytes:
        """Collect a whole body, reserving bytes for each piece when it arrives; raises FaultError.

        For a large body, the declared `length` is reserved at once. Otherwise, several incomplete
        bodies could wait for each other.
        """
        if length > AT_ONCE:
            await self._hold(length)
        body = _Gathered(self.held - length if length > AT_ONCE else self.held)
        if self.held <= AT_ONCE:
            async for piece in pieces:
                if more := body.add(piece, self.held):
                    await self._hold(more)
                if self.held > AT_ONCE:
                    break
        if self.held > AT_ONCE:
            await self._gather_rest(pieces, body)
        return body.bytes.getvalue()

    async def _gather_rest(self, pieces: AsyncIterator[bytes], body: "_Gathered") -> None:
        async for piece in SlowBody(pieces, _budget.slow, overloaded):
            if more := body.add(piece, self.held):
                await self._hold(more)

    async def _hold(self, more: int) -> None:
        if not _budget.take(self, more):
            await _budget.wait(self, more)

    async def grow(self, size: int) -> None:
        """Reserve bytes up to `size`, waiting for room if necessary; raises FaultError."""
        more = size - self.held
        if more > 0:
            await self._hold(more)

    def release(self) -> None:
        _budget.give_back(self)


class _Gathered:
    """The pieces of a body. `before` is the number of bytes already reserved for other purposes."""

    def __init__(self, before: int) -> None:
        self.bytes = BytesIO()  # does not copy its content when it grows
        self._size = before

    def add(self, piece: bytes, held: int) -> int:
        self.bytes.write(piece)
        self._size += len(piece)
        return max(0, self._size - held)
