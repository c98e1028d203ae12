"""The request and the response of one exchange with a client, and the state of its socket."""

import asyncio
import re
import secrets
import select
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from fcntl import ioctl
from functools import lru_cache
from http import HTTPStatus
from ipaddress import IPv6Address
from itertools import count
from termios import TIOCOUTQ
from time import perf_counter
from typing import Any, Final, Protocol, Self
from urllib.parse import quote

from aiohttp import StreamReader
from aiohttp.http import HttpVersion10, HttpVersion11, RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD
from aiohttp.web import RequestPayloadError
from multidict import istr

from gateway.base.addresses import Network, client_site
from gateway.base.errors import Fault, FaultCode, FaultError
from gateway.base.headers import (
    FIELD_LINE,
    GATEWAY_FIELDS,
    METHOD_OVERRIDES,
    HeaderFields,
    accepts_trailers,
    connection_options,
    end_to_end,
)
from gateway.base.request import RequestHead
from gateway.http.limits import Limits
from gateway.http.transport import BatchingTransport

# Reported when the client has closed its side. Only on Linux; other systems report a reset early,
# but an orderly close only after all earlier bytes are read.
_CLOSED: int = getattr(select, "POLLRDHUP", 0)


def unsent_bytes(transport: asyncio.Transport) -> int:
    """Return the number of bytes in the write buffer plus the unacknowledged bytes in the kernel.

    The bytes in the kernel's buffer count because the write buffer may not shrink for minutes while
    a slow client reads: the kernel's buffer holds megabytes, and it accepts further bytes only when
    a third of it is free.
    """
    waiting = transport.get_write_buffer_size()
    end = transport.get_extra_info("socket")
    if end is not None and end.fileno() >= 0:
        with suppress(OSError):  # macOS does not report the bytes in its buffer
            (queued,) = struct.unpack("i", ioctl(end.fileno(), TIOCOUTQ, b"\0\0\0\0"))
            waiting += queued
    return waiting


def has_left(transport: asyncio.Transport, *, reset: bool) -> bool:
    """Return whether the client has closed its side or, with `reset`, reset the connection.

    Each check costs a system call. The event loop detects the same, but only while it reads.
    """
    end = transport.get_extra_info("socket")
    if end is None or end.fileno() < 0:
        return False
    poll = select.poll()
    poll.register(end.fileno(), 0 if reset else _CLOSED)  # a reset is always reported
    return bool(poll.poll(0))


class Tunnel:
    """Forwards the bytes of a client piece by piece; aiohttp's connection feeds it like a parser.

    Reading from the client is paused after each piece until the next call of `read`.
    """

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._pause = pause
        self._resume = resume
        self._data = b""
        self.received = 0
        self._ended = False
        self._news = asyncio.Event()

    async def read(self) -> bytes:
        """Return the next bytes, empty at the end of the connection."""
        if not self._data and not self._ended:
            self._news.clear()
            self._resume()
            await self._news.wait()
        data, self._data = self._data, b""
        return data

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Add received bytes; return `(False, b"")` as a parser that needs more input does."""
        self._data += data
        self.received += len(data)
        self._pause()
        self._news.set()
        return False, b""

    def feed_eof(self) -> None:
        self._ended = True
        self._news.set()


_REASONS = {status.value: status.phrase.encode() for status in HTTPStatus}
# The status lines of ordinary responses, which have the standard reason phrase or an empty one.
_STATUS_LINES: Final = {
    (status, given): b"HTTP/1.1 %d %b" % (status, reason)
    for status, reason in _REASONS.items()
    for given in (b"", reason)
}
# Fields that a response without a body must not have (RFC 9110, section 8.6).
_LENGTH = frozenset({b"content-length"})
# The maximum size of a body that is written together with its head, in bytes. Joining a larger body
# with its head copies it, which blocks other requests for milliseconds.
_ONE_WRITE: Final = 64 * 1024
# SO_LINGER with zero seconds, which makes close() reset the connection.
_RESET = struct.pack("ii", 1, 0)

RequestMessage = RawRequestMessage | Any
"""The parsed head of a request; aiohttp's parser in C returns no tuple, contrary to its types."""


# WebSocket, the streams of Docker (`docker exec`) and those of older kubectl (`kubectl exec`). No
# version of HTTP is among them, since the gateway would not see the requests in the tunnel.
_TUNNELLED: Final = frozenset({"websocket", "tcp", "spdy/3.1"})


def tunnelled(message: RequestMessage) -> bytes | None:
    """Return the protocol of an Upgrade that the gateway can tunnel, or None."""
    if not message.upgrade or message.version != HttpVersion11:  # RFC 9110, section 7.8
        return None
    protocol = message.headers.get("Upgrade", "")
    return protocol.encode() if protocol.lower() in _TUNNELLED else None


class ClientTransport(Protocol):
    """The part of a client's connection that an exchange uses.

    Attributes:
        transport: the transport to write to; None once the connection is lost.
        own: the local address and port of the socket.
        certificate: the verified certificate of the client, as `getpeercert` of `ssl.SSLObject`
            returns it; None without one.
        stall_seconds: the period in which a client must transfer a minimum number of bytes of a
            body.
    """

    transport: Any  # BatchingTransport | None; aiohttp types it as asyncio's
    peer: str
    own: str
    scheme: str
    certificate: dict[str, Any] | None
    stall_seconds: float

    def switch(self) -> Tunnel:
        """Stop parsing HTTP; return a tunnel that receives the client's further bytes."""
        ...

    @property
    def writing_paused(self) -> bool:
        """Whether the write buffer is full because the client reads too slowly."""
        ...

    async def drain(self) -> None:
        """Wait until the client has received bytes; raises ConnectionError if it does not."""
        ...

    def give_way(self) -> None:
        """Reset this slow client's connection, since other requests need its resources."""
        ...


# The part of RFC 3986, section 3.2.2, that hosts use: a name, an IPv4 address or a bracketed IPv6
# address, and a port. Services may misread other characters: a comma, for example, would turn
# X-Forwarded-Host into a list of two hosts.
_AUTHORITY = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|[A-Za-z0-9\-._~]+)(?::[0-9]{0,5})?\Z")
LONGEST_AUTHORITY: Final = 260
"""A host name has at most 253 characters (RFC 1035, section 2.3.4), and a port 5 digits."""
# Looking up an istr is faster than looking up a str.
_HOST: Final = istr("Host")
_TRANSFER_ENCODING: Final = istr("Transfer-Encoding")
_CONTENT_LENGTH: Final = istr("Content-Length")
_EXPECT: Final = istr("Expect")
# The maximum digits of a Content-Length; a service may misread a longer one.
_DIGITS: Final = 18
# The maximum size of a body that is not streamed, in bytes. A complete body stays in memory until
# the response.
_SMALL: Final = 16 * 1024
X_REQUEST_ID: Final = istr("X-Request-Id")
REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._~:/+=@-]{1,128}\Z")

# Fields that Connection must not name, in addition to those that the gateway reads.
_CREDENTIALS = frozenset({b"authorization", b"cookie"})

_SAFE = "/%:@!$&'()*+,;=~[]"
is_loggable: Final = re.compile(rf"/[A-Za-z0-9_.\-{re.escape(_SAFE)}]*\Z").match
"""Returns a match if a path can be written to a JSON log without escaping."""

# Request ids must be unique but not secret, so they are counted instead of drawn by a system call.
# The count has twelve digits, so that every id has 32 characters.
_id_prefix: Final = secrets.token_hex(10)
_id_count: Final = count(10**11)


class ClientExchange:
    """One request of a client, and the response to it.

    `read` checks the head; `arrived` or `pieces` returns the body. `send` or `send_head` writes a
    complete response; `begin`, `write` and `end` write it in pieces. Field lines are written
    unchanged, so the bytes, the order and the case of the service's fields are preserved.

    Attributes:
        has_body: whether the request has a body; an empty chunked body counts as one.
        length: the declared length of that body in bytes; None before `read`, or if no length is
            declared.
        authority: the host and port that the client used; empty before `read`.
        path: the loggable path of the request, without the query, which may contain secrets.
        request_id: the client's X-Request-Id if it is safe to log, otherwise a new id.
        began: the arrival time of the head, in monotonic seconds.
        chunked: whether the response body is sent in chunks.
        continued: whether a 100 response was sent.
        keep_alive: whether another request can follow on the connection.
        status: the status code of the final response; 0 until its head is written.
        bytes_sent: the number of bytes written of the response body, without framing.
    """

    __slots__ = (
        *("authority", "began", "bytes_sent", "chunked", "connection", "content", "continued"),
        *("has_body", "keep_alive", "length", "message", "method", "path", "peer", "request_id"),
        *("request_id_given", "status"),
    )

    def __init__(
        self, connection: ClientTransport, message: RequestMessage, content: StreamReader
    ) -> None:
        self.began = perf_counter()
        self.connection = connection
        self.message = message
        self.content = content
        self.has_body = content is not EMPTY_PAYLOAD
        self.length: int | None = None
        self.authority = ""
        self.keep_alive: bool = not message.should_close
        self.chunked = self.continued = False
        self.status = 0
        self.bytes_sent = 0
        self.method: str = message.method
        self.peer = connection.peer
        path = message.path
        if "?" in path:
            path = path.partition("?")[0]
        self.path: str = path if is_loggable(path) else loggable_path(path)
        given = message.headers.get(X_REQUEST_ID)
        self.request_id_given = False
        if given is not None and REQUEST_ID.match(given):
            self.request_id, self.request_id_given = given, True
        else:  # 32 hexadecimal digits, so that it is also a valid trace id
            self.request_id = f"{_id_prefix}{next(_id_count)}"

    @property
    def limits(self) -> Limits:
        raise NotImplementedError

    @property
    def trusted_proxies(self) -> tuple[Network, ...]:
        """The networks of the proxies whose forwarding fields are trusted."""
        raise NotImplementedError

    @property
    def read_fields(self) -> frozenset[bytes]:
        """The lower-case names of the header fields that the gateway itself reads."""
        raise NotImplementedError

    @property
    def accepts_trailers(self) -> bool:
        return accepts_trailers(self.message.headers.getall("TE", ()))

    @property
    def upgrade(self) -> bytes | None:
        return tunnelled(self.message)

    def _check_expectation(self) -> None:
        """Raise FaultError if Expect is not 100-continue (RFC 9110, section 10.1.1)."""
        values = self.message.headers.getall("Expect")
        if any(value.lower() != "100-continue" for value in values):
            raise FaultError(
                Fault(
                    FaultCode.EXPECTATION_FAILED,
                    "The only supported value of Expect is 100-continue.",
                )
            )

    def check_fields(self, watched: Sequence[bytes]) -> None:
        """Raise FaultError if Expect is unsupported or a service could see another request."""
        if b"connection" in watched:
            self._check_connection()
        if b"expect" in watched:
            self._check_expectation()
        if not METHOD_OVERRIDES.isdisjoint(watched):
            self._check_method()

    def _check_connection(self) -> None:
        """Raise FaultError if Connection names a field that must reach the service.

        The gateway drops the fields that Connection names only after it has selected the version
        and identified the client, so the service would get a different request (RFC 9110, section
        7.6.1). Fields that the gateway itself sets are not dropped.
        """
        reserved = (self.read_fields | _CREDENTIALS) - GATEWAY_FIELDS
        for line, value in self.message.raw_headers:
            if line.lower() == b"connection":
                for name in sorted(connection_options(value) & reserved):
                    raise _bad(f"the Connection header must not name {name.decode()}")

    def _check_method(self) -> None:
        """Raise FaultError if a header field names a method other than that of the request line.

        The method determines whether a request is allowed, converted, repeated and shadowed, so the
        service must not see another method.
        """
        for line, value in self.message.raw_headers:
            other = value.strip(b" \t").upper()
            if line.lower() in METHOD_OVERRIDES and other != self.message.method.encode():
                name = line.decode()
                raise _bad(
                    f"the {name} header names another method; send the request with that method"
                )

    def read(self) -> RequestHead:
        """Check the head (RFC 9112, sections 3 and 6); raises FaultError."""
        message, headers = self.message, self.message.headers
        if message.version[0] != 1:
            raise _bad("only HTTP/1.0 and HTTP/1.1 are supported")
        # The parser accepts some heads whose meaning forwarding could change.
        if (coding := headers.get(_TRANSFER_ENCODING)) is not None:
            if coding.lower() != "chunked":
                raise _bad("the only supported transfer coding is chunked")
            if message.version != HttpVersion11:  # RFC 9112, section 6.1
                raise _bad("HTTP/1.0 has no transfer codings")
        if (length := headers.get(_CONTENT_LENGTH)) is not None:
            if len(length) > _DIGITS:
                raise _bad("the Content-Length has too many digits")
            self.length = int(length)
        if self.method == "CONNECT":  # a request for a tunnel, which may not even have a path
            raise _bad("tunnels are not supported")
        target, authority = message.path, headers.get(_HOST)
        if not target.startswith("/"):
            target, authority = _other_form(message.method, target, authority)
        if authority is None:  # HTTP/1.0 may omit Host; then the gateway's own address is used
            authority = self.connection.own
        if len(authority) > LONGEST_AUTHORITY or not is_authority(authority):
            raise _bad("the Host header contains no valid host")
        if "#" in target:
            raise _bad("the request target has a fragment, which a client must not send")
        self.authority = authority
        path, mark, query = target.partition("?")
        return RequestHead(self.method, path, query if mark else None, headers, authority)

    def network(self) -> str:
        """Return the client's network; that of a trusted proxy only if no other is known."""
        return client_site(self.read(), self.peer, self.trusted_proxies) or self.peer

    def arrived(self, most: int | None) -> bytes | None:
        """Return the body if it is small and arrived with the head; None if it must be streamed.

        Raises FaultError if it has more than `most` bytes.
        """
        content, length = self.content, self.length
        if length is None or length > _SMALL or not content.is_eof() or content.exception():
            return None
        if _EXPECT in self.message.headers:  # the service decides whether it needs the body
            return None
        if most is not None and length > most:
            raise _too_large(most)
        return content.read_nowait()

    def pieces(self, most: int | None) -> AsyncIterator[bytes]:
        """Return the stream of the body; the client has to wait while the stream is not read.

        Raises FaultError if the body has more than `most` bytes, is malformed, or is slow. A
        declared length is checked before anything is read.
        """
        if most is not None and (self.length or 0) > most:
            raise _too_large(most)
        return _Pieces(self, most)

    def inform(self, status: int, fields: HeaderFields) -> None:
        """Send an interim response (RFC 9110, section 15.2), except to HTTP/1.0 clients."""
        if not self.status and self.message.version > HttpVersion10:
            self.continued = self.continued or status == 100
            self._write(_head(status, end_to_end(fields, _LENGTH)))

    def begin(self, status: int, reason: bytes, fields: HeaderFields, *, sized: bool) -> None:
        """Send the head of a response in pieces; with `sized`, it has Content-Length."""
        if not sized:
            self._frame()
        self._write(self._final(status, reason, fields))

    async def write(self, piece: bytes) -> None:
        """Send a piece of the body; wait if the client reads too slowly."""
        self.put(piece)
        if self.connection.writing_paused:
            await self.connection.drain()

    def put(self, piece: bytes) -> None:
        """Send a piece of the body without waiting; a slow client makes it stay in the buffer."""
        self.bytes_sent += len(piece)
        self._write(b"%x\r\n%b\r\n" % (len(piece), piece) if self.chunked else piece)

    async def wait_until_read(self) -> None:
        if self.connection.writing_paused:
            await self.connection.drain()

    def end(self, trailers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        """End a body written in pieces; trailer fields are sent only if the body is chunked."""
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
        """Send a complete response; see `begin` and `end` for the arguments."""
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
        """Send the head of a 101 response; return a tunnel that receives the client's bytes.

        After this call, `write` sends bytes of the new protocol.
        """
        tunnel = self.connection.switch()
        self.keep_alive = False
        self.status = 101
        self._write(_head(101, [line for line in fields if line[0].lower() not in _LENGTH]))
        return tunnel

    def send_head(self, status: int, reason: bytes, fields: HeaderFields) -> None:
        """Send a response that has no body, regardless of its fields (HEAD, 204, 304)."""
        if status == 204:
            fields = end_to_end(fields, _LENGTH)
        self._transport().write_soon(self._final(status, reason, fields))

    def abort(self) -> None:
        """Reset the connection, so that the response does not look complete to the client."""
        self.keep_alive = False
        reset(self.connection.transport)

    def _frame(self) -> None:
        if self.message.version <= HttpVersion10:
            self.keep_alive = False  # the end of the connection marks the end of the body
        else:
            self.chunked = True

    def _final(self, status: int, reason: bytes, fields: HeaderFields, body: bytes = b"") -> bytes:
        self.status = status
        if self.has_body and not self.content.is_eof() and self._withholds_body():
            self.keep_alive = False
        lines: list[bytes] = []
        if self.chunked:
            lines.append(b"Transfer-Encoding: chunked")
        if not self.keep_alive:
            lines.append(b"Connection: close")
        elif self.message.version <= HttpVersion10:
            lines.append(b"Connection: keep-alive")
        begin = _STATUS_LINES.get((status, reason)) or b"HTTP/1.1 %d %b" % (status, reason)
        return b"\r\n".join([begin, *map(FIELD_LINE, fields), *lines, b"", body])

    def _withholds_body(self) -> bool:
        """Return whether the client may skip its body, since it has waited for 100 in vain.

        The next bytes may then be the next request instead of the body, so no request may follow
        (RFC 9110, section 10.1.1). Node.js and Go close such connections as well.
        """
        return not self.continued and _EXPECT in self.message.headers

    def _write(self, data: bytes) -> None:
        self._transport().write(data)

    def _transport(self) -> BatchingTransport:
        transport: BatchingTransport | None = self.connection.transport
        if transport is None:
            raise ConnectionResetError("the client left")
        return transport


def bodiless(method: str, status: int) -> bool:
    """Return whether a response has no body, whatever its fields say (RFC 9110, 6.4.1)."""
    return method == "HEAD" or status in (204, 304)


def reset(transport: asyncio.Transport | None) -> None:
    """Reset a connection, even one that is closing and has unsent bytes.

    If the end of the connection marks the end of the body (HTTP/1.0), an orderly close would make a
    truncated body look complete.
    """
    if transport is None or (transport.is_closing() and not transport.get_write_buffer_size()):
        return
    end = transport.get_extra_info("socket")
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    transport.abort()


def _last_chunk(trailers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"".join((b"0\r\n", *(b"%b: %b\r\n" % line for line in trailers), b"\r\n"))


def _head(status: int, fields: HeaderFields) -> bytes:
    begin = _STATUS_LINES.get((status, b"")) or b"HTTP/1.1 %d " % status
    return b"\r\n".join([begin, *map(FIELD_LINE, fields), b"", b""])


class _Pieces:
    """The stream of a request body, with a minimum rate at which the client must send.

    Only the time spent waiting for the client counts, not the time in which the service reads.
    """

    def __init__(self, exchange: ClientExchange, most: int | None) -> None:
        self._content, self._most = exchange.content, most
        self._seconds = self._left = exchange.connection.stall_seconds
        self._share = exchange.limits.min_rate * self._seconds
        self._came = self._size = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        try:
            piece = await self._next()
        except (RequestPayloadError, HttpProcessingError):
            raise _bad("the request body is not framed as HTTP requires") from None
        if not piece:
            raise StopAsyncIteration
        self._size += len(piece)
        if self._most is not None and self._size > self._most:
            raise _too_large(self._most)
        return piece

    async def _next(self) -> bytes:
        """Return the next bytes; empty at the end. Raises FaultError if they arrive too slowly."""
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(self._left):
                piece = await self._content.readany()
        except TimeoutError:
            detail = f"Too little of the request body arrived in {self._seconds:g} seconds."
            raise FaultError(Fault(FaultCode.REQUEST_TIMEOUT, detail)) from None
        self._left -= clock() - began
        self._came += len(piece)
        if self._came >= self._share:
            self._left, self._came = self._seconds, 0
        return piece


def loggable_path(path: str) -> str:
    if not path.startswith("/") and "://" in path:  # RFC 9112, section 3.2.2
        path = "/" + path.partition("://")[2].partition("/")[2]
    return quote(path.encode("utf-8", "surrogateescape"), safe=_SAFE)


def _too_large(most: int) -> FaultError:
    return FaultError(
        Fault(FaultCode.BODY_TOO_LARGE, f"The body may have at most {most} bytes at this endpoint.")
    )


@lru_cache(maxsize=1024)  # clients use few different hosts
def is_authority(text: str) -> bool:
    match = _AUTHORITY.match(text)
    if match is None or match[1] is None:
        return match is not None
    try:
        IPv6Address(match[1])
    except ValueError:
        return False
    return True


def _other_form(method: str, target: str, host: str | None) -> tuple[str, str | None]:
    if target == "*" and method == "OPTIONS":
        return target, host
    scheme, separator, rest = target.partition("://")
    if not separator or scheme.lower() not in ("http", "https"):
        raise _bad("the request target is neither a path nor an absolute URL")
    # The authority of an absolute target takes precedence over Host (RFC 9112, section 3.2.2).
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    path = rest[len(authority) :]
    if method == "OPTIONS" and not path:  # RFC 9112, section 3.2.4
        return "*", authority
    return path if path.startswith("/") else f"/{path}", authority


def _bad(what: str) -> FaultError:
    return FaultError(Fault(FaultCode.BAD_REQUEST, f"{what[0].upper()}{what[1:]}."))
