"""Capture: the bodies of one exchange, kept while they pass on, within a bound."""

from collections.abc import AsyncIterator, Callable

from gateway.core.headers import HeaderFields
from gateway.proxy.upstream.upstream import UpstreamResponse


class CaptureBudget:
    """Bytes that may be kept at a time, by all exchanges together."""

    def __init__(self, most: int) -> None:
        self._left = most

    def take(self, size: int) -> bool:
        """Take some; return whether they were there."""
        if size > self._left:
            return False
        self._left -= size
        return True

    def give_back(self, size: int) -> None:
        """Return what was taken."""
        self._left += size


class CapturedBody:
    """What has passed of a body.

    Attributes:
        lost: why there is no whole copy, in a word; None while there may be one.
    """

    __slots__ = ("_budget", "_most", "_pieces", "_size", "lost")

    def __init__(self, budget: CaptureBudget, most: int) -> None:
        self._budget = budget
        self._most = most
        self._pieces: list[bytes] = []
        self._size = 0
        self.lost: str | None = None

    def keep(self, piece: bytes) -> None:
        """Keep a piece; the first one that is too much loses all."""
        if self.lost is not None:
            return
        if self._size + len(piece) > self._most:
            self.drop("large")
        elif not self._budget.take(len(piece)):
            self.drop("memory")
        else:
            self._pieces.append(piece)
            self._size += len(piece)

    def whole(self) -> bytes:
        """Return all that was kept."""
        return b"".join(self._pieces)

    def drop(self, why: str) -> None:
        """Keep nothing any more."""
        self.lost = self.lost or why
        self._budget.give_back(self._size)
        self._pieces, self._size = [], 0

    async def of(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the pieces of a request body as they pass."""
        async for piece in pieces:
            self.keep(piece)
            yield piece


class CapturingResponse:
    """A response that is passed on as it comes; see `upstream.Response`.

    Args:
        response: the response.
        copy: keeps its body.
        over: called once it is passed on or given up, with whether all of it was read.
    """

    __slots__ = (
        "_copy",
        "_over",
        "_response",
        "_whole",
        "fields",
        "reason",
        "sized",
        "status",
        "switched",
        "target",
    )

    def __init__(
        self, response: UpstreamResponse, copy: CapturedBody, over: Callable[[bool], None]
    ) -> None:
        self._response = response
        self._copy = copy
        self._over = over
        self._whole = False
        self.status: int = response.status
        self.reason: bytes = response.reason
        self.fields: HeaderFields = response.fields
        self.sized: bool = response.sized
        self.switched: bool = response.switched
        self.target: str = response.target

    @property
    def complete(self) -> bool:
        """Whether all of the body has arrived."""
        return self._response.complete

    @property
    def trailers(self) -> HeaderFields:
        """Return the fields behind the body."""
        return self._response.trailers

    async def read(self) -> bytes:
        """Return the next bytes of the body."""
        piece = await self._response.read()
        self._copy.keep(piece)
        # A read takes all that is there, so there is no more once the last of it has arrived.
        self._whole = self._response.complete
        return piece

    async def write(self, data: bytes) -> None:
        """Send bytes of the protocol that was switched to."""
        await self._response.write(data)

    def release(self) -> None:
        """Count no longer as a request in flight."""
        self._response.release()

    def abandon(self) -> None:
        """Read no more."""
        self._response.abandon()
        self._over(self._whole)
