"""Keeps slow senders of request bodies from taking all the capacity of a busy service.

Small bodies are read ahead, before they take a place. Of the others, only a part of the places of
the service may be taken by bodies that are still arriving.
"""

from collections.abc import AsyncIterator, Callable

from msgspec.structs import replace

from gateway.core import headers
from gateway.proxy.upstream.upstream import UpstreamRequest

# The maximum bytes read ahead of one body and of all bodies together; beyond, bodies are streamed.
_ONE = 64 * 1024
_ALL = 16 * 1024 * 1024
_EXPECT = frozenset({b"expect"})


class BodiesAhead:
    """Reads small request bodies ahead, within a memory budget."""

    def __init__(self) -> None:
        self._held = 0

    async def read(self, request: UpstreamRequest) -> UpstreamRequest:
        """Return the request with its body read ahead as far as the bounds allow.

        Raises:
            FaultError: the body is too large, malformed, or does not arrive in time.
        """
        body = request.body
        large = request.length is not None and request.length > _ONE
        if not isinstance(body, AsyncIterator) or large or self._held + _ONE > _ALL:
            return request
        if any(name.lower() == b"expect" for name, _ in request.fields):
            if request.informational is not None:
                request.informational(100, [])
            request = replace(request, fields=headers.end_to_end(request.fields, _EXPECT))
        pieces: list[bytes] = []
        size = 0
        self._held += _ONE
        try:
            async for piece in body:
                pieces.append(piece)
                size += len(piece)
                if size > _ONE:
                    return replace(request, body=_joined(pieces, body))
        finally:
            self._held -= _ONE
        if request.length is not None:
            return replace(request, body=b"".join(pieces))
        return replace(request, body=_joined(pieces, None))


class ArrivingBody:
    """A request body that takes a place until all of it has arrived.

    Args:
        pieces: the pieces of the body.
        leave: a function that gives the place back.
    """

    def __init__(self, pieces: AsyncIterator[bytes], leave: Callable[[], None]) -> None:
        self._pieces = pieces
        self._leave: Callable[[], None] | None = leave

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._pieces)
        except BaseException:  # the end of the body is one
            self.leave()
            raise

    def leave(self) -> None:
        """Give the place back, once."""
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()


async def _joined(pieces: list[bytes], rest: AsyncIterator[bytes] | None) -> AsyncIterator[bytes]:
    if pieces:  # an empty chunk would be the last one
        yield b"".join(pieces)
    if rest is not None:
        async for piece in rest:
            yield piece
