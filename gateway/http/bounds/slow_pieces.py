"""SlowPieces: a body that ends early where its sender is slow and others wait for what it holds."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Self

from gateway.base.errors import FaultError
from gateway.http.bounds.slow_holders import SLOW_BYTES, SLOW_SECONDS, SlowHolders


class SlowPieces:
    """The pieces of a body, whose sender is a slow holder while too few bytes come.

    Only the time in which a piece is waited for counts, not that in which it is taken.

    Args:
        pieces: the pieces of the body.
        holders: the slow holders of what this body holds.
        had_to_end: returns the fault that ends the body, for others to have what it holds.
    """

    def __init__(
        self,
        pieces: AsyncIterator[bytes],
        holders: SlowHolders,
        had_to_end: Callable[[], FaultError],
    ) -> None:
        self._pieces = pieces
        self._holders = holders
        self._had_to_end = had_to_end
        self._left = SLOW_SECONDS
        self._came = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(None) as limit:

                def give_way() -> None:
                    limit.reschedule(loop.time())

                timer = loop.call_later(max(0.0, self._left), self._holders.add, give_way)
                try:
                    piece = await anext(self._pieces)
                finally:
                    timer.cancel()
                    self._holders.remove(give_way)
        except TimeoutError:
            raise self._had_to_end() from None
        self._left -= loop.time() - began
        self._came += len(piece)
        if self._came >= SLOW_BYTES:
            self._left, self._came = SLOW_SECONDS, 0
        return piece
