"""Large responses in pieces, between which the event loop runs other tasks.

Creating a large response at once would delay the clients of a gateway with one process.
"""

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from itertools import islice

from aiohttp import web

from gateway.http.cooperative import _T, turn
from gateway.observe import log
from gateway.store.state import StateError


async def send_pieces(
    request: web.Request,
    pieces: Iterable[bytes] | AsyncIterable[bytes],
    fields: Mapping[str, str],
) -> web.StreamResponse:
    """Send a body in pieces, each created after the previous one was sent.

    Creating a piece must be quick. If it raises StateError, the connection is closed.
    """
    answer = web.StreamResponse(headers=fields)
    await answer.prepare(request)
    if request.method != "GET":
        return answer
    left = aiter(pieces if isinstance(pieces, AsyncIterable) else _each(pieces))
    try:
        while True:
            await turn(request.remote or "")
            await answer.write(await anext(left))
    except StopAsyncIteration:
        pass
    except StateError as error:
        # The final chunk is not sent, so clients detect that the body is incomplete.
        log.event("admin_answer_cut", "warning", path=request.path, reason=str(error))
        if request.transport is not None:
            request.transport.close()
    return answer


async def _each(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def batches(items: Iterable[_T], most: int) -> Iterator[list[_T]]:
    rest = iter(items)
    while batch := list(islice(rest, most)):
        yield batch
