"""The response to the client: HTTP/1.1 framing and backpressure."""

import asyncio
import socket
import struct
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final, Protocol

from aiohttp.http import HttpVersion10, RawRequestMessage

from gateway.base.headers import FIELD_LINE, HeaderFields, end_to_end
from gateway.http.client.tunnel import Tunnel
from gateway.http.turns.turn_writes import TurnTransport

_REASONS = {status.value: status.phrase.encode() for status in HTTPStatus}
# The status lines of ordinary responses, which give the standard reason phrase or none.
_STATUS_LINES: Final = {
    (status, given): b"HTTP/1.1 %d %b" % (status, reason)
    for status, reason in _REASONS.items()
    for given in (b"", reason)
}
# Fields that a response without a body must not have (RFC 9110, section 8.6).
_LENGTH = frozenset({b"content-length"})
# A larger body is written as it is: to put it behind its head is to copy it, which takes
# milliseconds, while nobody else is answered.
_ONE_WRITE: Final = 64 * 1024
# SO_LINGER with zero seconds, which makes close() reset the connection.
_RESET = struct.pack("ii", 1, 0)

RequestMessage = RawRequestMessage | Any
"""The parsed head of a request; aiohttp's parser in C makes no tuple, unlike its types."""


class ClientTransport(Protocol):
    """The part of a client's connection that an exchange uses.

    Attributes:
        transport: the transport to write to; None once the connection is lost.
        peer: the IP address of the client.
        own: the address and port of the socket that the client connected to.
        stall_seconds: the seconds in which a client has to send, or receive, a share of a body.
    """

    transport: Any  # TurnTransport | None; aiohttp types it as asyncio's
    peer: str
    own: str
    stall_seconds: float

    def switch(self) -> Tunnel:
        """Stop parsing HTTP; return a tunnel that reads the client's bytes from now on."""
        ...

    @property
    def writing_paused(self) -> bool:
        """Whether the write buffer is full because the client reads too slowly."""
        ...

    async def drain(self) -> None:
        """Wait until the client has received bytes; raises ConnectionError if it does not."""
        ...

    def give_way(self) -> None:
        """Cut the connection, since others wait for what a slow client holds."""
        ...


class ClientResponse(Protocol):
    """The response of an exchange, as it is written to the client.

    The head is written from raw field lines, so that the bytes, the order and the case of the
    service's fields are preserved.

    Attributes:
        connection: the connection to write to.
        message: the parsed head of the request.
        chunked: whether the body is sent in chunks.
        keep_alive: whether another request can follow on the connection.
        status: the status code of the final response; 0 until its head is written.
        bytes_sent: the number of bytes of the body that were written, without the framing.
    """

    connection: ClientTransport
    message: RequestMessage
    chunked: bool
    keep_alive: bool
    status: int
    bytes_sent: int

    def inform(self, status: int, fields: HeaderFields) -> None:
        """Write an interim response (RFC 9110, section 15.2), except to HTTP/1.0 clients."""
        if not self.status and self.message.version > HttpVersion10:
            self._write(_head(status, end_to_end(fields, _LENGTH)))

    def begin(self, status: int, reason: bytes, fields: HeaderFields, *, sized: bool) -> None:
        """Write the head of a response whose body follows in pieces.

        Args:
            status: the final status code.
            reason: the reason phrase; empty for the standard one.
            fields: the end-to-end header fields.
            sized: whether the fields contain Content-Length.
        """
        if not sized:
            self._frame()
        self._write(self._final(status, reason, fields))

    async def write(self, piece: bytes) -> None:
        """Write a piece of the body, and wait while the client reads too slowly."""
        self.put(piece)
        if self.connection.writing_paused:
            await self.connection.drain()

    def put(self, piece: bytes) -> None:
        """Write a piece of the body, which is buffered while the client reads too slowly."""
        self.bytes_sent += len(piece)
        self._write(b"%x\r\n%b\r\n" % (len(piece), piece) if self.chunked else piece)

    async def taken(self) -> None:
        """Wait while the client reads too slowly."""
        if self.connection.writing_paused:
            await self.connection.drain()

    def end(self, trailers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        """End a body written in pieces; trailer fields are written only if it is chunked."""
        if self.chunked:
            self._write(_last_chunk(trailers))

    def send(
        self,
        status: int,
        reason: bytes,
        fields: HeaderFields,
        body: bytes,
        *,
        sized: bool = True,
        trailers: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        """Write a complete response at once; see `begin` and `end` for the arguments."""
        if not sized:
            self._frame()
        self.bytes_sent = len(body)
        if self.chunked:
            chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            body = chunk + _last_chunk(trailers)
        if self.bytes_sent <= _ONE_WRITE:
            self._transport().write_soon(self._final(status, reason, fields, body))
        else:
            self._write(self._final(status, reason, fields))
            self._write(body)

    def switch(self, fields: HeaderFields) -> Tunnel:
        """Write the head of a 101 response; return a tunnel that reads the client's bytes.

        From then on, `write` sends bytes of the other protocol.
        """
        tunnel = self.connection.switch()
        self.keep_alive = False
        self.status = 101
        self._write(_head(101, [line for line in fields if line[0].lower() not in _LENGTH]))
        return tunnel

    def send_head(self, status: int, reason: bytes, fields: HeaderFields) -> None:
        """Write a response that has no body, regardless of its fields (HEAD, 204, 304)."""
        if status == 204:
            fields = end_to_end(fields, _LENGTH)
        self._transport().write_soon(self._final(status, reason, fields))

    def abort(self) -> None:
        """Reset the connection, so that the client does not take the response for complete."""
        self.keep_alive = False
        reset(self.connection.transport)

    def _frame(self) -> None:
        if self.message.version <= HttpVersion10:
            self.keep_alive = False  # the end of the connection is the end of the body
        else:
            self.chunked = True

    def _final(self, status: int, reason: bytes, fields: HeaderFields, body: bytes = b"") -> bytes:
        self.status = status
        lines: list[bytes] = []
        if self.chunked:
            lines.append(b"Transfer-Encoding: chunked")
        if not self.keep_alive:
            lines.append(b"Connection: close")
        elif self.message.version <= HttpVersion10:
            lines.append(b"Connection: keep-alive")
        begin = _STATUS_LINES.get((status, reason)) or b"HTTP/1.1 %d %b" % (status, reason)
        return b"\r\n".join([begin, *map(FIELD_LINE, fields), *lines, b"", body])

    def _write(self, data: bytes) -> None:
        self._transport().write(data)

    def _transport(self) -> TurnTransport:
        transport: TurnTransport | None = self.connection.transport
        if transport is None:
            raise ConnectionResetError("the client left")
        return transport


def reset(transport: asyncio.Transport | None) -> None:
    """Reset a connection, also one that closes and has something left to send.

    If the body ends with the connection (HTTP/1.0), an orderly close would mark a truncated body as
    complete.
    """
    if transport is None or (transport.is_closing() and not transport.get_write_buffer_size()):
        return
    end = transport.get_extra_info("socket")
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    transport.abort()


def _last_chunk(trailers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"".join((b"0\r\n", *(b"%b: %b\r\n" % line for line in trailers), b"\r\n"))


def _head(status: int, fields: HeaderFields) -> bytes:
    """Return the head of a response, with the standard reason phrase."""
    begin = _STATUS_LINES.get((status, b"")) or b"HTTP/1.1 %d " % status
    return b"\r\n".join([begin, *map(FIELD_LINE, fields), b"", b""])
