"""A connection to a service: writes requests, parses responses, and stays open between exchanges.

llhttp (httptools) parses responses; `framing` checks what llhttp does not. The theory of operation
is in `gateway.http.connection_states`.
"""

import asyncio
import re
import select
from collections.abc import AsyncIterator, Callable
from functools import lru_cache
from math import inf
from random import random
from typing import Any, Final, Self, cast

# httptools: Python's binding of llhttp, the parser of Node.js, which is strict by default.
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from gateway.base.errors import FaultCode
from gateway.base.headers import FIELD_LINE, FieldLines, FieldNames, HeaderFields, forwarding
from gateway.http.bounds import Deadline, SlowClients
from gateway.http.connection_states import (
    AT_END,
    FREE,
    OVER,
    UPSTREAM_TRANSITIONS,
    ConnectionEnd,
    UpstreamEvent,
    UpstreamState,
)
from gateway.http.tls_errors import TlsError
from gateway.http.transport import SLICE, BatchingTransport, PacedReader, WriteBatch
from gateway.http.upstream.service import Timeouts
from gateway.http.upstream.upstream import StaleConnectionError, UpstreamRequest, failure

_NAMES: Final = FieldNames({b"content-length", b"keep-alive", b"transfer-encoding"})
_KNOWN: Final = _NAMES.known
# llhttp keeps spaces and tabs after a value. No other byte of a value is this small.
_SPACE: Final = 0x20
# The maximum number of fields in a response. Each field costs some microseconds, and a link more;
# meanwhile, other requests wait.
MOST_FIELDS: Final = 2048
_DIGITS: Final = 18  # the maximum digits of a length; llhttp accepts more
_TOO_MANY = f"it sent more than {MOST_FIELDS} header fields in total"

FRAMINGS: Final = {("1.1", b""), ("1.1", b"chunked,"), ("1.0", b"")}
"""The accepted pairs of HTTP version and transfer codings (RFC 9112, 6.1); llhttp accepts more."""


def framing(fields: HeaderFields) -> tuple[HeaderFields, int | None, bytes, bytes | None]:
    """Return the fields as `trimmed` does, and their framing; raises HttpParserError.

    The framing is the declared body length, or None; the transfer codings in lower case, each
    followed by a comma; and the value of Keep-Alive, or None.
    """
    if fields[MOST_FIELDS:]:
        raise HttpParserError(_TOO_MANY)
    length, coding, keep_alive = None, b"", None
    blank = False
    for name, value in fields:
        try:
            known = _KNOWN[name]
        except KeyError:
            known = _NAMES.examine(name)
        if known == b"content-length":
            if value[_DIGITS:]:
                raise HttpParserError("a length of too many digits")
            length = int(value)
        elif known == b"keep-alive":
            keep_alive = value
        elif known is not None:
            coding += value.rstrip(b" ").lower() + b","  # llhttp misses chunked after a tab
        if value and value[-1] <= _SPACE:
            blank = True
    return trimmed(fields) if blank else fields, length, coding, keep_alive


def trimmed(fields: HeaderFields) -> HeaderFields:
    """Return fields without trailing white space in their values; raises HttpParserError.

    llhttp keeps this white space, which is not part of a value (RFC 9110, section 5.5).
    """
    if fields[MOST_FIELDS:]:
        raise HttpParserError(_TOO_MANY)
    return [(name, value.rstrip(b" \t")) for name, value in fields]


# The idle time in seconds if the service sends no Keep-Alive field. Servers rarely allow less than
# five seconds, so a server rarely closes a connection just as it is reused.
_USUAL = 4.0
# If a service allows an idle time in Keep-Alive, the gateway uses one second less, up to this
# maximum.
_LONGEST = 30.0
# Each idle time is randomly shortened by up to this share, so that connections do not all close at
# once.
_JITTER = 0.25
# The idle seconds after which `is_quiet` is called; the call costs a system call.
LOOK_AFTER: Final = 0.01
_TIMEOUT = re.compile(rb"(?:^|[,\s])timeout\s*=\s*\"?([0-9]{1,6})", re.IGNORECASE)


def granted(value: bytes) -> float | None:
    """Return the idle seconds that a Keep-Alive value allows; None if it contains no timeout."""
    found = _TIMEOUT.search(value)
    return None if found is None else min(max(int(found[1]) - 1.0, 0.0), _LONGEST)


def jittered(seconds: float | None) -> float:
    return (_USUAL if seconds is None else seconds) * (1 - _JITTER * random())  # noqa: S311  # no secret depends on it


def is_quiet(transport: asyncio.Transport) -> bool:
    """Return whether the socket has neither unread bytes nor a pending end of the connection.

    An unrequested response, such as 408 before the service closes (RFC 9110, section 15.5.9), must
    not be mistaken for the response to the next request.
    """
    end = transport.get_extra_info("socket")
    if end is None or end.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(end.fileno(), select.POLLIN)
    return not poll.poll(0)


# The maximum size of a body that is written together with its head, in bytes. Joining a larger body
# with its head copies it, which blocks other requests for milliseconds.
_ONE_WRITE: Final = 64 * 1024


def write_request(
    write: Callable[[bytes], None], request: UpstreamRequest, authority: bytes
) -> None:
    """`authority` is the target's host and port, for Host unless the request sets a host."""
    begin = f"{request.method} {request.target} HTTP/1.1"
    lines = [
        begin.encode("utf-8", "surrogateescape"),
        b"Host: " + (request.host or authority),
        *map(FIELD_LINE, request.fields),
        *request.lines,
    ]
    body, rest = request.body, b""
    if isinstance(body, bytes):
        size = len(body)
        if size > _ONE_WRITE:
            body, rest = b"", body
        lines += (b"Content-Length: %d" % size, b"", body)
    elif body is None:
        lines += (b"", b"")
    elif request.length is None:
        lines += (b"Transfer-Encoding: chunked", b"", b"")
    else:
        lines += (b"Content-Length: %d" % request.length, b"", b"")
    write(b"\r\n".join(lines))
    if rest:
        write(rest)


def forwarding_lines(
    peer: str,
    scheme: str,
    authority: str,
    via: bytes,
    inherited: FieldLines,
    origin: tuple[str, str] | None = None,
) -> bytes:
    """Return the forwarding fields and Via as joined lines, without the final line end."""
    fields = *forwarding(peer, scheme, authority, inherited, origin), (b"Via", via)
    return b"\r\n".join(map(FIELD_LINE, fields))


known_forwarding_lines: Final = lru_cache(maxsize=1024)(forwarding_lines)
"""Cached `forwarding_lines`, for requests without a trusted proxy, whose fields are short."""


# The maximum bytes of the body that have arrived since the reader last waited. Beyond it, reading
# from the service pauses until the reader waits again, so the bytes that the reader is still
# forwarding also count.
_HIGH_WATER: Final = 64 * 1024
# The maximum number of unread pieces before other connections are served first.
_CROWDED = 128

_TLS: Final = "it uses TLS; use https:// in its target"
SMALL: Final = 64 * 1024
"""The largest body, in bytes, that is briefly awaited, so that the response leaves in one write."""
MOMENT = 0.005


class StreamedResponse:
    """A response that is read while it arrives; implements `UpstreamResponse`.

    Attributes:
        ended: called once with the response, when no more of it will be read.
        lent: the data that `ended` needs.
        small: whether the body is so small that the response is returned only when it is complete.
    """

    __slots__ = (
        "_connection",
        "_pieces",
        "_size",
        "_waiter",
        "address",
        "complete",
        "ended",
        "error",
        "fields",
        "head",
        "holders",
        "lent",
        "reason",
        "sized",
        "small",
        "status",
        "switched",
        "target",
        "trailers",
    )

    def __init__(self, connection: "UpstreamConnection", target: str) -> None:
        self._connection = connection
        self.address = connection.address
        self._pieces: list[bytes] = []
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self.complete = False
        self.ended: Callable[[StreamedResponse], None] | None = None
        self.error: Exception | None = None
        self.head = False
        self.holders: SlowClients | None = None
        self.lent: Any = None
        self.status = 0
        self.reason = b""
        self.fields: HeaderFields = []
        self.sized = False
        self.small = False
        self.switched = False
        self.target = target
        self.trailers: HeaderFields = []

    @property
    def crowded(self) -> bool:
        """Whether many pieces of the body, or its trailers, were parsed since the last read."""
        return len(self._pieces) > _CROWDED or bool(self.trailers)

    async def arrived(self) -> Self:
        """Wait for the head and, briefly, for a small body; cancelling closes the connection.

        Raises FaultError, or StaleConnectionError if the service most likely got no request.
        """
        try:
            while not self.head or (self.small and not self.complete and self.error is None):
                if self.error is not None:
                    raise self.error
                self._waiter = waiter = self._connection.loop.create_future()
                await waiter
        except BaseException:
            if not self.complete:  # otherwise, the connection may already serve another request
                self._connection.close()
            self.error = None  # its traceback refers to this frame: a reference cycle
            raise
        return self

    async def read(self) -> bytes:
        """Return the next bytes of the body, empty at its end; raises FaultError."""
        while not self._pieces:
            if self.complete and self.error is None:
                return b""
            if self._size > _HIGH_WATER or self.switched:
                self._connection.resume()
            self._size = 0
            if not self.switched:
                self._connection.deadline.set(self._connection.timeouts.between_bytes)
            await self.progress()
        pieces = self._pieces
        self._pieces = []
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def unread(self, data: bytes) -> None:
        self._pieces.insert(0, data)

    async def write(self, data: bytes) -> None:
        await self._connection.write(data)

    def release(self) -> None:
        ended, self.ended = self.ended, None
        if ended is not None:
            ended(self)

    def abandon(self) -> None:
        if not self.complete:
            self._connection.close()
        ended, self.ended = self.ended, None
        if ended is not None:
            ended(self)

    def feed(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        if self._waiter is not None and not self.small:
            self._connection.deadline.clear()
            self.wake()
        if self._size > _HIGH_WATER or self.switched:  # in a tunnel, one piece at a time
            self._connection.pause()

    def hand_on(self) -> None:
        self.small = False
        self.wake()

    def wake(self) -> None:
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            if not waiter.done():  # not cancelled
                waiter.set_result(None)

    async def progress(self) -> None:
        """Wait until more bytes have arrived; raises FaultError or StaleConnectionError."""
        if self.error is not None:
            raise self.error
        self._waiter = waiter = self._connection.loop.create_future()
        await waiter


# The maximum bytes of a response's head, and of its trailers; llhttp itself has no limit.
MAX_HEAD = 256 * 1024
# Stricter than llhttp: the bytes that a reason phrase must not contain (RFC 9112, section 4).
_CONTROLS = bytes(byte for byte in (*range(32), 127) if byte != 9)
_NO_PARSER, _SLOW = HttpResponseParser(None), "it took too long"
_BEGUN: Final = UpstreamState.EARLY_HEAD
_SPENT: Final = UpstreamState.SPENT  # Constants for speed, like the ordinary transitions below.
_SEND_ALL: Final = UPSTREAM_TRANSITIONS.after(UpstreamEvent.SEND_ALL)
_FINAL_HEAD: Final = UPSTREAM_TRANSITIONS.after(UpstreamEvent.FINAL_HEAD)
_BEGIN, _PIECE = (
    UPSTREAM_TRANSITIONS.after(UpstreamEvent.BEGIN),
    UPSTREAM_TRANSITIONS.after(UpstreamEvent.PIECE),
)
_END, _RELEASE = (
    UPSTREAM_TRANSITIONS.after(UpstreamEvent.END),
    UPSTREAM_TRANSITIONS.after(UpstreamEvent.RELEASE),
)


class UpstreamConnection:  # mypyc compiles no subclass of asyncio.Protocol
    """A connection to one target, reused only when that is safe.

    `gateway.http.connection_states` describes its states.

    Args:
        host: the Host field of requests that set no host.
        release: called with the connection when it is free for another exchange.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        name: str,
        authority: str,
        host: bytes,
        release: Callable[["UpstreamConnection"], None],
        lost: Callable[["UpstreamConnection"], None],
        batch: WriteBatch,
    ) -> None:
        self.loop, self.name, self.authority, self._host = loop, name, authority, host
        self._refusal: TlsError | None = None
        self.address: str | None = None  # the IP address if the target is a host name
        self._release, self._lost, self._batch = release, lost, batch
        self._transport: BatchingTransport | None = None
        self._writable: asyncio.Event | None = None
        self.deadline, self.timeouts = Deadline(loop, self._fail_by), Timeouts()
        self._state, self._parser = UpstreamState.FRESH, HttpResponseParser(self)
        self.may_rest, self.rested_since = jittered(None), inf  # the idle time, and its start
        self.retire_at = inf  # no exchange begins after this time
        self._reading = PacedReader(loop, self.data_received, self._costly)
        # The number of bytes of the head so far, and whether it surely is HTTP/1.1.
        self._head_size, self._is_1_1 = 0, False
        self._response: StreamedResponse | None = None
        self._request: UpstreamRequest | None = None
        self._pump: asyncio.Task[None] | None = None
        self._lines: HeaderFields = []  # the parser appends field lines here

    def is_usable(self, *, look: bool = False, idle: bool = True) -> bool:
        """Return whether an exchange can begin.

        Args:
            look: whether to call `is_quiet` for every kept connection. The tickets of TLS may just
                be arriving on a fresh one.
            idle: whether the connection may have been idle; False if it was just opened or freed.
        """
        transport = self._reading.transport
        if self._state not in FREE or transport is None or transport.is_closing():
            return False
        kept = self._state is UpstreamState.KEPT
        rests = (kept or idle) and self.loop.time() - self.rested_since >= LOOK_AFTER
        return not (rests or (look and kept)) or is_quiet(transport)

    @property
    def refusal(self) -> str:
        """The error of TLS after the handshake and before any exchange; empty without an error.

        With TLS 1.3, the service checks the client certificate after the gateway's handshake.
        """
        transport = self._reading.transport
        if transport is not None and self._state is UpstreamState.FRESH:  # it is still closing
            self._refusal = transport.get_extra_info("tls_error")
        return str(self._refusal or "")

    def send(self, request: UpstreamRequest, timeouts: Timeouts) -> StreamedResponse:
        """Send a request over a usable connection; return the response before it arrives.

        Waiting for the response raises StaleConnectionError if a kept connection closes before its
        first byte.
        """
        self._response = response = StreamedResponse(self, self.authority)
        self._lines = response.fields
        self._request, self.timeouts, self._head_size = request, timeouts, 0
        assert self._transport is not None
        write_request(self._transport.write_soon, request, self._host)
        # This replaces the deadline of the idle connection.
        if (body := request.body) is None or isinstance(body, bytes):
            self._state = _SEND_ALL.get(self._state) or _SEND_ALL[self._state]
            self.deadline.begin(timeouts.whole, timeouts.first_byte)
        else:
            self._state = UPSTREAM_TRANSITIONS[self._state, UpstreamEvent.SEND_HEAD]
            self.deadline.begin(timeouts.whole)
            self._pump = self.loop.create_task(self._send_pieces(body, request.length is None))
        return response

    def expire(self, seconds: float) -> None:
        """Close the connection if it is not used within this time."""
        self.rested_since = now = self.loop.time()
        self.deadline.set_at(now + seconds)

    def pause(self) -> None:
        self.deadline.clear()
        self._reading.pause()

    def resume(self) -> None:
        self._reading.resume()

    async def write(self, data: bytes) -> None:
        """Send bytes of a body or of another protocol; wait if the service reads too slowly."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)
        if self._writable is not None:  # `deadline` may apply to the response
            try:
                async with asyncio.timeout(self.timeouts.between_bytes):
                    await self._writable.wait()
            except TimeoutError:
                self._fail_by()

    def close(self) -> None:
        """Close the connection immediately, even during an exchange."""
        if self._pump is not None:
            self._pump.cancel()
        self.deadline.cancel()
        if self._transport is not None:
            self._transport.abort()

    async def _send_pieces(self, body: AsyncIterator[bytes], chunked: bool) -> None:
        try:
            async for piece in body:
                if self._transport is None or self._transport.is_closing():
                    return  # do not read the rest of the client's body for nothing
                if piece:  # an empty chunk would be the last one
                    await self.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            if chunked:
                await self.write(b"0\r\n\r\n")
        except Exception as error:  # after any error, the service would wait for the rest
            self._fail(error)
        else:
            self._state = UPSTREAM_TRANSITIONS[self._state, UpstreamEvent.SENT]
            if self._response is not None and not self._response.head:
                self.deadline.set(self.timeouts.first_byte)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        own = cast(asyncio.Transport, transport)  # uvloop's does not derive from it
        self._reading.transport, self._transport = own, BatchingTransport(own, self._batch)

    def data_received(self, data: bytes) -> None:  # noqa: C901  # one function, for speed
        response = self._response
        if response is None:
            self.close()  # unrequested bytes must not become the response to the next request
            return
        if response.switched:
            response.feed(data)
            return
        costly = len(data) > SLICE and not (response.head and response.sized)
        if not self._reading.active and (costly or self._reading.rest):
            self._reading.feed(data)
            return
        begun = response.head
        try:
            if self._state < _BEGUN:  # empty lines may have arrived before
                self._is_1_1 = data.startswith(b"HTTP/1.1 ")
                if not self._is_1_1 and data.lstrip(b"\r\n")[:1] not in b"H":
                    # llhttp accepts RTSP and ICE. A TLS alert has these bytes (RFC 8446, 5.1).
                    raise HttpParserError(_TLS if data[:2] == b"\x15\x03" else "another protocol")
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            if rest := data[upgrade.args[0] :]:
                response.feed(rest)
        except HttpParserError as error:
            self._fail_by(FaultCode.UPSTREAM_PROTOCOL, str(error.__context__ or error))
        else:
            if response.complete:
                self._finish()
                return
            if response.head and not begun:
                self.deadline.clear()
            if not response.head or response.trailers:
                self._head_size += len(data)
                if self._head_size >= MAX_HEAD:
                    what = "trailer section" if response.head else "response head"
                    self._fail_by(FaultCode.UPSTREAM_PROTOCOL, f"its {what} is too large")
            elif response.small:
                self.loop.call_later(MOMENT, response.hand_on)

    def _costly(self) -> bool:
        response = self._response
        return response is not None and (not response.head or response.crowded)

    def eof_received(self) -> None:
        """Return None, so that the transport closes as for any `asyncio.Protocol`."""

    def pause_writing(self) -> None:
        self._writable = asyncio.Event()

    def resume_writing(self) -> None:
        if self._writable is not None:
            self._writable.set()
            self._writable = None

    def connection_lost(self, exc: Exception | None) -> None:
        unsent = self._transport is not None and bool(self._transport.kept)
        self._transport = None
        self._lost(self)
        if isinstance(exc, TlsError) and self._state is UpstreamState.FRESH:
            self._refusal = exc
        loss = AT_END[self._state]
        self._state = UPSTREAM_TRANSITIONS[self._state, UpstreamEvent.LOST]
        if loss is ConnectionEnd.END and exc is None:
            assert self._response is not None
            self._response.complete = True
            self._response.wake()
        elif loss is ConnectionEnd.END or loss is ConnectionEnd.BROKEN:
            self._fail_by(FaultCode.UPSTREAM_PROTOCOL, "it broke off its response")
        elif loss is ConnectionEnd.STALE:
            self._fail(StaleConnectionError(unsent=unsent))
        elif loss is ConnectionEnd.UNREACHABLE:
            what = str(exc) if isinstance(exc, TlsError) else "it closed the connection"
            self._fail_by(FaultCode.UPSTREAM_UNREACHABLE, what)
        self.resume_writing()
        self.close()
        self._response = self._request = self._pump = None  # they form a reference cycle
        self._parser = _NO_PARSER  # the previous parser refers to this object
        self._reading.end()  # and the callbacks of the reader

    def on_message_begin(self) -> None:
        """Begin a response; the transition table rejects a second final response."""
        self._state = _BEGIN.get(self._state) or _BEGIN[self._state]

    def on_status(self, status: bytes) -> None:
        """Add a piece of the reason phrase."""
        if status != b"OK" and status.translate(None, _CONTROLS) != status:
            raise HttpParserError("a control character in the reason phrase")
        assert self._response is not None
        self._response.reason += status

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a field line of the head or of the trailer section."""
        self._lines.append((name, value))

    def on_headers_complete(self) -> None:
        response, request = self._response, self._request
        assert response is not None
        assert request is not None
        response.fields, length, coding, keep_alive = framing(response.fields)
        parser, status = self._parser, self._parser.get_status_code()
        if not 200 <= status <= 599:
            self._interim(response, request, status)
            return
        version = "1.1" if self._is_1_1 else parser.get_http_version()
        if (version, coding) not in FRAMINGS:
            raise HttpParserError(f"HTTP/{version} with transfer coding {coding!r}")
        response.status, response.head = status, True
        if length is not None:
            response.sized, response.small = True, length <= SMALL
        if keep_alive is not None:
            self.may_rest = jittered(granted(keep_alive))
        self._lines = response.trailers
        if parser.should_keep_alive():
            self._state = _FINAL_HEAD.get(self._state) or _FINAL_HEAD[self._state]
        elif coding or response.sized:
            self._state = UPSTREAM_TRANSITIONS[self._state, UpstreamEvent.FINAL_LAST_HEAD]
        else:
            self._state = UPSTREAM_TRANSITIONS[self._state, UpstreamEvent.FINAL_ENDLESS_HEAD]
        if request.method == "HEAD":
            # llhttp does not know the request's method, so it would wait for a body.
            self._parser = HttpResponseParser(self)
            self.on_message_complete()
        if not response.small:
            response.wake()

    def _interim(self, response: StreamedResponse, request: UpstreamRequest, status: int) -> None:
        if not 100 <= status < 200:  # RFC 9110, section 15
            raise HttpParserError(f"the status {status}")
        if status == 101:
            self._switch(response, request)
        elif request.informational is not None:
            request.informational(status, response.fields)
        if not response.head:
            response.reason, self._is_1_1 = b"", False
            response.fields = self._lines = []

    def _switch(self, response: StreamedResponse, request: UpstreamRequest) -> None:
        if not (self._parser.should_upgrade() and request.permits(response.fields)):
            raise HttpParserError("it switched protocols without a request")
        cast(BatchingTransport, self._transport).set_write_buffer_limits(0)  # see `bounds.pass_on`
        self._state = UPSTREAM_TRANSITIONS[self._state, UpstreamEvent.SWITCH]
        response.status, response.head, response.switched = 101, True, True
        self.deadline.clear()
        response.wake()

    def on_body(self, data: bytes) -> None:
        self._state = _PIECE.get(self._state) or _PIECE[self._state]
        assert self._response is not None
        self._response.feed(data)

    def on_message_complete(self) -> None:
        """Complete the response, unless it is an interim one."""
        response = self._response
        assert response is not None
        if response.trailers:
            response.trailers = trimmed(response.trailers)
            if sum(len(name) + len(value) + 4 for name, value in response.trailers) > MAX_HEAD:
                raise HttpParserError("its trailer section is too large")
            if any(name.lower() == b"connection" for name, _ in response.trailers):
                self._state = UPSTREAM_TRANSITIONS[
                    self._state, UpstreamEvent.CLOSING
                ]  # llhttp may close
        self._state = state = _END.get(self._state) or _END[self._state]
        if state in OVER:
            response.complete = True
            response.wake()

    def _finish(self) -> None:
        if self._state is _SPENT or self._reading.more:  # there is no request for further bytes
            self.close()
            self._response = self._request = self._pump = None
        else:
            self._state = _RELEASE.get(self._state) or _RELEASE[self._state]
            self._response = self._request = self._pump = None
            if self._reading.paused:  # the end of the connection may have arrived in the meantime
                self.resume()
            self.expire(self.may_rest)
            self._release(self)

    def _fail_by(self, code: FaultCode = FaultCode.UPSTREAM_TIMEOUT, what: str = _SLOW) -> None:
        self._fail(failure(code, self.name, what))

    def _fail(self, error: Exception) -> None:
        response = self._response
        if response is not None and not response.complete and response.error is None:
            response.error = error
            response.wake()
        self.close()
