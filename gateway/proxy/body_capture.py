"""Copies the bodies of an exchange while they are forwarded, within a memory budget."""

from collections.abc import AsyncIterator, Callable
from io import BytesIO

from gateway.base.headers import HeaderFields
from gateway.http.upstream.upstream import UpstreamResponse


class CaptureBudget:
    def __init__(self, most: int) -> None:
        self._left = most

    def take(self, size: int) -> bool:
        if size > self._left:
            return False
        self._left -= size
        return True

    def give_back(self, size: int) -> None:
        self._left += size


class CapturedBody:
    """`lost` says why the copy is incomplete; None while it may still become complete."""

    __slots__ = ("_budget", "_copy", "_most", "_size", "lost")

    def __init__(self, budget: CaptureBudget, most: int) -> None:
        self._budget = budget
        self._most = most
        self._copy = BytesIO()  # a list of small pieces would use many times their size
        self._size = 0
        self.lost: str | None = None

    def keep(self, piece: bytes) -> None:
        """Add a piece. If it exceeds a limit, the whole copy is discarded."""
        if self.lost is not None:
            return
        if self._size + len(piece) > self._most:
            self.drop("large")
        elif not self._budget.take(len(piece)):
            self.drop("memory")
        else:
            self._copy.write(piece)
            self._size += len(piece)

    def whole(self) -> bytes:
        return self._copy.getvalue()

    def drop(self, why: str) -> None:
        self.lost = self.lost or why
        self._budget.give_back(self._size)
        self._copy, self._size = BytesIO(), 0

    async def of(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for piece in pieces:
            self.keep(piece)
            yield piece


class CapturingResponse:
    """A response whose body is copied; at its end, `over` gets whether all of it was read."""

    __slots__ = (
        "_copy",
        "_over",
        "_response",
        "_unread",
        "_whole",
        "address",
        "fields",
        "holders",
        "reason",
        "sized",
        "status",
        "switched",
        "target",
    )

    def __init__(
        self,
        response: UpstreamResponse,
        copy: CapturedBody | None,
        over: Callable[[bool], None],
    ) -> None:
        self._response = response
        self._copy = copy
        self._over = over
        self._whole = False
        self._unread = 0
        self.status: int = response.status
        self.reason: bytes = response.reason
        self.fields: HeaderFields = response.fields
        self.sized: bool = response.sized
        self.switched: bool = response.switched
        self.target: str = response.target
        self.address = response.address
        self.holders = response.holders

    @property
    def complete(self) -> bool:
        return self._response.complete

    @property
    def trailers(self) -> HeaderFields:
        return self._response.trailers

    async def read(self) -> bytes:
        piece = await self._response.read()
        if self._copy is not None:
            self._copy.keep(piece[self._unread :])
            self._unread = 0
        # A read returns all bytes that have arrived. If the body is complete now, this was the last
        # read.
        self._whole = self._response.complete
        return piece

    def unread(self, data: bytes) -> None:
        """Give back bytes that were read. They are not copied again."""
        self._response.unread(data)
        self._unread += len(data)

    async def write(self, data: bytes) -> None:
        await self._response.write(data)

    def release(self) -> None:
        self._response.release()

    def abandon(self) -> None:
        self._response.abandon()
        self._over(self._whole)
