"""A response of a service whose content codings are undone while it arrives."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from itertools import chain

from gateway.base.errors import FaultError
from gateway.base.headers import HeaderFields, end_to_end
from gateway.http.content_coding import ContentCodingError, StreamDecoder
from gateway.http.upstream.upstream import UpstreamHead

_CODING = frozenset({b"content-encoding"})


class DecodedResponse:
    """A response without its content codings; implements `UpstreamHead`.

    Args:
        response: the response.
        applied: its codings, in the order in which they were applied.
        failed: returns the error of a body that cannot be decoded.
        most: the maximum number of bytes that are kept as they came; None keeps none.

    Attributes:
        raw: the bytes that have come, which `unread` gives back; None if none are kept.

    Raises:
        ContentCodingError: a coding is unknown, or there are too many.
    """

    def __init__(
        self,
        response: UpstreamHead,
        applied: Sequence[str],
        failed: Callable[[object], FaultError],
        most: int | None = None,
    ) -> None:
        self._response = response
        self._decoder = StreamDecoder(applied)
        self._failed = failed
        self._most = most
        self._pieces: Iterator[bytes] = iter(())
        self.status: int = response.status
        self.fields: HeaderFields = end_to_end(response.fields, _CODING)
        self.target: str = response.target
        self.raw = None if most is None else BytesIO()
        self.complete = self._ended = False

    async def read(self) -> bytes:
        """Return the next bytes of the decoded body, empty at its end; raises FaultError."""
        try:
            while True:
                for piece in self._pieces:
                    if piece:
                        return piece
                    await asyncio.sleep(0)  # others have a turn while tiny members follow
                # A complete response may return its body at each read.
                data = b"" if self._ended else await self._response.read()
                self._ended = self._response.complete
                if not data:
                    self._decoder.end()
                    self.complete = True
                    return b""
                if self.raw is not None and self._most is not None:
                    self.raw.write(data)
                    if self.raw.tell() > self._most:
                        raise self._failed(f"it is larger than {self._most} bytes")
                self._pieces = self._decoder.pieces(data)
        except ContentCodingError as error:
            raise self._failed(error) from None

    def unread(self, data: bytes) -> None:
        """Give back the decoded bytes that were read; or all that came, if it is kept, coded."""
        if self.raw is None:
            self._pieces = chain((data,), self._pieces)
        else:
            self._response.unread(self.raw.getvalue())
