"""The front: aiohttp's low-level server and parser, with a lean loop from request to response.

aiohttp's own loop makes a task, a request and a response object for every request, which costs as
much as all that a gateway does with it. `ClientConnection` keeps what is hard (parsing, flow
overrides, keep-alive, shutdown) and walks from one request to the next by itself.
"""

import asyncio
from typing import Any, Protocol

from aiohttp import StreamReader
from aiohttp.http import HttpRequestParser, RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD
from aiohttp.web import RequestHandler, RequestPayloadError, Server
from aiohttp.web_protocol import ERROR

from gateway.core.errors import Fault, FaultCode
from gateway.core.snapshot import Limits
from gateway.proxy.client import parser_limits
from gateway.proxy.client.client_request import ClientRequest
from gateway.proxy.client.client_response import ClientResponse, reset
from gateway.proxy.client.client_state import BETWEEN, TRANSITIONS, ClientEvent, ClientState
from gateway.proxy.client.tunnel import Tunnel
from gateway.proxy.deadline import Deadline

# How long to read what a client still sends after its answer, before the connection is cut.
_LINGER = 5.0


class HttpHandler(Protocol):
    """What the front hands requests to."""

    @property
    def limits(self) -> Limits:
        """Return what bounds new connections."""
        ...

    async def answer(self, inbound: ClientRequest, down: ClientResponse) -> None:
        """Answer a request, whatever happens; cancelled when the client leaves."""
        ...

    def refuse(self, inbound: ClientRequest, down: ClientResponse, fault: Fault) -> None:
        """Answer with a fault what could not be read as a request."""
        ...


class ClientServer(Server):
    """Accepts connections and has every request answered."""

    def __init__(self, answers: HttpHandler) -> None:
        super().__init__(_unused, handler_cancellation=True)
        self.answers = answers
        self.open = 0
        self._emptied = asyncio.Event()

    def __call__(self) -> "ClientConnection":
        """Return the protocol for a new connection."""
        return ClientConnection(self, self._loop)

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        """Count a connection."""
        super().connection_made(handler, transport)
        self.open += 1

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        """Count a connection no more: all that was written to it is sent, or will never be."""
        super().connection_lost(handler, exc)
        self.open -= 1
        if not self.open:
            self._emptied.set()

    async def finish(self) -> None:
        """Close every connection, each after the answer that is under way; return when all are."""
        self._emptied.clear()
        for connection in self._clients():
            connection.finish()
        if self.open:
            await self._emptied.wait()

    async def cut(self, seconds: float) -> None:
        """Cut every connection, so that no answer is taken for whole, and end its task in time."""
        for connection in self._clients():
            connection.cut()
        await self.shutdown(seconds)

    def _clients(self) -> list["ClientConnection"]:
        return [each for each in self.connections if isinstance(each, ClientConnection)]


async def _unused(_: object) -> Any:
    raise AssertionError("ClientConnection hands its requests on by itself")


class ClientConnection(RequestHandler):
    """One client connection.

    `client_state` has its states; what belongs to the request under way stands beside the state.
    """

    __slots__ = (
        "_answers",
        "_content",
        "_deadline",
        "_down",
        "_end",
        "_front",
        "_heavy",
        "_limits",
        "_own",
        "_peer",
        "_state",
        "_unparsed",
    )

    def __init__(self, front: ClientServer, loop: asyncio.AbstractEventLoop) -> None:
        self._limits = limits = front.answers.limits
        super().__init__(
            front,
            loop=loop,
            access_log=None,  # type: ignore[arg-type]  # aiohttp's way to say: none
            auto_decompress=False,
            keepalive_timeout=0,  # the deadline's business
            max_line_size=limits.target,
            max_field_size=parser_limits.longest_field(limits),
            max_headers=limits.header_fields,
        )
        self._front = front
        self._answers = front.answers
        self._deadline = Deadline(loop, self._too_slow)
        self._state = ClientState.IDLE
        self._unparsed = 0
        self._heavy = False
        self._content = EMPTY_PAYLOAD
        self._down: ClientResponse | None = None
        self._end = b""
        self._peer = self._own = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note who is at the two ends; show one out who is too many."""
        peer = transport.get_extra_info("peername")  # None if the client has left again
        self._peer = peer[0] if peer else ""
        host, port = transport.get_extra_info("sockname")[:2]
        self._own = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        super().connection_made(transport)
        self._deadline.set(self._limits.idle_seconds)
        if self._front.open > self._limits.connections:
            again = ((b"Retry-After", b"1"),)
            self._turn_away(
                Fault(
                    FaultCode.OVERLOADED, "Too many clients are connected; try again.", fields=again
                )
            )

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget the deadline."""
        self._state = TRANSITIONS[self._state, ClientEvent.LOST]
        self._deadline.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came; a body that turns out to be broken is broken for its reader too."""
        super().data_received(data)
        self._end = data[-4:] if len(data) > 3 else (self._end + data)[-4:]
        if self._state in BETWEEN:
            self._note_head(len(data))
        if (
            self._messages
            and not isinstance(self._messages[-1][0], RawRequestMessage)
            and not self._content.is_eof()
        ):
            self._content.set_exception(RequestPayloadError())

    def _note_head(self, size: int) -> None:
        # Counted as it comes; only what might be too much is looked at once it is there.
        if self._messages:
            self._state = TRANSITIONS[self._state, ClientEvent.REQUEST]
            self._deadline.clear()
            self._heavy = self._unparsed + size > self._limits.header_bytes
            self._unparsed = 0
        elif size:
            if self._state is ClientState.IDLE:
                self._deadline.set(self._limits.header_seconds)
            self._state = TRANSITIONS[self._state, ClientEvent.BYTES]
            self._unparsed += size

    def _too_slow(self) -> None:
        if self._state is ClientState.HEAD:
            seconds = self._limits.header_seconds
            detail = f"The header fields were not there within {seconds:g} seconds."
            self._turn_away(Fault(FaultCode.REQUEST_TIMEOUT, detail))
        elif self.transport is not None:
            self._state = TRANSITIONS[self._state, ClientEvent.REFUSE]
            self.transport.close()

    def _turn_away(self, fault: Fault) -> None:
        self._state = TRANSITIONS[self._state, ClientEvent.REFUSE]
        inbound = ClientRequest(
            ERROR, EMPTY_PAYLOAD, self._peer, self._own, self._limits.stall_seconds
        )
        self._answers.refuse(inbound, ClientResponse(self, ERROR), fault)
        if self.transport is not None:
            self.transport.close()

    async def drain(self) -> None:
        """Wait until the client has taken some; raises ConnectionError if it does not."""
        try:
            async with asyncio.timeout(self._limits.stall_seconds):
                await self._drain_helper()
        except TimeoutError:
            raise ConnectionAbortedError("the client took none of the response") from None

    def switch(self) -> Tunnel:
        """Stop parsing HTTP; return what reads the client's bytes from here on."""
        self._state = TRANSITIONS[self._state, ClientEvent.SWITCH]
        tunnel = Tunnel(self._pause_transport_reading, self._resume_transport_reading)
        self.set_parser(tunnel)  # type: ignore[arg-type]  # made for WebSockets, content with this
        return tunnel

    def finish(self) -> None:
        """Close the connection, after the answer that is under way or due if there is one."""
        self._state = TRANSITIONS[self._state, ClientEvent.FINISH]
        if self._down is not None:
            self._down.keep_alive = False
        elif self.transport is not None and self._state is ClientState.ENDING:
            self.transport.close()

    def cut(self) -> None:
        """Cut the connection, whatever is under way."""
        if self.transport is not None:
            reset(self.transport)

    async def start(self) -> None:
        """Answer one request after the other."""
        while self._state is not ClientState.ENDING and not self._force_close:
            if not self._messages:
                self._waiter = self._loop.create_future()
                try:
                    await self._waiter
                finally:
                    self._waiter = None
            message, content = self._messages.popleft()
            self._let_parser_go_on()
            keep = await self._answer(message, content)
            if keep and isinstance(message, RawRequestMessage) and message.chunked:
                keep = self._renew_parser()
            event = ClientEvent.ANSWERED if keep else ClientEvent.LAST_ANSWERED
            self._state = TRANSITIONS[self._state, event]
            if self._state is ClientState.IDLE:
                if self._messages:
                    self._state = TRANSITIONS[self._state, ClientEvent.REQUEST]
                else:
                    self._deadline.set(self._limits.idle_seconds)
            elif self._messages or not (
                isinstance(message, RawRequestMessage) and content.is_eof()
            ):
                await self._linger()
        if self.transport is not None:
            self.transport.close()

    async def _answer(self, message: object, content: StreamReader) -> bool:
        """Answer one request; return whether another can follow on this connection."""
        self._state = TRANSITIONS[self._state, ClientEvent.TAKE]
        self._request_in_progress = True
        self._content = content
        try:
            if isinstance(message, RawRequestMessage):
                inbound = ClientRequest(
                    message, content, self._peer, self._own, self._limits.stall_seconds
                )
                self._down = down = ClientResponse(self, message)
                if self._state is ClientState.LAST or message.upgrade:
                    # Where another protocol could begin, the parser stops: nothing can follow.
                    down.keep_alive = False
                if self._heavy and parser_limits.size(message) > self._limits.header_bytes:
                    down.keep_alive = False
                    self._answers.refuse(inbound, down, parser_limits.too_heavy(self._limits))
                else:
                    await self._answers.answer(inbound, down)
            else:
                inbound = ClientRequest(ERROR, content, self._peer, self._own, 0.0)
                self._down = down = ClientResponse(self, ERROR)
                error = getattr(message, "exc", None)
                if error is not None:
                    error.__traceback__ = None  # it leads to the parser's caller, and so to itself
                self._answers.refuse(inbound, down, parser_limits.fault(error, self._limits))
            if self.writing_paused:  # a client that asks ahead and does not read waits here
                await self.drain()
            keep = down.keep_alive and (content.at_eof() or await self._read_rest(content))
        finally:
            self._content = EMPTY_PAYLOAD
            self._down = None
            self._request_in_progress = False
            if self._handler_waiter is not None and not self._handler_waiter.done():
                self._handler_waiter.set_result(None)
        return keep

    def _renew_parser(self) -> bool:
        """Forget the trailer fields of a request; return whether that was possible.

        aiohttp's parser keeps the last of them, and takes it for the first header field of the
        next request: that of somebody else, where a proxy before us shares its connections. So a
        request in chunks ends with its parser, and its connection too if more was sent already.
        """
        if self._messages or self._end != b"\r\n\r\n":
            return False
        self._parser = HttpRequestParser(
            self,
            self._loop,
            self._read_bufsize,
            max_line_size=self._limits.target,
            max_field_size=parser_limits.longest_field(self._limits),
            max_headers=self._limits.header_fields,
            payload_exception=RequestPayloadError,
            auto_decompress=False,
            max_msg_queue_size=self._max_msg_queue_size,
        )
        return True

    async def _read_rest(self, content: StreamReader) -> bool:
        # The next request stands behind the rest of this one's body.
        try:
            async with asyncio.timeout(_LINGER):
                await asyncio.sleep(0)  # lets go who read it for the service until now
                while await content.readany():
                    pass
        except (TimeoutError, RequestPayloadError, HttpProcessingError):
            return False
        return True

    async def _linger(self) -> None:
        # A connection that is closed while the client still sends is reset, and the answer may be
        # lost with it. So the end is said first, and what still comes is dropped for a while
        # (RFC 9112, section 9.6); the client's own end cancels this.
        transport = self.transport
        if transport is not None and not transport.is_closing():
            self._close = True  # aiohttp's word for dropping what comes
            self.resume_reading()
            transport.write_eof()
            await asyncio.sleep(_LINGER)

    def _let_parser_go_on(self) -> None:
        # Requests that a client sends ahead are parsed up to a bound (aiohttp's own accounting).
        if self._parser is not None:
            self._parser.message_consumed()
        if self._buffer_paused and len(self._messages) <= self._msg_queue_resume_size:
            self._resume_reading_if_drained()
