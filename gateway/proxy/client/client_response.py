"""The response on its way to the client: HTTP/1.1 framing, and backpressure."""

import asyncio
import socket
import struct
import time
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Protocol

from aiohttp.http import HttpVersion10, RawRequestMessage

from gateway.core.headers import HeaderFields, end_to_end
from gateway.proxy.client.tunnel import Tunnel

_REASONS = {status.value: status.phrase.encode() for status in HTTPStatus}
# What a response that never has a body must not hold (RFC 9110, section 8.6).
_LENGTH = frozenset({b"content-length"})
_NONE: HeaderFields = []
# Linger on, for no time: what makes close() a reset.
_RESET = struct.pack("ii", 1, 0)


class ClientTransport(Protocol):
    """What a response needs of the connection that it is written to."""

    transport: asyncio.Transport | None

    def switch(self) -> Tunnel:
        """Stop parsing HTTP; return what reads the client's bytes from here on."""
        ...

    @property
    def writing_paused(self) -> bool:
        """Whether the client reads more slowly than we write."""
        ...

    async def drain(self) -> None:
        """Wait until the client has taken some; raises ConnectionError if it does not."""
        ...


class ClientResponse:
    """Writes one response.

    The head is written from raw field lines, so that every byte, the order and the case of what a
    service sent reach the client.

    Attributes:
        keep_alive: whether another request can follow on the connection.
        status: of the final response; 0 until its head is written.
        bytes_sent: of the body, framing excluded.
    """

    __slots__ = ("_chunked", "_connection", "_old", "bytes_sent", "keep_alive", "status")

    def __init__(self, connection: ClientTransport, message: RawRequestMessage) -> None:
        self._connection = connection
        self._old = message.version <= HttpVersion10
        self._chunked = False
        self.keep_alive = not message.should_close
        self.status = 0
        self.bytes_sent = 0

    def inform(self, status: int, fields: HeaderFields) -> None:
        """Pass on an interim response (RFC 9110, section 15.2); HTTP/1.0 knows none."""
        if not self._old and not self.status:
            lines, _ = _lines(status, b"", end_to_end(fields, _LENGTH))
            self._write(b"".join((*lines, b"\r\n")))

    def begin(self, status: int, reason: bytes, fields: HeaderFields, *, sized: bool) -> None:
        """Write the head of a response whose body comes in pieces.

        Args:
            status: the final status.
            reason: its phrase; empty for the usual one.
            fields: end-to-end fields.
            sized: whether they hold Content-Length.
        """
        self._frame(sized=sized)
        self._write(self._head(status, reason, fields))

    async def write(self, piece: bytes) -> None:
        """Write a piece of the body, and wait while the client is slower than the service."""
        self.bytes_sent += len(piece)
        self._write(b"%x\r\n%b\r\n" % (len(piece), piece) if self._chunked else piece)
        if self._connection.writing_paused:
            await self._connection.drain()

    def end(self, trailers: HeaderFields) -> None:
        """End a body that came in pieces; fields can stand behind it where it is chunked."""
        if self._chunked:
            self._write(_last_chunk(trailers))

    def send(
        self,
        status: int,
        reason: bytes,
        fields: HeaderFields,
        body: bytes,
        *,
        sized: bool = True,
        trailers: HeaderFields = _NONE,
    ) -> None:
        """Write a whole response at once; see `begin` and `end` for the arguments."""
        self._frame(sized=sized)
        self.bytes_sent = len(body)
        if self._chunked:
            chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            body = chunk + _last_chunk(trailers)
        self._write(self._head(status, reason, fields) + body)

    def switch(self, fields: HeaderFields) -> Tunnel:
        """Write the head of a 101 response; return what reads the client's bytes behind it.

        Until the connection ends, `write` writes to it what the other protocol says.
        """
        tunnel = self._connection.switch()
        self.keep_alive = False
        self.status = 101
        lines, _ = _lines(101, b"", fields)
        self._write(b"".join((*lines, b"\r\n")))
        return tunnel

    def send_head(self, status: int, reason: bytes, fields: HeaderFields) -> None:
        """Write a response that has no body, whatever its fields say of one (HEAD, 204, 304)."""
        if status == 204:
            fields = end_to_end(fields, _LENGTH)
        self._write(self._head(status, reason, fields))

    def abort(self) -> None:
        """Cut the connection, so that nobody takes what was sent for the whole."""
        self.keep_alive = False
        reset(self._connection.transport)

    def _frame(self, *, sized: bool) -> None:
        if sized:
            return
        if self._old:
            self.keep_alive = False  # the end of the connection is the end of the body
        else:
            self._chunked = True

    def _head(self, status: int, reason: bytes, fields: HeaderFields) -> bytes:
        self.status = status
        lines, dated = _lines(status, reason, fields)
        if self._chunked:
            lines.append(b"Transfer-Encoding: chunked\r\n")
        if not dated:
            # RFC 9110, section 6.6.1: a response without a date gets the time of its receipt.
            lines.append(_date(int(time.time())))
        if not self.keep_alive:
            lines.append(b"Connection: close\r\n")
        elif self._old:
            lines.append(b"Connection: keep-alive\r\n")
        lines.append(b"\r\n")
        return b"".join(lines)

    def _write(self, data: bytes) -> None:
        transport = self._connection.transport
        if transport is None:
            raise ConnectionResetError("the client left")
        transport.write(data)


def reset(transport: asyncio.Transport | None) -> None:
    """End a connection by a reset.

    Where the end of the connection is the end of the body (HTTP/1.0), an orderly end would say
    that this was all.
    """
    if transport is not None and not transport.is_closing():
        end = transport.get_extra_info("socket")
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        transport.abort()


def _last_chunk(trailers: HeaderFields) -> bytes:
    return b"".join((b"0\r\n", *(b"%b: %b\r\n" % line for line in trailers), b"\r\n"))


def _lines(status: int, reason: bytes, fields: HeaderFields) -> tuple[list[bytes], bool]:
    lines = [b"HTTP/1.1 %d %b\r\n" % (status, reason or _REASONS.get(status, b""))]
    dated = False
    for name, value in fields:
        lines += (name, b": ", value, b"\r\n")
        if len(name) == 4 and name.lower() == b"date":
            dated = True
    return lines, dated


@lru_cache(maxsize=2)
def _date(second: int) -> bytes:
    return b"Date: " + formatdate(second, usegmt=True).encode() + b"\r\n"
