"""One connection to a service: HTTP/1.1, one exchange at a time."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import cast

# httptools: Python's binding of llhttp, the parser of Node.js, strict unless told otherwise.
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from gateway.core.errors import FaultCode, FaultError
from gateway.core.service import Timeouts
from gateway.proxy.deadline import Deadline
from gateway.proxy.upstream.streamed_response import StreamedResponse
from gateway.proxy.upstream.upstream import StaleConnectionError, UpstreamRequest, failure

# What a response may take before its body begins; llhttp itself sets no bound.
_MAX_HEAD = 256 * 1024
# Stricter than llhttp: versions with codings (RFC 9112, 6.1), digits, what no reason holds (4).
_FRAMINGS = {("1.1", b""), ("1.1", b"chunked,"), ("1.0", b"")}
_DIGITS = 18
_CONTROLS = bytes(byte for byte in (*range(32), 127) if byte != 9)


class UpstreamConnection(asyncio.Protocol):
    """A connection to one target, used again as long as that is certainly safe.

    Args:
        loop: the event loop.
        name: what the log calls the target.
        release: called with the connection whenever it is free for another exchange.
        lost: called with the connection when it is closed.
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
        self._used = False
        self._exchange_over()

    def _exchange_over(self) -> None:
        self._response: StreamedResponse | None = None
        self._request: UpstreamRequest | None = None
        self._pump: asyncio.Task[None] | None = None
        self._sent = False
        self._begun = False
        self._coding = b""
        self._head_size = 0
        self._until_close = False
        self._keep = False

    @property
    def usable(self) -> bool:
        """Whether an exchange can begin: open, and nothing under way."""
        return (
            self._transport is not None
            and not self._transport.is_closing()
            and self._response is None
        )

    def send(self, request: UpstreamRequest, timeouts: Timeouts) -> StreamedResponse:
        """Send a request over a usable connection; return the response, of which nothing has come.

        It raises StaleConnectionError where a kept connection is closed before anything came back,
        which mostly means that the service did not see the request.
        """
        self._response = response = StreamedResponse(self, self.name)
        self._request = request
        self._timeouts = timeouts
        self._deadline.begin(timeouts.whole)  # until now the clock of an idle connection ran
        self._send(request)
        return response

    def expire(self, seconds: float) -> None:
        """Close the connection if it is not used within that time."""
        self._deadline.set(seconds)

    def expect_bytes(self) -> None:
        """Start the clock for the next bytes of the body."""
        self._deadline.set(self._timeouts.between_bytes)

    def pause(self) -> None:
        """Make the service wait."""
        self._deadline.clear()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume(self) -> None:
        """Let the service go on."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    async def write(self, data: bytes) -> None:
        """Send bytes of another protocol, once switched; wait while the service is slower."""
        if self._transport is not None:
            self._transport.write(data)
        if self._writable is not None:
            await self._writable.wait()

    def close(self) -> None:
        """Drop the connection at once, whatever is under way."""
        if self._pump is not None:
            self._pump.cancel()
        self._deadline.cancel()
        if self._transport is not None:
            self._transport.abort()

    # Sending.

    def _send(self, request: UpstreamRequest) -> None:
        assert self._transport is not None
        begin = f"{request.method} {request.target} HTTP/1.1\r\nHost: "
        lines = [begin.encode("utf-8", "surrogateescape"), request.host or self._host, b"\r\n"]
        for name, value in request.fields:
            lines += (name, b": ", value, b"\r\n")
        body = request.body
        if isinstance(body, bytes):
            lines += (b"Content-Length: %d\r\n\r\n" % len(body), body)
        elif body is None:
            lines.append(b"\r\n")
        elif request.length is None:
            lines.append(b"Transfer-Encoding: chunked\r\n\r\n")
        else:
            lines.append(b"Content-Length: %d\r\n\r\n" % request.length)
        self._transport.write(b"".join(lines))
        if body is None or isinstance(body, bytes):
            self._all_sent()
        else:
            self._pump = self.loop.create_task(self._send_pieces(body, request.length is None))

    async def _send_pieces(self, body: AsyncIterator[bytes], chunked: bool) -> None:
        assert self._transport is not None
        try:
            async for piece in body:
                if self._transport.is_closing():
                    return
                self._transport.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
                if self._writable is not None:
                    # A clock of its own: the response may be on its way already.
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
        self._sent = True
        if self._response is not None and not self._response.head:
            self._deadline.set(self._timeouts.first_byte)

    # asyncio's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's does not derive from it

    def data_received(self, data: bytes) -> None:
        """Parse what came."""
        response = self._response
        if response is None:
            self.close()  # nobody asked: never to be taken for the answer to the next request
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
            if response.complete:
                self._finish(response)
            elif not response.head:
                self._head_size += len(data)
                if self._head_size > _MAX_HEAD:
                    self._protocol_error("its response head is too large")

    def pause_writing(self) -> None:
        """Make the request body wait."""
        self._writable = asyncio.Event()

    def resume_writing(self) -> None:
        """Let the request body go on."""
        if self._writable is not None:
            self._writable.set()
            self._writable = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Say what the end of the connection means for the response."""
        self._transport = None
        self._lost(self)
        response = self._response
        if response is not None and not response.complete:
            if response.head and (self._until_close or response.switched) and exc is None:
                response.complete = True
                response.wake()
            elif response.head or self._begun:
                self._protocol_error("it broke off its response")
            elif self._used:
                self._fail(StaleConnectionError())
            else:
                self._fail(
                    failure(FaultCode.UPSTREAM_UNREACHABLE, self.name, "it closed the connection")
                )
        self.resume_writing()
        self.close()
        self._exchange_over()  # it names this connection, which would wait for a collection,
        del self._parser  # and so does this

    # llhttp's side.

    def on_message_begin(self) -> None:
        """Begin a response; a second one was not asked for."""
        response = self._response
        if response is None or response.complete:
            raise HttpParserError("data after the end of the response")
        self._begun = True
        response.reason = b""
        response.fields = []
        response.sized = False
        self._coding = b""

    def on_status(self, status: bytes) -> None:
        """Take a piece of the reason phrase."""
        assert self._response is not None
        if status.translate(None, _CONTROLS) != status:
            raise HttpParserError("a overrides character in the reason phrase")
        self._response.reason += status

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a field line, be it of the head or of the trailer section."""
        response = self._response
        assert response is not None
        if response.head:
            response.trailers.append((name, value.rstrip(b" \t")))
            self._keep = self._keep and name.lower() != b"connection"  # llhttp heeds it
            self._head_size += len(name) + len(value)
            if self._head_size > _MAX_HEAD:
                raise HttpParserError("its trailer section is too large")
            return
        # llhttp leaves the white space after the value (RFC 9110, section 5.5).
        response.fields.append((name, value.rstrip(b" \t")))
        if len(name) == 14 and name.lower() == b"content-length":
            if len(value) > _DIGITS:
                raise HttpParserError("a length of too many digits")
            response.sized = True
        elif len(name) == 17 and name.lower() == b"transfer-encoding":
            self._coding += value.rstrip(b" ").lower() + b","  # to llhttp, a tab hides chunked

    def on_headers_complete(self) -> None:
        """Judge the head: an interim response, or the beginning of the one that was asked for."""
        response, request = self._response, self._request
        assert response is not None
        assert request is not None
        status = self._parser.get_status_code()
        if status < 100:
            raise HttpParserError("a status below 100")
        if status < 200:
            if status == 101 and request.upgrade:
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
        self._keep = self._parser.should_keep_alive()
        if request.method == "HEAD":
            # llhttp does not know what was asked, so it would wait for the body.
            self._parser = HttpResponseParser(self)
            response.complete = True
        self._until_close = not coding and not response.sized
        response.wake()

    def on_body(self, data: bytes) -> None:
        """Take a piece of the body."""
        response = self._response
        if response is None or response.complete:
            raise HttpParserError("a body where there can be none")
        self._deadline.clear()
        response.feed(data)

    def on_message_complete(self) -> None:
        """Take note that the body is complete; interim responses do not count."""
        response = self._response
        if response is not None and response.head and not response.switched:
            response.complete = True
            response.wake()

    def _switch(self, response: StreamedResponse, data: bytes) -> None:
        if not response.switched:
            self._protocol_error("it switched protocols unasked")
        elif data:
            response.feed(data)

    # The ends.

    def _finish(self, response: StreamedResponse) -> None:
        keep = self._keep and self._sent and self._transport is not None
        pump = self._pump
        self._exchange_over()
        if keep:
            self._used = True
            self.resume()  # the end may have come while the service was made to wait
            self._release(self)
        else:
            self._pump = pump
            self.close()

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
