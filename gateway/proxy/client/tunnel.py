"""A tunnel: the bytes from a client after the connection switched to another protocol."""

import asyncio
from collections.abc import Callable

# With more unread bytes than this, reading from the client pauses.
_HIGH_WATER = 64 * 1024


class Tunnel:
    """Buffers the bytes from a client for one reader; aiohttp's connection feeds it as a parser.

    Attributes:
        received: the number of bytes received.

    Args:
        pause: a function that pauses reading from the client.
        resume: a function that resumes reading from the client.
    """

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._pause = pause
        self._resume = resume
        self._pieces: list[bytes] = []
        self._size = 0
        self.received = 0
        self._ended = False
        self._news = asyncio.Event()

    async def read(self) -> bytes:
        """Return the next bytes, empty at the end of the connection."""
        while not self._pieces and not self._ended:
            self._news.clear()
            await self._news.wait()
        data = b"".join(self._pieces)
        if self._size > _HIGH_WATER:
            self._resume()
        self._pieces, self._size = [], 0
        return data

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Add received bytes; return, as a parser, that no end came and no bytes are left."""
        self._pieces.append(data)
        self.received += len(data)
        before, self._size = self._size, self._size + len(data)
        if before <= _HIGH_WATER < self._size:
            self._pause()
        self._news.set()
        return False, b""

    def feed_eof(self) -> None:
        """Record the end of the connection."""
        self._ended = True
        self._news.set()
