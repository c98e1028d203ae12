"""Turns of the event loop between the pieces of long work."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from time import perf_counter
from typing import TypeVar
from weakref import WeakKeyDictionary

from gateway.http.turns.fair_turns import FairTurns

_T = TypeVar("_T")


# How long a piece may take, in seconds.
_PIECE = 0.001


_fair = WeakKeyDictionary[asyncio.AbstractEventLoop, FairTurns]()


async def turn(address: str) -> None:
    """Return when a piece may be made: one in a turn of the event loop, of all answers together.

    Args:
        address: of the client; each address has a share.
    """
    loop = asyncio.get_running_loop()
    fair = _fair.setdefault(loop, FairTurns())
    await fair.take(address)
    loop.call_soon(fair.end)


async def turns(items: Iterable[_T]) -> AsyncIterator[_T]:
    """Yield items; the event loop has turns before, and after each millisecond.

    Args:
        items: what each of them needs to be made has to be short.
    """
    await turn("")
    until = perf_counter() + _PIECE
    for item in items:
        yield item
        if perf_counter() >= until:
            await turn("")
            until = perf_counter() + _PIECE
