"""The room for conversions: bounds the bodies that one process holds to convert them.

A body that is converted is held whole, from its first byte until its receiver has taken it. All of
them together share one budget of bytes. The elements of large bodies, which take many times the
memory of their bytes, exist only during the conversion itself, of one heavy body at a time
(`conversion_thread`).
"""

from collections.abc import AsyncIterator
from io import BytesIO
from typing import Protocol

import msgspec

from gateway.http.bounds.slow_holders import SlowHolders
from gateway.http.bounds.slow_pieces import SlowPieces
from gateway.proxy.body.conversion_budget import AT_ONCE, ConversionBudget, overloaded

_budget = ConversionBudget()


class Sender(Protocol):
    """The client of a request."""

    def network(self) -> str:
        """Return the network of its address."""
        ...


class ConversionRoom(msgspec.Struct):
    """The share of one exchange in the budget.

    Attributes:
        limit: the maximum size in bytes of one body, both coded and decoded.
        elements: the maximum number of elements of one body.
        sender: the client; None for what no client waits for.
        held: the number of bytes that are held; to be released at the end of the exchange.
    """

    limit: int
    elements: int
    sender: Sender | None = None
    held: int = 0
    _network: str | None = None

    @property
    def network(self) -> str:
        """The network of the client's address; those of one network share what they hold."""
        if self._network is None:
            self._network = "" if self.sender is None else self.sender.network()
        return self._network

    @property
    def holders(self) -> SlowHolders:
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
        async for piece in SlowPieces(pieces, _budget.slow, overloaded):
            if more := body.add(piece, self.held):
                await self._hold(more)

    async def _hold(self, more: int) -> None:
        if not _budget.take(self, more):
            await _budget.wait(self, more)

    async def grow(self, size: int) -> None:
        """Hold so many bytes in all, as soon as there is room for them; raises FaultError."""
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
