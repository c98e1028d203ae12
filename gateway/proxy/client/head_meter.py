"""How much of a request's head is here while it is not whole: the parser shows whole ones only."""

from collections.abc import Iterable

from aiohttp.http import RawRequestMessage

# A length of more digits is refused, and what follows it dropped.
_DIGITS = 18
_BLANK_LINE = b"\r\n\r\n"


class HeadMeter:
    """Follows the bytes of a connection from request to request, next to the parser.

    Where the parser holds bytes back, because too much waits to be answered or read, it is behind
    the meter; the meter then starts again from nothing, so that it may count too few, never too
    many. What is held back has a bound of its own.

    Attributes:
        unfinished: the bytes of the head that has begun and is not whole; of a body in chunks,
            those since its last bytes of content, which are framing and trailer fields.
    """

    __slots__ = ("_due", "unfinished")

    def __init__(self) -> None:
        self.unfinished = 0
        self._due: int | None = None  # of the body that is arriving, if it has a length

    def add_head(self, data: bytes) -> None:
        """Take bytes that complete no head."""
        self.unfinished += len(data)

    def add_body(self, data: bytes, *, content: bool, ended: bool) -> None:
        """Take bytes that came while a body was arriving.

        Args:
            data: the bytes.
            content: whether some of them were content.
            ended: whether the body has ended with them.
        """
        if self._due is not None:
            self._due -= len(data)
        if ended:
            self.unfinished = max(0, -(self._due or 0))
            self._due = None
        elif content:
            self.unfinished = 0
        else:
            self.unfinished += len(data)

    def add_requests(self, data: bytes, before: bytes, requests: Iterable[object]) -> None:
        """Take bytes that complete the heads of some requests.

        Args:
            data: the bytes.
            before: those that came last before them, three or more if there were so many.
            requests: what the parser made of them, in order.
        """
        text = before[-3:] + data if self.unfinished else data
        position = self._due or 0
        self.unfinished, self._due = 0, None
        for request in requests:
            end = text.find(_BLANK_LINE, position)
            if end < 0 or not isinstance(request, RawRequestMessage) or request.chunked:
                return  # out of step, or nothing can follow on this connection
            length = request.headers.get("Content-Length", "0")
            if len(length) > _DIGITS:
                return  # it will be refused
            position = end + 4 + int(length)
        if position > len(text):
            self._due = position - len(text)
        else:
            # Empty lines before a request line are ignored (RFC 9112, section 2.2).
            self.unfinished = len(text[position:].lstrip(b"\r\n"))
