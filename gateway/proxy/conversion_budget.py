"""The byte budget of conversions.

A body that is converted is held whole, from its first byte until its receiver has taken it. All of
them share one budget of bytes. A network of clients that holds much leaves the rest to others, so
one client that sends large bodies as fast as it can keeps no other client waiting for longer than
its bodies take. The elements of large bodies, which take many times the memory of their bytes,
exist only during the conversion itself, of one heavy body at a time (`conversion_threads`).
"""

import asyncio
from collections.abc import AsyncIterator
from io import BytesIO
from typing import NamedTuple, Protocol

import msgspec

from gateway.base.errors import Fault, FaultCode, FaultError
from gateway.http.bounds import SlowBody, SlowClients
from gateway.http.client.message import ClientExchange

AT_ONCE = 64 * 1024
"""A body of more bytes is large: it is converted in a thread, so that others do not wait for it."""
# The budget of all bodies, and what is beside it: for large bodies of clients that hold little, so
# that those that hold much do not keep them out, and for small bodies. A single body is bounded by
# `limits.convert`, which may be larger.
_ALL = 64 * 1024 * 1024
_SPARE = 16 * 1024 * 1024
_LITTLE = 8 * 1024 * 1024
_SMALL = 16 * 1024 * 1024
PATIENCE = 5.0
"""For how many seconds a body waits for others: to make room, or, if light, to be converted."""


class Holder(Protocol):
    """Who holds bytes of the budget; an exchange.

    Attributes:
        limit: the maximum size in bytes of one body.
        held: the number of bytes that are held, which the budget changes.
        network: the network of the client's address; those of one network share what they hold.
    """

    limit: int
    held: int

    @property
    def network(self) -> str: ...


class _Waiting(NamedTuple):
    holder: Holder
    more: int
    change: asyncio.Future[None]


class ConversionBudget:
    """The bytes that this process holds for conversions.

    Attributes:
        slow: those who hold them for slow clients or services.
    """

    def __init__(self) -> None:
        self._held = 0
        self._shares: dict[str, int] = {}  # of large bodies, by network
        self._waiting: list[_Waiting] = []
        self.slow = SlowClients(0, lambda: self._waiting)

    def take(self, holder: Holder, more: int) -> bool:
        """Reserve more bytes if they fit; return whether they do.

        There is none for a large body while another client waits that holds less.
        """
        if not self._fits(holder, more):
            return False
        if self._waiting and holder.held + more > AT_ONCE:
            share = self._share(holder)
            if any(self._share(each.holder) < share for each in self._waiting):
                return False
        self._hold(holder, more)
        return True

    async def wait(self, holder: Holder, more: int) -> None:
        """Reserve more bytes, as soon as they fit.

        Raises:
            FaultError: there is none in time.
        """
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

    def give_back(self, holder: Holder) -> None:
        """Take back all that is held, and let those have it that wait."""
        if holder.held > AT_ONCE:
            network = holder.network
            self._shares[network] -= holder.held
            if not self._shares[network]:
                del self._shares[network]
        self._held -= holder.held
        holder.held = 0
        self._grant()

    def _grant(self) -> None:
        """Grant what is free: to large bodies in the order of what their clients hold."""
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
        """Have one give up if bodies that wait hold so much that none of them can become whole."""
        held = sum(each.holder.held for each in self._waiting)
        if any(held + each.more <= max(_ALL, each.holder.limit) for each in self._waiting):
            return
        last = max(reversed(self._waiting), key=lambda each: self._share(each.holder))
        self._waiting.remove(last)
        if not last.change.done():
            last.change.set_exception(overloaded())

    def _fits(self, holder: Holder, more: int) -> bool:
        most = max(_ALL, holder.limit)
        if holder.held + more <= AT_ONCE:
            most += _SPARE + _SMALL
        elif self._held + more > most and self._share(holder) + more <= _LITTLE:
            most += _SPARE
        return self._held + more <= most

    def _share(self, holder: Holder) -> int:
        return self._shares.get(holder.network, 0)

    def _hold(self, holder: Holder, more: int) -> None:
        before = holder.held if holder.held > AT_ONCE else 0
        self._held += more
        holder.held += more
        if holder.held > AT_ONCE:
            network = holder.network
            self._shares[network] = self._shares.get(network, 0) + holder.held - before


def overloaded() -> FaultError:
    """Return the fault for a body that finds no room, or no time, to be converted."""
    detail = "As many bodies as possible are being converted; try again."
    again = ((b"Retry-After", b"1"),)
    return FaultError(Fault(FaultCode.OVERLOADED, detail, fields=again))


_budget = ConversionBudget()


class ConversionShare(msgspec.Struct):
    """The share of one exchange in the budget.

    Attributes:
        limit: the maximum size in bytes of one body, both coded and decoded.
        elements: the maximum number of elements of one body.
        sender: the client; None for what no client waits for.
        held: the number of bytes that are held; to be released at the end of the exchange.
    """

    limit: int
    elements: int
    sender: ClientExchange | None = None
    held: int = 0
    _network: str | None = None

    @property
    def network(self) -> str:
        """The network of the client's address; those of one network share what they hold."""
        if self._network is None:
            self._network = "" if self.sender is None else self.sender.network()
        return self._network

    @property
    def holders(self) -> SlowClients:
        """Those who hold bytes of the budget for slow clients."""
        return _budget.slow

    async def gather(self, pieces: AsyncIterator[bytes], length: int = 0) -> bytes:
        """Return a whole body, which is held piece by piece as it comes.

        Args:
            pieces: the body.
            length: its declared length in bytes; that of a large body is held at once, so that it
                does not wait for its end while others wait for theirs.

        Raises:
            FaultError: there is no room for it in time, or it came slowly and had to make room.
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
        """Gather what is still to come of a large body, as long as it need not make room."""
        async for piece in SlowBody(pieces, _budget.slow, overloaded):
            if more := body.add(piece, self.held):
                await self._hold(more)

    async def _hold(self, more: int) -> None:
        if not _budget.take(self, more):
            await _budget.wait(self, more)

    async def grow(self, size: int) -> None:
        """Reserve this number of bytes in all, as soon as they fit; raises FaultError."""
        more = size - self.held
        if more > 0:
            await self._hold(more)

    def release(self) -> None:
        """Give back all that is held."""
        _budget.give_back(self)


class _Gathered:
    """What has come of a body.

    Args:
        before: the number of bytes that were held before it.
    """

    def __init__(self, before: int) -> None:
        self.bytes = BytesIO()  # grows without copying what it has
        self._size = before

    def add(self, piece: bytes, held: int) -> int:
        """Add a piece; return how many bytes more have to be held for it."""
        self.bytes.write(piece)
        self._size += len(piece)
        return max(0, self._size - held)
