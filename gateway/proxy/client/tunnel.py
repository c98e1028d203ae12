"""The client's bytes, once it speaks another protocol than HTTP."""

import asyncio
from collections.abc import Callable

# Beyond this much unread, the client is made to wait.
_HIGH_WATER = 64 * 1024


class Tunnel:
    """Takes what the client sends, for one reader; aiohttp's connection feeds it as a parser.

    Attributes:
        received: how many bytes came.

    Args:
        pause: makes the client wait.
        resume: lets it go on.
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
        """Return the next bytes, empty at the end."""
        while not self._pieces and not self._ended:
            self._news.clear()
            await self._news.wait()
        data = b"".join(self._pieces)
        if self._size > _HIGH_WATER:
            self._resume()
        self._pieces, self._size = [], 0
        return data

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Take bytes; the answer says that there is no end and nothing is left."""
        self._pieces.append(data)
        self.received += len(data)
        before, self._size = self._size, self._size + len(data)
        if before <= _HIGH_WATER < self._size:
            self._pause()
        self._news.set()
        return False, b""

    def feed_eof(self) -> None:
        """Take the end."""
        self._ended = True
        self._news.set()
