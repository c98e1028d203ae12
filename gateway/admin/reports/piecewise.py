"""Large answers in pieces, between which the event loop has a turn.

A gateway of one process answers its clients on the same event loop: they would wait for all that
is made at once.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TypeVar

from aiohttp import web

_T = TypeVar("_T")


async def send_pieces(
    request: web.Request, pieces: Iterable[bytes], fields: Mapping[str, str]
) -> web.StreamResponse:
    """Answer with a body in pieces; each is made when the client has taken those before it.

    Args:
        request: the request.
        pieces: the body; what each of them needs to be made has to be short.
        fields: the header fields of the answer.
    """
    answer = web.StreamResponse(headers=fields)
    await answer.prepare(request)
    for piece in pieces if request.method == "GET" else ():
        await answer.write(piece)
        await asyncio.sleep(0)  # requests that came meanwhile have their turn
    return answer


def batches(items: Iterable[_T], most: int) -> Iterator[list[_T]]:
    """Yield items in lists of at most so many."""
    rest = iter(items)
    while batch := list(islice(rest, most)):
        yield batch
