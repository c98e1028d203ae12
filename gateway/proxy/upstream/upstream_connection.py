"""A connection to a service: HTTP/1.1, one exchange at a time."""

import asyncio
from collections.abc import AsyncIterator, Callable
from math import inf
from typing import cast

# httptools: Python's binding of llhttp, the parser of Node.js, which is strict by default.
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from gateway.core.errors import FaultCode, FaultError
from gateway.core.service import Timeouts
from gateway.proxy.deadline import Deadline
from gateway.proxy.upstream.keep_alive import LOOK_AFTER, USUAL, granted, is_quiet, jittered
from gateway.proxy.upstream.request_head import request_bytes
from gateway.proxy.upstream.streamed_response import StreamedResponse
from gateway.proxy.upstream.upstream import StaleConnectionError, UpstreamRequest, failure
from gateway.proxy.upstream.upstream_state import (
    AT_END,
    FREE,
    OVER,
    TRANSITIONS,
    ConnectionEnd,
    UpstreamEvent,
    UpstreamState,
)

# The maximum bytes of a response's head, and of its trailers; llhttp itself sets no bound.
_MAX_HEAD = 256 * 1024
# Stricter than llhttp: codings by version (RFC 9112, 6.1), digits of a length, reason phrases (4).
_FRAMINGS = {("1.1", b""), ("1.1", b"chunked,"), ("1.0", b"")}
_DIGITS = 18
_CONTROLS = bytes(byte for byte in (*range(32), 127) if byte != 9)


class UpstreamConnection(asyncio.Protocol):
    """A connection to one target, reused only when that is certainly safe.

    Its states are defined in `upstream_state`.

    Args:
        loop: the event loop.
        name: the authority of the target, also for Host and the log.
        release: a function called with the connection when it is free for another exchange.
        lost: a function called with the connection when it is closed.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        name: str,
        release: Callable[["UpstreamConnection"], None],
        lost: Callable[["UpstreamConnection"], None],
    ) -> None:
        self.loop = loop
        self.name = name
        self._host = name.encode()
        self._release = release
        self._lost = lost
        self._transport: asyncio.Transport | None = None
        self._parser = HttpResponseParser(self)
        self._writable: asyncio.Event | None = None
        self._deadline = Deadline(loop, self._too_slow)
        self._timeouts = Timeouts()
        self._state = UpstreamState.FRESH
        self.may_rest = jittered(USUAL)  # between two exchanges, in seconds
        self._rested_since = inf
        self._exchange_over()

    def _exchange_over(self) -> None:
        self._response: StreamedResponse | None = None
        self._request: UpstreamRequest | None = None
        self._pump: asyncio.Task[None] | None = None
        self._coding = b""
        self._head_size = 0

    @property
    def usable(self) -> bool:
        """Whether an exchange can begin: the connection is open, free, and has no unread bytes."""
        transport = self._transport
        if self._state not in FREE or transport is None or transport.is_closing():
            return False
        return self.loop.time() - self._rested_since < LOOK_AFTER or is_quiet(transport)

    def send(self, request: UpstreamRequest, timeouts: Timeouts) -> StreamedResponse:
        """Send a request over a usable connection; return the response before any of it arrived.

        Waiting for the response raises StaleConnectionError if a kept connection closes before its
        first byte, since the service then most likely did not receive the request.
        """
        self._response = response = StreamedResponse(self, self.name)
        self._request = request
        self._timeouts = timeouts
        self._deadline.begin(timeouts.whole)  # replaces the deadline of the idle connection
        assert self._transport is not None
        self._transport.write(request_bytes(request, self._host))
        body = request.body
        if body is None or isinstance(body, bytes):
            self._state = TRANSITIONS[self._state, UpstreamEvent.SEND_ALL]
            self._deadline.set(timeouts.first_byte)
        else:
            self._state = TRANSITIONS[self._state, UpstreamEvent.SEND_HEAD]
            self._pump = self.loop.create_task(self._send_pieces(body, request.length is None))
        return response

    def expire(self, seconds: float) -> None:
        """Close the connection if it is not used within so many seconds."""
        self._rested_since = self.loop.time()
        self._deadline.set(seconds)

    def expect_bytes(self) -> None:
        """Start the timeout for the next bytes of the body."""
        self._deadline.set(self._timeouts.between_bytes)

    def pause(self) -> None:
        """Pause reading from the service."""
        self._deadline.clear()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume(self) -> None:
        """Resume reading from the service."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    async def write(self, data: bytes) -> None:
        """Send bytes of the protocol switched to; wait while the service reads too slowly."""
        if self._transport is not None:
            self._transport.write(data)
        if self._writable is not None:
            await self._writable.wait()

    def close(self) -> None:
        """Abort the connection at once, even during an exchange."""
        if self._pump is not None:
            self._pump.cancel()
        self._deadline.cancel()
        if self._transport is not None:
            self._transport.abort()

    async def _send_pieces(self, body: AsyncIterator[bytes], chunked: bool) -> None:
        assert self._transport is not None
        try:
            async for piece in body:
                if self._transport.is_closing():
                    return
                self._transport.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
                if self._writable is not None:
                    # Not `_deadline`, since the response may be arriving already.
                    async with asyncio.timeout(self._timeouts.between_bytes):
                        await self._writable.wait()
            if chunked:
                self._transport.write(b"0\r\n\r\n")
        except FaultError as error:
            self._fail(error)
        except TimeoutError:
            self._too_slow()
        else:
            self._all_sent()

    def _all_sent(self) -> None:
        self._state = TRANSITIONS[self._state, UpstreamEvent.SENT]
        if self._response is not None and not self._response.head:
            self._deadline.set(self._timeouts.first_byte)

    # Callbacks of asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's does not derive from it

    def data_received(self, data: bytes) -> None:
        """Parse received bytes."""
        response = self._response
        if response is None:
            self.close()  # unrequested bytes must not answer the next request
            return
        if response.switched:
            response.feed(data)
            return
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as error:
            self._switch(response, data[error.args[0] :])
        except HttpParserError as error:
            self._protocol_error(str(error.__context__ or error))
        else:
            if self._state in OVER:
                self._finish()
            elif not response.head:
                self._head_size += len(data)
                if self._head_size > _MAX_HEAD:
                    self._protocol_error("its response head is too large")

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
            self._protocol_error("it broke off its response")
        elif loss is ConnectionEnd.STALE:
            self._fail(StaleConnectionError())
        elif loss is ConnectionEnd.UNREACHABLE:
            self._fail(
                failure(FaultCode.UPSTREAM_UNREACHABLE, self.name, "it closed the connection")
            )
        self.resume_writing()
        self.close()
        self._exchange_over()  # it refers to this connection, which is a cycle,
        del self._parser  # and so does this

    # Callbacks of llhttp.

    def on_message_begin(self) -> None:
        """Begin a response; a second final one is illegal in the transition table."""
        self._state = TRANSITIONS[self._state, UpstreamEvent.BEGIN]
        response = self._response
        assert response is not None
        response.reason = b""
        response.fields = []
        response.sized = False
        self._coding = b""

    def on_status(self, status: bytes) -> None:
        """Add a piece of the reason phrase."""
        assert self._response is not None
        if status.translate(None, _CONTROLS) != status:
            raise HttpParserError("a control character in the reason phrase")
        self._response.reason += status

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a field line of the head or of the trailer section."""
        response = self._response
        assert response is not None
        if response.head:
            response.trailers.append((name, value.rstrip(b" \t")))
            if name.lower() == b"connection":  # llhttp may close on it
                self._state = TRANSITIONS[self._state, UpstreamEvent.CLOSING]
            self._head_size += len(name) + len(value)
            if self._head_size > _MAX_HEAD:
                raise HttpParserError("its trailer section is too large")
            return
        # llhttp keeps trailing white space, which is no part of a value (RFC 9110, section 5.5).
        response.fields.append((name, value.rstrip(b" \t")))
        size = len(name)
        if size == 14 and name.lower() == b"content-length":
            if len(value) > _DIGITS:
                raise HttpParserError("a length of too many digits")
            response.sized = True
        elif size == 10 and name[0] in b"Kk" and name.lower() == b"keep-alive":
            seconds = granted(value)
            self.may_rest = jittered(USUAL if seconds is None else seconds)
        elif size == 17 and name.lower() == b"transfer-encoding":
            self._coding += value.rstrip(b" ").lower() + b","  # llhttp misses chunked by a tab

    def on_headers_complete(self) -> None:
        """Process the head of an interim or final response."""
        response, request = self._response, self._request
        assert response is not None
        assert request is not None
        status = self._parser.get_status_code()
        if not 100 <= status <= 599:  # RFC 9110, section 15
            raise HttpParserError(f"the status {status}")
        if status < 200:
            if status == 101 and request.upgrade:
                self._state = TRANSITIONS[self._state, UpstreamEvent.SWITCH]
                response.status, response.head, response.switched = status, True, True
                self._deadline.clear()
                response.wake()
            elif status != 101 and request.informational is not None:
                request.informational(status, response.fields)
            return
        coding, version = self._coding, self._parser.get_http_version()
        if (version, coding) not in _FRAMINGS:
            raise HttpParserError(f"HTTP/{version} with transfer coding {coding!r}")
        response.status = status
        response.head = True
        self._deadline.clear()
        if self._parser.should_keep_alive():
            event = UpstreamEvent.FINAL_HEAD
        elif coding or response.sized:
            event = UpstreamEvent.FINAL_LAST_HEAD
        else:
            event = UpstreamEvent.FINAL_ENDLESS_HEAD
        self._state = TRANSITIONS[self._state, event]
        if request.method == "HEAD":
            # llhttp has no access to the request's method, so it would wait for a body.
            self._parser = HttpResponseParser(self)
            self.on_message_complete()
        response.wake()

    def on_body(self, data: bytes) -> None:
        """Add a piece of the body to the response."""
        self._state = TRANSITIONS[self._state, UpstreamEvent.PIECE]
        assert self._response is not None
        self._deadline.clear()
        self._response.feed(data)

    def on_message_complete(self) -> None:
        """Complete the response, if it is not an interim one."""
        self._state = state = TRANSITIONS[self._state, UpstreamEvent.END]
        if state in OVER:
            assert self._response is not None
            self._response.complete = True
            self._response.wake()

    def _switch(self, response: StreamedResponse, data: bytes) -> None:
        if not response.switched:
            self._protocol_error("it switched protocols unasked")
        elif data:
            response.feed(data)

    def _finish(self) -> None:
        if self._state is UpstreamState.SPENT:
            self.close()
            self._exchange_over()
        else:
            self._state = TRANSITIONS[self._state, UpstreamEvent.RELEASE]
            self._exchange_over()
            self.resume()  # the end may have arrived while reading was paused
            self._release(self)

    def _protocol_error(self, what: str) -> None:
        self._fail(failure(FaultCode.UPSTREAM_PROTOCOL, self.name, what))

    def _too_slow(self) -> None:
        self._fail(failure(FaultCode.UPSTREAM_TIMEOUT, self.name, "it took too long"))

    def _fail(self, error: Exception) -> None:
        response = self._response
        if response is not None and not response.complete and response.error is None:
            response.error = error
            response.wake()
        self.close()
