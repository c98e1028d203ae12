"""The response of a service, streamed while it arrives."""

import asyncio
from collections.abc import Callable
from typing import Any, Final, Protocol, Self

from gateway.base.headers import HeaderFields
from gateway.http.bounds.deadline import Deadline
from gateway.http.bounds.slow_holders import SlowHolders
from gateway.http.upstream.service import Timeouts

# With more bytes of the body than this since the reader last waited for some, reading from the
# service pauses until it does again. So what the reader is still passing on counts as well.
_HIGH_WATER: Final = 64 * 1024
# With more unread pieces than this, the parser leaves others a turn.
_CROWDED = 128

SMALL: Final = 64 * 1024
"""A body of at most so many bytes is awaited for a moment, so that it leaves in one write."""
MOMENT = 0.005
"""The time, in seconds, that the rest of a small body is awaited."""


class ResponseTransport(Protocol):
    """The part of a connection that its response uses.

    Attributes:
        loop: the event loop.
        deadline: the deadline for what is awaited of the service.
        timeouts: the timeouts of the exchange.
    """

    loop: asyncio.AbstractEventLoop
    deadline: Deadline
    timeouts: Timeouts

    def pause(self) -> None:
        """Pause reading from the service."""
        ...

    def resume(self) -> None:
        """Resume reading from the service."""
        ...

    async def write(self, data: bytes) -> None:
        """Send bytes of the protocol that the connection switched to."""
        ...

    def close(self) -> None:
        """Drop the connection at once."""
        ...


class StreamedResponse:
    """A response that is read while it arrives; implements `UpstreamResponse`.

    Attributes:
        ended: a function that is called with the response, once, when no more of it is read.
        lent: what that function goes by.
        small: whether the body is small, so that the response is handed on when it is complete.
    """

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
        "holders",
        "lent",
        "reason",
        "sized",
        "small",
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
        self.holders: SlowHolders | None = None
        self.lent: Any = None
        self.status = 0
        self.reason = b""
        self.fields: HeaderFields = []
        self.sized = False
        self.small = False
        self.switched = False
        self.target = target
        self.trailers: HeaderFields = []

    @property
    def crowded(self) -> bool:
        """Whether much was parsed: many pieces since the last ones were read, or trailer fields."""
        return len(self._pieces) > _CROWDED or bool(self.trailers)

    async def arrived(self) -> Self:
        """Wait for the head and return the response; cancelling the wait closes the connection.

        A small body has arrived as well then, unless it takes longer than a moment.

        Raises:
            FaultError: the response cannot arrive any more.
            StaleConnectionError: the service most likely did not receive the request.
        """
        try:
            while not self.head or (self.small and not self.complete and self.error is None):
                if self.error is not None:
                    raise self.error
                self._waiter = waiter = self._connection.loop.create_future()
                await waiter
        except BaseException:
            self._connection.close()
            self.error = None  # its traceback refers to this frame: a cycle
            raise
        return self

    async def read(self) -> bytes:
        """Return the next bytes of the body, empty at its end; raises FaultError."""
        while not self._pieces:
            if self.complete and self.error is None:
                return b""
            if self._size > _HIGH_WATER or self.switched:
                self._connection.resume()
            self._size = 0
            if not self.switched:
                self._connection.deadline.set(self._connection.timeouts.between_bytes)
            await self.progress()
        pieces = self._pieces
        self._pieces = []
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def unread(self, data: bytes) -> None:
        """Give back the bytes that were read, so that the next read returns them first."""
        self._pieces.insert(0, data)

    async def write(self, data: bytes) -> None:
        """Send bytes of the protocol that the connection switched to."""
        await self._connection.write(data)

    def release(self) -> None:
        """Stop counting as a request in flight."""
        ended, self.ended = self.ended, None
        if ended is not None:
            ended(self)

    def abandon(self) -> None:
        """Stop reading the response, and stop counting as a request in flight."""
        if not self.complete:
            self._connection.close()
        ended, self.ended = self.ended, None
        if ended is not None:
            ended(self)

    def feed(self, data: bytes) -> None:
        """Add a received piece of the body."""
        self._pieces.append(data)
        self._size += len(data)
        if self._waiter is not None and not self.small:
            self._connection.deadline.clear()
            self.wake()
        if self._size > _HIGH_WATER or self.switched:  # one piece of a tunnel at a time
            self._connection.pause()

    def hand_on(self) -> None:
        """Hand the response on with what has arrived of its body."""
        self.small = False
        self.wake()

    def wake(self) -> None:
        """Wake the task that waits for progress."""
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            if not waiter.done():  # not cancelled
                waiter.set_result(None)

    async def progress(self) -> None:
        """Wait until more has arrived; raises FaultError or StaleConnectionError."""
        if self.error is not None:
            raise self.error
        self._waiter = waiter = self._connection.loop.create_future()
        await waiter
