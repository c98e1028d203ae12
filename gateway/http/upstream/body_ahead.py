"""Prevents slow senders of request bodies from occupying all places of a busy service.

Small bodies are read completely before the request takes a place. Larger bodies that are still
arriving may occupy only a share of the service's places.
"""

from collections.abc import AsyncIterator, Callable
from io import BytesIO

from msgspec.structs import replace

from gateway.base import headers
from gateway.http.bounds import SlowBody, SlowClients, overloaded
from gateway.http.upstream.upstream import UpstreamRequest

# The maximum number of bytes that are read ahead of one body, and of all bodies together. Bodies
# beyond these limits are streamed.
_ONE = 64 * 1024
_ALL = 16 * 1024 * 1024
_EXPECT = frozenset({b"expect"})


class BodyReadAhead:
    def __init__(self) -> None:
        self._held = 0
        self._without_room: list[UpstreamRequest] = []
        self._slow = SlowClients(0, lambda: self._without_room)

    async def read(self, request: UpstreamRequest) -> UpstreamRequest:
        """Return the request with its body read ahead, as far as the limits allow.

        Raises FaultError if the body is too large, malformed or slow, or was aborted to free
        memory.
        """
        body = request.body
        large = request.length is not None and request.length > _ONE
        if not isinstance(body, AsyncIterator) or large:
            return request
        if any(name.lower() == b"expect" for name, _ in request.fields):
            if request.informational is not None:
                request.informational(100, [])
            request = replace(request, fields=headers.end_to_end(request.fields, _EXPECT))
        ahead, held = BytesIO(), 0  # a list of small pieces would take many times their size
        try:
            async for piece in SlowBody(body, self._slow, overloaded):
                ahead.write(piece)
                if ahead.tell() > _ONE or not self._has_room(request, len(piece)):
                    return replace(request, body=_joined(ahead.getvalue(), body))
                held += len(piece)
                self._held += len(piece)
        finally:
            self._held -= held
        whole = ahead.getvalue()
        return replace(request, body=_joined(whole, None) if request.length is None else whole)

    def _has_room(self, request: UpstreamRequest, more: int) -> bool:
        """Return whether `more` bytes fit into the budget; if not, abort a slow body."""
        if self._held + more <= _ALL:
            return True
        self._without_room.append(request)
        self._slow.make_way()
        self._without_room.pop()
        return False


class ArrivingBody:
    """A request body that occupies a place until it has completely arrived.

    While other requests wait for such a place, the bodies of slow clients are aborted.
    """

    def __init__(
        self, pieces: AsyncIterator[bytes], slow: SlowClients, leave: Callable[[], None]
    ) -> None:
        self._pieces = SlowBody(pieces, slow, overloaded)
        self._leave: Callable[[], None] | None = leave

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._pieces)
        except BaseException:  # this includes the end of the body
            self.leave()
            raise

    def leave(self) -> None:
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()


async def _joined(ahead: bytes, rest: AsyncIterator[bytes] | None) -> AsyncIterator[bytes]:
    if ahead:
        yield ahead
    if rest is not None:
        async for piece in rest:
            yield piece
