"""Large answers and long views in pieces, between which the event loop has a turn.

A gateway of one process answers its clients on the same event loop: they would wait for all that
is made at once.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from itertools import islice
from time import perf_counter
from typing import TypeVar
from weakref import WeakKeyDictionary

from aiohttp import web

from gateway.proxy.turns.fair_turns import FairTurns
from gateway.state.state_changes import StateError
from gateway.telemetry import log

_T = TypeVar("_T")
# How long a piece may take, in seconds.
_PIECE = 0.001
_fair = WeakKeyDictionary[asyncio.AbstractEventLoop, FairTurns]()


async def send_pieces(
    request: web.Request,
    pieces: Iterable[bytes] | AsyncIterable[bytes],
    fields: Mapping[str, str],
) -> web.StreamResponse:
    """Answer with a body in pieces; each is made when the client has taken those before it.

    Args:
        request: the request.
        pieces: the body; what each of them needs to be made has to be short. Where a StateError
            ends them, the connection is closed.
        fields: the header fields of the answer.
    """
    answer = web.StreamResponse(headers=fields)
    await answer.prepare(request)
    if request.method != "GET":
        return answer
    left = aiter(pieces if isinstance(pieces, AsyncIterable) else _each(pieces))
    try:
        while True:
            await _turn(request.remote or "")
            await answer.write(await anext(left))
    except StopAsyncIteration:
        pass
    except StateError as error:
        # Without an end, so that nobody takes it for whole.
        log.event("admin_answer_cut", "warning", path=request.path, reason=str(error))
        if request.transport is not None:
            request.transport.close()
    return answer


async def _turn(address: str) -> None:
    """Return when a piece may be made: one in a turn of the event loop, of all answers together.

    Args:
        address: of the client; each address has a share.
    """
    loop = asyncio.get_running_loop()
    fair = _fair.setdefault(loop, FairTurns())
    await fair.take(address)
    loop.call_soon(fair.end)


async def _each(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def turns(items: Iterable[_T]) -> AsyncIterator[_T]:
    """Yield items; the event loop has turns before, and after each millisecond.

    Args:
        items: what each of them needs to be made has to be short.
    """
    await _turn("")
    until = perf_counter() + _PIECE
    for item in items:
        yield item
        if perf_counter() >= until:
            await _turn("")
            until = perf_counter() + _PIECE


def batches(items: Iterable[_T], most: int) -> Iterator[list[_T]]:
    """Yield items in lists of at most so many."""
    rest = iter(items)
    while batch := list(islice(rest, most)):
        yield batch
