"""A connection to a service: HTTP/1.1, one exchange at a time."""

import asyncio
from collections.abc import AsyncIterator, Callable
from math import inf
from typing import Final, cast

# httptools: Python's binding of llhttp, the parser of Node.js, which is strict by default.
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from gateway.base.errors import FaultCode
from gateway.base.headers import HeaderFields
from gateway.http.bounds.deadline import Deadline
from gateway.http.turns.paced_reading import SLICE, PacedReading
from gateway.http.turns.turn_writes import TurnTransport, TurnWrites
from gateway.http.upstream.framing_fields import FRAMINGS, framing, trimmed
from gateway.http.upstream.keep_alive import LOOK_AFTER, granted, is_quiet, jittered
from gateway.http.upstream.request_head import write_request
from gateway.http.upstream.service import Timeouts
from gateway.http.upstream.streamed_response import MOMENT, SMALL, StreamedResponse
from gateway.http.upstream.upstream import StaleConnectionError, UpstreamRequest, failure
from gateway.http.upstream.upstream_state import (
    AT_END,
    FREE,
    OVER,
    TRANSITIONS,
    ConnectionEnd,
    UpstreamEvent,
    UpstreamState,
)

# The maximum bytes of a response's head, and of its trailers; llhttp itself sets no bound.
MAX_HEAD = 256 * 1024
# Stricter than llhttp: what a reason phrase has none of (RFC 9112, section 4).
_CONTROLS = bytes(byte for byte in (*range(32), 127) if byte != 9)
_NO_PARSER, _SLOW = HttpResponseParser(None), "it took too long"
_BEGUN: Final = UpstreamState.EARLY_HEAD
_SPENT: Final = UpstreamState.SPENT  # read often, like the transitions of an ordinary exchange:
_SEND_ALL: Final = TRANSITIONS.after(UpstreamEvent.SEND_ALL)
_FINAL_HEAD: Final = TRANSITIONS.after(UpstreamEvent.FINAL_HEAD)
_BEGIN, _PIECE = TRANSITIONS.after(UpstreamEvent.BEGIN), TRANSITIONS.after(UpstreamEvent.PIECE)
_END, _RELEASE = TRANSITIONS.after(UpstreamEvent.END), TRANSITIONS.after(UpstreamEvent.RELEASE)


class UpstreamConnection:  # no asyncio.Protocol, below which mypyc compiles no class
    """A connection to one target, reused only if that is surely safe; see `upstream_state`.

    Args:
        loop: the event loop.
        name: the authority of the target, also for Host and the log.
        release: a function called with the connection when it is free for another exchange.
        lost: a function called with the connection when it is closed.
        writes: what sends the requests of a turn of the event loop.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        name: str,
        release: Callable[["UpstreamConnection"], None],
        lost: Callable[["UpstreamConnection"], None],
        writes: TurnWrites,
    ) -> None:
        self.loop, self.name, self._host = loop, name, name.encode()
        self._release, self._lost, self._writes = release, lost, writes
        self._transport: TurnTransport | None = None
        self._writable: asyncio.Event | None = None
        self.deadline, self.timeouts = Deadline(loop, self._fail_by), Timeouts()
        self._state, self._parser = UpstreamState.FRESH, HttpResponseParser(self)
        self.may_rest, self._rested_since = jittered(None), inf  # between exchanges, in seconds
        self._reading = PacedReading(loop, self.data_received, self._costly)
        # How much of a head came, and whether it is surely of HTTP/1.1.
        self._head_size, self._is_1_1 = 0, False
        self._response: StreamedResponse | None = None
        self._request: UpstreamRequest | None = None
        self._pump: asyncio.Task[None] | None = None
        self._lines: HeaderFields = []  # where the parser puts field lines: of a head, or trailers

    def is_usable(self) -> bool:
        """Return whether an exchange can begin: it is open, free, and has no unread bytes."""
        transport = self._transport
        if self._state not in FREE or transport is None or transport.is_closing():
            return False
        return self.loop.time() - self._rested_since < LOOK_AFTER or is_quiet(transport)

    def send(self, request: UpstreamRequest, timeouts: Timeouts) -> StreamedResponse:
        """Send a request over a usable connection; return the response before any of it arrived.

        Waiting for it raises StaleConnectionError if a kept connection closes before a byte of it.
        """
        self._response = response = StreamedResponse(self, self.name)
        self._lines = response.fields
        self._request, self.timeouts, self._head_size = request, timeouts, 0
        assert self._transport is not None
        write_request(self._transport.write_soon, request, self._host)
        # This replaces the deadline of the idle connection.
        if (body := request.body) is None or isinstance(body, bytes):
            self._state = _SEND_ALL.get(self._state) or _SEND_ALL[self._state]
            self.deadline.begin(timeouts.whole, timeouts.first_byte)
        else:
            self._state = TRANSITIONS[self._state, UpstreamEvent.SEND_HEAD]
            self.deadline.begin(timeouts.whole)
            self._pump = self.loop.create_task(self._send_pieces(body, request.length is None))
        return response

    def expire(self, seconds: float) -> None:
        """Close the connection if it is not used within so many seconds."""
        self._rested_since = now = self.loop.time()
        self.deadline.set_at(now + seconds)

    def pause(self) -> None:
        """Pause reading from the service."""
        self.deadline.clear()
        self._reading.pause()

    def resume(self) -> None:
        """Resume reading from the service."""
        self._reading.resume()

    async def write(self, data: bytes) -> None:
        """Send bytes of a body or another protocol; wait until the service takes more."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)
        if self._writable is not None:  # not `deadline`: the response may be arriving
            try:
                async with asyncio.timeout(self.timeouts.between_bytes):
                    await self._writable.wait()
            except TimeoutError:
                self._fail_by()

    def close(self) -> None:
        """Abort the connection at once, even during an exchange."""
        if self._pump is not None:
            self._pump.cancel()
        self.deadline.cancel()
        if self._transport is not None:
            self._transport.abort()

    async def _send_pieces(self, body: AsyncIterator[bytes], chunked: bool) -> None:
        try:
            async for piece in body:
                if self._transport is None or self._transport.is_closing():
                    return  # the client is asked for no more that would go nowhere
                if piece:  # an empty chunk would be the last one
                    await self.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            if chunked:
                await self.write(b"0\r\n\r\n")
        except Exception as error:  # whatever it is, the service would wait for the rest
            self._fail(error)
        else:
            self._state = TRANSITIONS[self._state, UpstreamEvent.SENT]
            if self._response is not None and not self._response.head:
                self.deadline.set(self.timeouts.first_byte)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        own = cast(asyncio.Transport, transport)  # uvloop's does not derive from it
        self._reading.transport, self._transport = own, TurnTransport(own, self._writes)

    def data_received(self, data: bytes) -> None:  # noqa: C901  # one frame, for speed
        """Parse received bytes."""
        response = self._response
        if response is None:
            self.close()  # unrequested bytes must not answer the next request
            return
        if response.switched:
            response.feed(data)
            return
        costly = len(data) > SLICE and not (response.head and response.sized)
        if not self._reading.active and (costly or self._reading.rest):
            self._reading.feed(data)
            return
        try:
            if self._state < _BEGUN:  # perhaps behind empty lines
                self._is_1_1 = data.startswith(b"HTTP/1.1 ")
                if not self._is_1_1 and data.lstrip(b"\r\n")[:1] not in b"H":
                    raise HttpParserError("another protocol")  # llhttp takes RTSP and ICE
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            if rest := data[upgrade.args[0] :]:
                response.feed(rest)
        except HttpParserError as error:
            self._fail_by(FaultCode.UPSTREAM_PROTOCOL, str(error.__context__ or error))
        else:
            if response.complete:
                self._finish()
            elif not response.head or response.trailers:
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
        """Have the transport close, as for any `asyncio.Protocol`."""

    def pause_writing(self) -> None:
        """Pause sending the request body."""
        self._writable = asyncio.Event()

    def resume_writing(self) -> None:
        """Resume sending the request body."""
        if self._writable is not None:
            self._writable.set()
            self._writable = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Complete the response or fail it, according to the state at the end."""
        self._transport = None
        self._lost(self)
        loss = AT_END[self._state]
        self._state = TRANSITIONS[self._state, UpstreamEvent.LOST]
        if loss is ConnectionEnd.END and exc is None:
            assert self._response is not None
            self._response.complete = True
            self._response.wake()
        elif loss is ConnectionEnd.END or loss is ConnectionEnd.BROKEN:
            self._fail_by(FaultCode.UPSTREAM_PROTOCOL, "it broke off its response")
        elif loss is ConnectionEnd.STALE:
            self._fail(StaleConnectionError())
        elif loss is ConnectionEnd.UNREACHABLE:
            self._fail_by(FaultCode.UPSTREAM_UNREACHABLE, "it closed the connection")
        self.resume_writing()
        self.close()
        self._response = self._request = self._pump = None  # they refer to this: a cycle,
        self._parser = _NO_PARSER  # and so did the one before,
        self._reading.end()  # and what this calls

    def on_message_begin(self) -> None:
        """Begin a response; a second final one is illegal in the transition table."""
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
        """Process the head of an interim or final response."""
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
        self.deadline.clear()
        if parser.should_keep_alive():
            self._state = _FINAL_HEAD.get(self._state) or _FINAL_HEAD[self._state]
        elif coding or response.sized:
            self._state = TRANSITIONS[self._state, UpstreamEvent.FINAL_LAST_HEAD]
        else:
            self._state = TRANSITIONS[self._state, UpstreamEvent.FINAL_ENDLESS_HEAD]
        if request.method == "HEAD":
            # llhttp has no access to the request's method, so it would wait for a body.
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
            raise HttpParserError("it switched protocols unasked")
        cast(TurnTransport, self._transport).set_write_buffer_limits(0)  # see `TunnelRoom`
        self._state = TRANSITIONS[self._state, UpstreamEvent.SWITCH]
        response.status, response.head, response.switched = 101, True, True
        self.deadline.clear()
        response.wake()

    def on_body(self, data: bytes) -> None:
        """Add a piece of the body to the response."""
        self._state = _PIECE.get(self._state) or _PIECE[self._state]
        assert self._response is not None
        self._response.feed(data)

    def on_message_complete(self) -> None:
        """Complete the response, if it is not an interim one."""
        response = self._response
        assert response is not None
        if response.trailers:
            response.trailers = trimmed(response.trailers)
            if sum(len(name) + len(value) + 4 for name, value in response.trailers) > MAX_HEAD:
                raise HttpParserError("its trailer section is too large")
            if any(name.lower() == b"connection" for name, _ in response.trailers):
                self._state = TRANSITIONS[self._state, UpstreamEvent.CLOSING]  # llhttp may close
        self._state = state = _END.get(self._state) or _END[self._state]
        if state in OVER:
            response.complete = True
            response.wake()

    def _finish(self) -> None:
        if self._state is _SPENT or self._reading.more:  # what follows answers nothing
            self.close()
            self._response = self._request = self._pump = None
        else:
            self._state = _RELEASE.get(self._state) or _RELEASE[self._state]
            self._response = self._request = self._pump = None
            if self._reading.paused:  # the end may have arrived meanwhile
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
