"""A response while it arrives."""

import asyncio
from collections.abc import Callable
from typing import Protocol, Self

from gateway.core.headers import HeaderFields

# Beyond this much unread body, the service is made to wait.
_HIGH_WATER = 256 * 1024


class ResponseTransport(Protocol):
    """What a response needs of the connection that it comes by."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop."""
        ...

    def expect_bytes(self) -> None:
        """Start the clock for the next bytes of the body."""
        ...

    def pause(self) -> None:
        """Make the service wait."""
        ...

    def resume(self) -> None:
        """Let the service go on."""
        ...

    async def write(self, data: bytes) -> None:
        """Send bytes of another protocol."""
        ...

    def close(self) -> None:
        """Drop the connection at once."""
        ...


class StreamedResponse:
    """A response while it arrives; see `upstream.Response`."""

    __slots__ = (
        "_connection",
        "_pieces",
        "_size",
        "_waiter",
        "complete",
        "ended",
        "error",
        "fields",
        "head",
        "reason",
        "sized",
        "status",
        "switched",
        "target",
        "trailers",
    )

    def __init__(self, connection: ResponseTransport, target: str) -> None:
        self._connection = connection
        self._pieces: list[bytes] = []
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self.complete = False
        self.ended: Callable[[StreamedResponse], None] | None = None
        self.error: Exception | None = None
        self.head = False
        self.status = 0
        self.reason = b""
        self.fields: HeaderFields = []
        self.sized = False
        self.switched = False
        self.target = target
        self.trailers: HeaderFields = []

    async def arrived(self) -> Self:
        """Return the response when its head is there; who gives up waiting gives it up.

        Raises:
            Failed: it will not come.
            Stale: nor did the service see the request, most likely.
        """
        try:
            while not self.head:
                if self.error is not None:
                    raise self.error
                self._waiter = waiter = self._connection.loop.create_future()
                await waiter
        except BaseException:
            self._connection.close()
            self.error = None  # its traceback leads here: neither would go before a collection
            raise
        return self

    async def read(self) -> bytes:
        """Return the next bytes of the body, empty at its end; raises Failed."""
        while not self._pieces:
            if self.complete and self.error is None:
                return b""
            if not self.switched:
                self._connection.expect_bytes()
            await self.progress()
        pieces = self._pieces
        self._pieces = []
        if self._size > _HIGH_WATER and not self.complete:
            self._connection.resume()
        self._size = 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def write(self, data: bytes) -> None:
        """Send bytes of the protocol that was switched to."""
        await self._connection.write(data)

    def release(self) -> None:
        """Count no longer as a request in flight."""
        ended, self.ended = self.ended, None
        if ended is not None:
            ended(self)

    def abandon(self) -> None:
        """Read no more, and count no longer as a request in flight."""
        if not self.complete:
            self._connection.close()
        ended, self.ended = self.ended, None
        if ended is not None:
            ended(self)

    def feed(self, data: bytes) -> None:
        """Take a piece of the body."""
        self._pieces.append(data)
        self._size += len(data)
        if self._size > _HIGH_WATER:
            self._connection.pause()
        self.wake()

    def wake(self) -> None:
        """Let the reader look again."""
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def progress(self) -> None:
        """Return when there is more of it than before; raises Failed or Stale."""
        if self.error is not None:
            raise self.error
        self._waiter = self._connection.loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
