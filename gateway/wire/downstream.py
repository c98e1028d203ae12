"""The response on its way to the client: HTTP/1.1 framing, and backpressure."""

from email.utils import formatdate
from http import HTTPStatus

from aiohttp.http import HttpVersion10
from aiohttp.web import BaseRequest

from gateway.core.headers import Fields
from gateway.wire.exchange import Exchange

_REASONS = {status.value: status.phrase.encode() for status in HTTPStatus}


class Downstream:
    """Writes one response. aiohttp's server takes it for the response object that it awaits.

    The head is written from raw field lines, so that every byte, the order and the case of what a
    service sent reach the client; aiohttp's own response classes would decode and rebuild them.
    """

    def __init__(self, request: BaseRequest, exchange: Exchange, *, keep_alive: bool) -> None:
        self._exchange = exchange
        self._protocol = request.protocol
        self._old = request.version <= HttpVersion10
        self._chunked = False
        self.keep_alive = keep_alive and request.keep_alive
        self.begun = False

    def inform(self, status: int, fields: Fields) -> None:
        """Pass on an interim response (RFC 9110, section 15.2); HTTP/1.0 knows none."""
        if not self._old and not self.begun:
            self._write(_lines(status, b"", fields) + b"\r\n")

    def begin(self, status: int, reason: bytes, fields: Fields) -> None:
        """Write the head of a response whose body comes in pieces; fields are end-to-end."""
        self._write(self._framed(status, reason, fields))

    async def write(self, piece: bytes) -> None:
        """Write a piece of the body, and wait while the client is slower than the service."""
        self._exchange.bytes_sent += len(piece)
        self._write(b"%x\r\n%b\r\n" % (len(piece), piece) if self._chunked else piece)
        if self._protocol.writing_paused:
            await self._protocol._drain_helper()  # noqa: SLF001

    def end(self) -> None:
        """End a body that came in pieces."""
        if self._chunked:
            self._write(b"0\r\n\r\n")

    def send(self, status: int, reason: bytes, fields: Fields, body: bytes) -> None:
        """Write a whole response at once."""
        head = self._framed(status, reason, fields)
        self._exchange.bytes_sent = len(body)
        if self._chunked:
            body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
        self._write(head + body)

    def send_head(self, status: int, reason: bytes, fields: Fields) -> None:
        """Write a response that has no body, whatever its fields say of one (HEAD, 204, 304)."""
        self._write(self._head(status, reason, fields))

    def abort(self) -> None:
        """Cut the connection, so that nobody takes what was sent for the whole."""
        self.keep_alive = False
        transport = self._protocol.transport
        if transport is not None:
            transport.abort()

    def _framed(self, status: int, reason: bytes, fields: Fields) -> bytes:
        if any(name.lower() == b"content-length" for name, _ in fields):
            return self._head(status, reason, fields)
        if self._old:  # the end of the connection is the end of the body
            self.keep_alive = False
            return self._head(status, reason, fields)
        self._chunked = True
        return self._head(status, reason, [*fields, (b"Transfer-Encoding", b"chunked")])

    def _head(self, status: int, reason: bytes, fields: Fields) -> bytes:
        self.begun = True
        self._exchange.status = status
        head = _lines(status, reason, fields)
        # RFC 9110, section 6.6.1: a response without a date gets the time of its receipt.
        if not any(name.lower() == b"date" for name, _ in fields):
            head += b"Date: " + formatdate(usegmt=True).encode() + b"\r\n"
        if not self.keep_alive:
            head += b"Connection: close\r\n"
        elif self._old:
            head += b"Connection: keep-alive\r\n"
        return head + b"\r\n"

    def _write(self, data: bytes) -> None:
        transport = self._protocol.transport
        if transport is None:
            raise ConnectionResetError("the client left")
        transport.write(data)

    # What aiohttp's server calls once the handler returns; everything is written by then.

    async def prepare(self, request: BaseRequest) -> None:
        """Do nothing."""

    async def write_eof(self) -> None:
        """Do nothing."""


def _lines(status: int, reason: bytes, fields: Fields) -> bytes:
    lines = [b"HTTP/1.1 %d %b\r\n" % (status, reason or _REASONS.get(status, b""))]
    for name, value in fields:
        lines += (name, b": ", value, b"\r\n")
    return b"".join(lines)
