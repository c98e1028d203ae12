"""A tunnel: the bytes from a client after the connection switched to another protocol."""

import asyncio
from collections.abc import Callable


class Tunnel:
    """Hands on the bytes from a client, piece by piece; aiohttp's connection feeds it as a parser.

    The client waits from each piece until the next one is asked for.

    Attributes:
        received: the number of bytes received.

    Args:
        pause: a function that pauses reading from the client.
        resume: a function that resumes reading from the client.
    """

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._pause = pause
        self._resume = resume
        self._data = b""
        self.received = 0
        self._ended = False
        self._news = asyncio.Event()

    async def read(self) -> bytes:
        """Return the next bytes, empty at the end of the connection."""
        if not self._data and not self._ended:
            self._news.clear()
            self._resume()
            await self._news.wait()
        data, self._data = self._data, b""
        return data

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Add received bytes; return, as a parser, that no end came and no bytes are left."""
        self._data += data
        self.received += len(data)
        self._pause()
        self._news.set()
        return False, b""

    def feed_eof(self) -> None:
        """Record the end of the connection."""
        self._ended = True
        self._news.set()
