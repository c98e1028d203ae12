"""The request and the response of one exchange with a client, and the state of its socket.

`ClientExchange` checks the head of the request, reads its body, and writes the response. It is the
base class of `gateway.proxy.record.Exchange`.
"""

import asyncio
import re
import secrets
import select
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
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

from gateway.base.addresses import Network, client_network
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

# The client has closed its side. Elsewhere than on Linux, only a reset is known before all that
# came before it is read.
_CLOSED: int = getattr(select, "POLLRDHUP", 0)


def unsent_bytes(transport: asyncio.Transport) -> int:
    """Return the number of bytes in the write buffer and, unacknowledged, in the kernel.

    The kernel's buffer counts because a slow client can drain it for minutes before the write
    buffer shrinks: it holds megabytes, and accepts more only when a third of it is free.
    """
    waiting = transport.get_write_buffer_size()
    end = transport.get_extra_info("socket")
    if end is not None and end.fileno() >= 0:
        (queued,) = struct.unpack("i", ioctl(end.fileno(), TIOCOUTQ, b"\0\0\0\0"))
        waiting += queued
    return waiting


def has_left(transport: asyncio.Transport, *, reset: bool) -> bool:
    """Return whether the client has closed its side, or, with `reset`, the whole connection.

    It costs a system call. The event loop notices the same, but only while it reads.
    """
    end = transport.get_extra_info("socket")
    if end is None or end.fileno() < 0:
        return False
    poll = select.poll()
    poll.register(end.fileno(), 0 if reset else _CLOSED)  # a reset is always reported
    return bool(poll.poll(0))


class Tunnel:
    """Passes on the bytes of a client, piece by piece; aiohttp's connection feeds it as a parser.

    Reading from the client is paused from each piece to the next call of `read`.

    Attributes:
        received: the number of bytes received.

    Args:
        pause: a function that pauses reading from the client.
        resume: a function that resumes reading from the client.
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
        """Add received bytes; return, as a parser, that there is no end and no bytes are left."""
        self._data += data
        self.received += len(data)
        self._pause()
        self._news.set()
        return False, b""

    def feed_eof(self) -> None:
        """Record the end of the connection."""
        self._ended = True
        self._news.set()


_REASONS = {status.value: status.phrase.encode() for status in HTTPStatus}
# The status lines of ordinary responses, which give the standard reason phrase or none.
_STATUS_LINES: Final = {
    (status, given): b"HTTP/1.1 %d %b" % (status, reason)
    for status, reason in _REASONS.items()
    for given in (b"", reason)
}
# Fields that a response without a body must not have (RFC 9110, section 8.6).
_LENGTH = frozenset({b"content-length"})
# A larger body is written separately: joining it with its head copies it, which blocks other
# requests for milliseconds.
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
        scheme: `http`, or `https` for a connection with TLS.
        stall_seconds: the seconds in which a client has to send, or receive, a share of a body.
    """

    transport: Any  # BatchingTransport | None; aiohttp types it as asyncio's
    peer: str
    own: str
    scheme: str
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
        """Cut the connection, since others wait for what this slow client holds."""
        ...


# RFC 3986, section 3.2.2, as far as hosts use it: a name, an IPv4 or a bracketed IPv6 address,
# and a port. Other characters would be forwarded and misread by services: a comma, for instance,
# would make two hosts of X-Forwarded-Host.
_AUTHORITY = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|[A-Za-z0-9\-._~]+)(?::[0-9]{0,5})?\Z")
LONGEST_AUTHORITY: Final = 260
"""A host name has at most 253 characters (RFC 1035, section 2.3.4), a port 5 digits."""
# An istr is looked up faster than a str.
_HOST: Final = istr("Host")
_TRANSFER_ENCODING: Final = istr("Transfer-Encoding")
_CONTENT_LENGTH: Final = istr("Content-Length")
_EXPECT: Final = istr("Expect")
# A service may misread a length of more digits.
_DIGITS: Final = 18
# A larger body is streamed, since a whole one takes memory until the response.
_SMALL: Final = 16 * 1024
X_REQUEST_ID: Final = istr("X-Request-Id")
"""The name of the field of request ids."""
REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._~:/+=@-]{1,128}\Z")
"""The pattern of request ids that may be written to a log unchanged."""

# Fields that Connection must not name, beside those that the rules read.
_CREDENTIALS = frozenset({b"authorization", b"cookie"})

# A site has a network of this prefix, and all of its addresses (RFC 4291, section 2.5.4).
_ONE_SITE = 64

_SAFE = "/%:@!$&'()*+,;=~[]"
is_loggable: Final = re.compile(rf"/[A-Za-z0-9_.\-{re.escape(_SAFE)}]*\Z").match
"""Returns a match if a path can be written to a JSON log without escapes."""

# Request ids are unique without a system call for each; no security depends on them. The numbers
# have twelve digits, so that all ids have 32.
_id_prefix: Final = secrets.token_hex(10)
_id_count: Final = count(10**11)


class ClientExchange:
    """One request of a client, and the response that is written to it.

    `read` checks the head, and `arrived` or `pieces` returns the body. The response is written
    whole by `send` or `send_head`, or in pieces by `begin`, `write` and `end`. The field lines are
    written as they are, so that the bytes, the order and the case of the service's fields are
    preserved.

    Attributes:
        connection: the connection to the client.
        message: the parsed head of the request.
        method: the method of the request.
        content: the stream of the body of the request.
        has_body: whether the request has a body; an empty chunked body counts.
        length: the declared length of that body in bytes; None until the head is read, or if none
            is declared.
        peer: the IP address that the request came from.
        authority: the host and port that the client used; empty until the head is read.
        path: the path of the request as it can be logged, without the query, which may hold
            secrets.
        request_id: the client's X-Request-Id if it is safe to log, else a new one.
        request_id_given: whether it is the client's.
        began: when the head of the request had arrived, in monotonic seconds.
        chunked: whether the body of the response is sent in chunks.
        keep_alive: whether another request can follow on the connection.
        status: the status code of the final response; 0 until its head is written.
        bytes_sent: the number of bytes of the body that were written, without the framing.
    """

    __slots__ = (
        *("authority", "began", "bytes_sent", "chunked", "connection", "content", "has_body"),
        *("keep_alive", "length", "message", "method", "path", "peer", "request_id"),
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
        self.chunked = False
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
        else:  # 32 hexadecimal digits, so that it can be the id of a trace as well
            self.request_id = f"{_id_prefix}{next(_id_count)}"

    @property
    def limits(self) -> Limits:
        """The limits for this request."""
        raise NotImplementedError

    @property
    def trusted_proxies(self) -> tuple[Network, ...]:
        """The networks of the proxies whose forwarding fields are trusted."""
        raise NotImplementedError

    @property
    def read_fields(self) -> frozenset[bytes]:
        """The names, in lower case, of the header fields that the gateway itself reads."""
        raise NotImplementedError

    @property
    def accepts_trailers(self) -> bool:
        """Whether the client accepts trailer fields in the response."""
        return accepts_trailers(self.message.headers.getall("TE", ()))

    @property
    def upgrade(self) -> bytes | None:
        """The requested protocol if the gateway can tunnel it, which is WebSocket; else None."""
        if not self.message.upgrade or self.message.version != HttpVersion11:  # RFC 9110, 7.8
            return None
        protocol = self.message.headers.get("Upgrade", "")
        return protocol.encode() if protocol.lower() == "websocket" else None

    def _check_expectation(self) -> None:
        """Raise FaultError if Expect is not 100-continue (RFC 9110, section 10.1.1)."""
        values = self.message.headers.getall("Expect")
        if any(value.lower() != "100-continue" for value in values):
            raise FaultError(
                Fault(FaultCode.EXPECTATION_FAILED, "Only 100-continue can be expected.")
            )

    def check_fields(self, watched: Sequence[bytes]) -> None:
        """Raise FaultError if Expect cannot be met, or if the service would see another request.

        Args:
            watched: the names of the watched fields that are present; see `headers.filtered`.
        """
        if b"connection" in watched:
            self._check_connection()
        if b"expect" in watched:
            self._check_expectation()
        if not METHOD_OVERRIDES.isdisjoint(watched):
            self._check_method()

    def _check_connection(self) -> None:
        """Raise FaultError if Connection names a field that is meant for the service as well.

        The version is chosen and the client is named before the fields that Connection names are
        dropped, so the service would get another request (RFC 9110, section 7.6.1). A field that
        the gateway itself sets is not dropped.
        """
        reserved = (self.read_fields | _CREDENTIALS) - GATEWAY_FIELDS
        for line, value in self.message.raw_headers:
            if line.lower() == b"connection":
                for name in sorted(connection_options(value) & reserved):
                    raise _bad(f"the Connection header must not name {name.decode()}")

    def _check_method(self) -> None:
        """Raise FaultError if a field gives the request another method than its first line.

        What is allowed, converted, repeated and shadowed depends on the method, so the service must
        not see another one.
        """
        for line, value in self.message.raw_headers:
            other = value.strip(b" \t").upper()
            if line.lower() in METHOD_OVERRIDES and other != self.message.method.encode():
                name = line.decode()
                raise _bad(f"the {name} header names another method; send the request with that")

    def read(self) -> RequestHead:
        """Check and return the head of the request; set `authority` and `length`.

        Raises:
            FaultError: the request line, the Host field or the framing of the body violates
                RFC 9112, sections 3 and 6.
        """
        message, headers = self.message, self.message.headers
        if message.version[0] != 1:
            raise _bad("only HTTP/1.0 and HTTP/1.1 are spoken here")
        # The parser accepts some heads that cannot be forwarded with the same meaning.
        if (coding := headers.get(_TRANSFER_ENCODING)) is not None:
            if coding.lower() != "chunked":
                raise _bad("the only transfer coding that is taken here is chunked")
            if message.version != HttpVersion11:  # RFC 9112, section 6.1
                raise _bad("HTTP/1.0 has no transfer codings")
        if (length := headers.get(_CONTENT_LENGTH)) is not None:
            if len(length) > _DIGITS:
                raise _bad("the Content-Length has too many digits")
            self.length = int(length)
        if self.method == "CONNECT":  # a tunnel, whose request may not even have a path
            raise _bad("no tunnel can be had here")
        target, authority = message.path, headers.get(_HOST)
        if not target.startswith("/"):
            target, authority = _other_form(message.method, target, authority)
        if authority is None:  # HTTP/1.0 may omit Host; this server is meant
            authority = self.connection.own
        if len(authority) > LONGEST_AUTHORITY or not is_authority(authority):
            raise _bad("the Host header names no host")
        if "#" in target:
            raise _bad("the request target has a fragment, which belongs to the client alone")
        self.authority = authority
        path, mark, query = target.partition("?")
        head = (self.method, path, query if mark else None, headers, authority)
        return tuple.__new__(RequestHead, head)  # a fifth of the cost of RequestHead(...)

    def network(self) -> str:
        """Return the network of the client's address: that of a proxy only if no other is known."""
        found = client_network(self.read(), self.peer, 32, _ONE_SITE, self.trusted_proxies)
        return found or self.peer

    def arrived(self, most: int | None) -> bytes | None:
        """Return the body if it is small and arrived with the head; None if it has to be streamed.

        Args:
            most: the maximum size of the body in bytes; None for no maximum.

        Raises:
            FaultError: the body is too large.
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
        """Return the stream of the body; the client waits while it is not read.

        Args:
            most: the maximum size of the body in bytes; None for no maximum.

        Raises:
            FaultError: the body is too large, malformed, or does not arrive in time. A declared
                length above the maximum fails before anything is read.
        """
        if most is not None and (self.length or 0) > most:
            raise _too_large(most)
        return _Pieces(self, most)

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

    def _transport(self) -> BatchingTransport:
        transport: BatchingTransport | None = self.connection.transport
        if transport is None:
            raise ConnectionResetError("the client left")
        return transport


def bodiless(method: str, status: int) -> bool:
    """Whether a response has no body, regardless of its fields (RFC 9110, section 6.4.1)."""
    return method == "HEAD" or status in (204, 304)


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


class _Pieces:
    """The stream of a body; the client has a certain time to send a share of it.

    Only the time in which they are waited for counts, not that in which the service takes them.

    Args:
        exchange: the request.
        most: the maximum size of the body in bytes; None for no maximum.
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
            raise _bad("the request body is not framed as HTTP asks") from None
        if not piece:
            raise StopAsyncIteration
        self._size += len(piece)
        if self._most is not None and self._size > self._most:
            raise _too_large(self._most)
        return piece

    async def _next(self) -> bytes:
        """Return the next bytes, empty at the end; raises FaultError."""
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(self._left):
                piece = await self._content.readany()
        except TimeoutError:
            detail = f"Too little of the request body came in {self._seconds:g} seconds."
            raise FaultError(Fault(FaultCode.REQUEST_TIMEOUT, detail)) from None
        self._left -= clock() - began
        self._came += len(piece)
        if self._came >= self._share:
            self._left, self._came = self._seconds, 0
        return piece


def loggable_path(path: str) -> str:
    """Return a path percent-encoded, so that it can be written to a JSON log."""
    if not path.startswith("/") and "://" in path:  # RFC 9112, section 3.2.2
        path = "/" + path.partition("://")[2].partition("/")[2]
    return quote(path.encode("utf-8", "surrogateescape"), safe=_SAFE)


def _too_large(most: int) -> FaultError:
    return FaultError(
        Fault(FaultCode.BODY_TOO_LARGE, f"The body may have {most} bytes at this endpoint.")
    )


@lru_cache(maxsize=1024)  # clients use few different hosts
def is_authority(text: str) -> bool:
    """Return whether a text is a host, with or without a port, that can be passed on."""
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
    # The authority of an absolute target overrules Host (RFC 9112, section 3.2.2).
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    path = rest[len(authority) :]
    if method == "OPTIONS" and not path:  # RFC 9112, section 3.2.4
        return "*", authority
    return path if path.startswith("/") else f"/{path}", authority


def _bad(what: str) -> FaultError:
    return FaultError(Fault(FaultCode.BAD_REQUEST, f"{what[0].upper()}{what[1:]}."))
