"""Measures incomplete request heads, since the parser reports only complete ones."""

from collections.abc import Iterable

from aiohttp.http import RawRequestMessage

# A request with a length of more digits is refused, and the connection closes.
_DIGITS = 18
_BLANK_LINE = b"\r\n\r\n"


class HeadMeter:
    """Counts the bytes of an incomplete head, in parallel with the parser.

    When too many requests or bytes of a body are waiting, the parser holds bytes back and falls
    behind the meter. The meter then restarts at zero, so it may count too few bytes, never too
    many. The bytes held back have a limit of their own.

    Attributes:
        unfinished: the number of bytes of the incomplete head; in a chunked body, the number of
            bytes since the last content, which are framing and trailer fields.
    """

    __slots__ = ("_due", "unfinished")

    def __init__(self) -> None:
        self.unfinished = 0
        self._due: int | None = None  # bytes due of a body with a length

    def add_head(self, data: bytes) -> None:
        """Count bytes that complete no head."""
        self.unfinished += len(data)

    def add_body(self, data: bytes, *, content: bool, ended: bool) -> bool:
        """Count bytes that arrived during a body; return whether they surely end with it.

        Args:
            data: the received bytes.
            content: whether some of these bytes were content of the body.
            ended: whether the body ended in these bytes.
        """
        if self._due is not None:
            self._due -= len(data)
        last = ended and self._due == 0
        if ended:
            self.unfinished = max(0, -(self._due or 0))
            self._due = None
        elif content:
            self.unfinished = 0
        else:
            self.unfinished += len(data)
        return last

    def add_requests(self, data: bytes, before: bytes, requests: Iterable[object]) -> bool:
        """Count bytes that complete some heads; return whether they surely end with a request.

        Args:
            data: the received bytes.
            before: the last bytes received before `data`, at least three if there were so many.
            requests: the requests that the parser found in these bytes, in order.
        """
        text = before[-3:] + data if self.unfinished else data
        position = self._due or 0
        self.unfinished, self._due = 0, None
        for request in requests:
            end = text.find(_BLANK_LINE, position)
            if end < 0 or not isinstance(request, RawRequestMessage) or request.chunked:
                return False  # the parser is behind, or no request can follow
            length = request.headers.get("Content-Length", "0")
            if len(length) > _DIGITS:
                return False  # the request will be refused
            position = end + 4 + int(length)
        if position > len(text):
            self._due = position - len(text)
        else:
            # Empty lines before a request line are ignored (RFC 9112, section 2.2).
            self.unfinished = len(text[position:].lstrip(b"\r\n"))
        return position == len(text)
