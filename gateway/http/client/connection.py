"""Client connections: aiohttp's protocol and parser, with a faster request loop.

aiohttp's own loop creates a task, a request object and a response object for every request, which
costs as much as all other work of the gateway. `ClientConnection` feeds aiohttp's parser in pieces
that end at the end of a head or a body, limits the size of the head, and processes the requests one
after the other.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypeVar, cast

from aiohttp import StreamReader
from aiohttp.http import HttpRequestParser, RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD
from aiohttp.web import RequestHandler, RequestPayloadError, Server

from gateway.base.addresses import plain_address
from gateway.base.errors import Fault, FaultCode, FaultError, temporary_fault
from gateway.http.bounds import ByteBudget, Deadline
from gateway.http.client import request_parsing
from gateway.http.client.message import (
    ClientExchange,
    ClientTransport,
    RequestMessage,
    Tunnel,
    has_left,
    reset,
    tunnelled,
    unsent_bytes,
)
from gateway.http.client.request_parsing import (
    UNREAD,
    RefusedRequest,
    malformed,
    refused,
    too_heavy,
)
from gateway.http.connection_states import BETWEEN, CLIENT_TRANSITIONS, ClientEvent, ClientState
from gateway.http.limits import Limits
from gateway.http.transport import BatchingTransport, WriteBatch

_log = logging.getLogger(__name__)

_ALL_WAITING = 96 * 1024 * 1024


class ClientBound(StrEnum):
    """The limits on clients, named by their label in the metric."""

    CONNECTIONS = "connections"
    """The maximum number of clients is already connected: the new connection is refused."""
    HEADER_BYTES = "header_bytes"
    """The head, or the framing of a chunked body, is too large: the request is refused."""
    HEADER_SECONDS = "header_seconds"
    """The head of a request takes too long: the request is refused."""
    HTTP_2 = "http_2"
    """A client uses HTTP/2: it gets an error that requires HTTP/1.1, and its connection is closed.
    """
    SLOW = "slow"
    """A client reads its response too slowly while other requests wait for the resources that it
    occupies, or too many bytes are buffered for all clients or in all tunnels: its connection is
    reset."""
    STALL_SECONDS = "stall_seconds"
    """A client receives nothing of its response for too long: its connection is reset."""
    TUNNELS = "tunnels"
    """The maximum number of connections has switched protocols: a further switch is refused."""
    TUNNEL_SECONDS = "tunnel_seconds"
    """A connection that has switched protocols transfers no bytes for too long: it is reset."""


@dataclass(slots=True)
class ClientTotals:
    """The current counts of client connections in this process.

    Attributes:
        waiting: the budget for bytes that clients have not received yet, including buffered and
            converted bodies; it limits the sum over all connections.
    """

    reached: Callable[[ClientBound], None]
    most: int
    connections: int = 0
    tunnels: int = 0
    waiting: ByteBudget = field(default_factory=lambda: ByteBudget(_ALL_WAITING))


E = TypeVar("E", bound=ClientExchange)


class HttpHandler(Protocol[E]):
    """Processes the requests of client connections."""

    @property
    def limits(self) -> Limits:
        """The limits for new connections."""
        ...

    def begin(
        self, connection: ClientTransport, message: RequestMessage, content: StreamReader
    ) -> E:
        """Create the exchange for a request whose head has arrived."""
        ...

    async def answer(self, exchange: E) -> None:
        """Process a request and handle all errors; cancelled when the client disconnects."""
        ...

    def refuse(self, exchange: E, fault: Fault) -> None:
        """Send an error response to a request that could not be parsed."""
        ...


# The parser stops when a body has twice this number of unread bytes, or this number of unread
# chunks, since even a small chunk costs some microseconds. This limits the parsing for one client
# in one iteration of the event loop.
_PARSED_A_TURN = 16 * 1024
_CHUNKS_A_TURN = 128
# The maximum number of pieces that are parsed per connection in one iteration of the event loop.
_PIECES_A_TURN = 64
LOOK_AFTER = 1.0
"""The interval in seconds between checks for a client's disconnection while reading is paused."""
_END_OF_SECTION = b"\r\n\r\n"

_IDLE, _TUNNEL = ClientState.IDLE, ClientState.TUNNEL
_Parsed = Sequence[tuple[RawRequestMessage, StreamReader]]
_REQUEST = CLIENT_TRANSITIONS.after(ClientEvent.REQUEST)
_ASKED = _REQUEST[_IDLE]
_OTHER_PROTOCOL = malformed("it belongs to another protocol")
# The number of seconds in which bytes received after the response are read and discarded.
_LINGER = 5.0

_LAST, _ENDING = ClientState.LAST, ClientState.ENDING
_TAKE = CLIENT_TRANSITIONS.after(ClientEvent.TAKE)
_ANSWERED = CLIENT_TRANSITIONS.after(ClientEvent.ANSWERED)
_LAST_ANSWERED = CLIENT_TRANSITIONS.after(ClientEvent.LAST_ANSWERED)


class ClientConnection(RequestHandler):
    """Receives requests and processes them in order; see `gateway.http.connection_states`."""

    __slots__ = (
        *("_arriving", "_batch", "_deadline", "_dropped", "_due", "_exchange", "_handler"),
        *(
            "_idle_since",
            "_last",
            "_limits",
            "_line",
            "_method",
            "_passed",
            "_rest",
            "_resuming",
            "_seam",
            "_state",
            "_switches",
        ),
        *("_totals", "_tunnel", "_unfinished", "_unread", "_unsent", "own", "peer"),
        *("certificate", "scheme", "stall_seconds"),
    )

    def __init__(
        self,
        server: Server,
        handler: HttpHandler[Any],
        totals: ClientTotals,
        batch: WriteBatch,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        limits = handler.limits
        super().__init__(
            server,
            loop=loop,
            access_log=None,  # type: ignore[arg-type]  # for aiohttp, None is no log
            auto_decompress=False,
            keepalive_timeout=0,  # `_deadline` does this
            read_bufsize=_PARSED_A_TURN,
            max_line_size=limits.target,
            max_field_size=request_parsing.longest_field(limits),
            max_headers=limits.header_fields,
        )
        self._limits = limits
        self._totals = totals
        self._handler = handler
        self._batch = batch
        self._deadline = Deadline(loop, self._too_slow)
        self._state = ClientState.IDLE
        self._idle_since = 0.0
        self.peer = self.own = ""
        self.scheme = "http"
        self.certificate: dict[str, Any] | None = None
        self.stall_seconds = limits.stall_seconds
        self._exchange: ClientExchange | None = None
        self._tunnel: Tunnel | None = None
        self._passed = self._unsent = 0
        self._arriving: StreamReader | None = None  # the request body that is being parsed
        self._due: int | None = 0  # the bytes still missing from that body; None for a chunked body
        self._last = False  # whether the request being parsed is the last of the connection
        self._switches = False  # whether that request may switch to another protocol
        self._line: bytes | None = b""  # the first line of a head, while it is incomplete
        self._method = ""  # the real method of a request that is parsed with another method
        self._unread = UNREAD  # the placeholder for a head that cannot be parsed
        self._seam = b""  # the last parsed bytes, since the end of a head may span two pieces
        # The size of the incomplete head. In a chunked body, the bytes since the last content:
        # framing and trailer fields.
        self._unfinished = 0
        self._rest = b""  # received bytes that are not parsed yet
        self._dropped = False  # whether bytes arrived after the last request
        self._resuming = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if not self.peer:  # no PROXY protocol header has set it
            peer = transport.get_extra_info("peername")  # None if the client has disconnected
            self.peer = plain_address(peer[0]) if peer else ""
        tls = transport.get_extra_info("ssl_object")
        if tls is not None:
            self.scheme = "https"
            if tls.context.verify_mode != ssl.CERT_NONE:
                self.certificate = tls.getpeercert() or None
        host, port = transport.get_extra_info("sockname")[:2]
        host = plain_address(host)
        self.own = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        joined = BatchingTransport(cast(asyncio.Transport, transport), self._batch)
        # A limit of 0 makes all buffered bytes count. With a higher limit, each of ten thousand
        # clients could leave a small response unread without being counted.
        joined.set_write_buffer_limits(0)
        super().connection_made(cast(asyncio.Transport, joined))
        self._idle_since = self._loop.time()
        self._deadline.set(self._limits.idle_seconds)
        if self._totals.connections > min(self._limits.connections, self._totals.most):
            detail = "Too many clients are connected; try again."
            fault = temporary_fault(FaultCode.OVERLOADED, detail)
            self._turn_away(ClientBound.CONNECTIONS, fault)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._state = CLIENT_TRANSITIONS[self._state, ClientEvent.LOST]
        self._deadline.cancel()
        self._totals.waiting.release(self.give_way)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Pause writing; if the response has ended, count its unsent bytes."""
        super().pause_writing()
        if self._exchange is None and self.transport is not None:
            self._totals.waiting.hold(self.give_way, self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        self._totals.waiting.release(self.give_way)
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        """Parse received bytes; a malformed body raises an error in the task that reads it."""
        if self._state is not _IDLE or self._rest or self._close or self._force_close:
            self._bytes_came(data)
            return
        # The most frequent case, inlined for speed: a complete head, possibly with its complete
        # body.
        size, end = len(data), data.find(_END_OF_SECTION) + 4
        if end < 4 or size > self._limits.header_bytes or not request_parsing.HTTP.match(data):
            self._bytes_came(data)
            return
        assert self._parser is not None
        try:
            came, self._upgraded, _ = self._parser.feed_data(data if size == end else data[:end])
        except HttpProcessingError:
            self._parser, came, end = self._new_parser(), [], 0  # parsed again and refused below
        if not came:  # empty lines before a head, or the parser has stopped
            if data.startswith(request_parsing.HTTP_2_PREFACE):
                self._refuse_http_2()
            else:
                self._bytes_came(data[end:])
            return
        message, content = came[0]
        due = 0
        if content is not EMPTY_PAYLOAD and not content.is_eof():
            due = -1 if message.chunked else int(message.headers["Content-Length"][-20:])
        if size - end != due or message.should_close or message.upgrade or due > _PARSED_A_TURN:
            self._head_came(message, content, data, end)
            self._parse(data[end:])
            self._requests_came()
            return
        if due:
            self._parser.feed_data(data[end:])
        self._messages.append((message, content))
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        self._state = _ASKED  # the deadline is not moved; see `_too_slow`

    def _bytes_came(self, data: bytes) -> None:
        if self._state is _TUNNEL or self._upgraded:
            super().data_received(data)
            return
        if self._force_close or self._close or self._state > _TUNNEL:
            self._dropped = True
            return
        waiting = len(self._messages)
        if not data and self._arriving is not None and not self._reading_paused:
            self._parse_body(b"", 0)  # bytes that the parser has buffered since it was paused
        if self._rest:
            data, self._rest = self._rest + data, b""
        self._parse(data)
        if len(self._messages) > waiting:
            self._requests_came()
        elif self._unfinished and self._state in BETWEEN:
            self._await_head()

    def _parse(self, data: bytes) -> None:
        begin, pieces = 0, 0
        while begin < len(data):
            if self._close:
                self._dropped = True
            elif self._upgraded:
                self._message_tail = data[begin:]
            elif self._reading_paused or len(self._messages) >= self._max_msg_queue_size:
                self._rest = data[begin:]
            elif pieces == _PIECES_A_TURN:
                self._rest = data[begin:]
                self._reading_paused = True
                self._pause_transport_reading()
                self.resume_reading()  # in the next iteration of the event loop
            else:
                parse = self._parse_head if self._arriving is None else self._parse_body
                begin = parse(data, begin)
                pieces += 1
                continue
            break

    def _parse_head(self, data: bytes, begin: int) -> int:
        end = self._end_of_section(data, begin)
        piece, line = data[begin:end], self._line
        if line is not None:
            line += piece
            self._unread = request_parsing.unread(line)
        assert self._parser is not None
        came: _Parsed
        try:
            came, self._upgraded, _ = self._parser.feed_data(piece)
        except HttpProcessingError as error:
            came = self._parse_other_words(line or b"", error)
        if came:
            ((message, content),) = came
            self._head_came(message, content, line, self._unfinished + len(piece))
        elif not self._close:
            self._part_came(piece, line)
        return end

    def _head_came(
        self, message: RawRequestMessage, content: StreamReader, line: bytes | None, size: int
    ) -> None:
        self._line, self._seam, self._unfinished = b"", b"", 0
        if line is not None and not request_parsing.HTTP.match(line):
            self._refuse_next(_OTHER_PROTOCOL)
            return
        if self._method:
            message, self._method = message._replace(method=self._method), ""
        limit = self._limits.header_bytes
        if size > limit and request_parsing.size(message) > limit:
            self._refuse_next(too_heavy(self._limits), message)
            return
        self._messages.append((message, content))
        self._last = message.should_close or message.upgrade
        self._switches = message.upgrade and tunnelled(message) is not None
        if content.is_eof():
            self._request_over()
            return
        self._arriving = content
        self._due = None if message.chunked else int(message.headers["Content-Length"][-20:])
        # aiohttp derives both from the size in bytes, and has no public way to set them.
        content._high_water_chunks = _CHUNKS_A_TURN  # noqa: SLF001
        content._low_water_chunks = _CHUNKS_A_TURN // 2  # noqa: SLF001

    def _part_came(self, piece: bytes, line: bytes | None) -> None:
        """Record a part of a head; `line` is its first line, or None if already complete."""
        if not self._unfinished and not piece.strip(b"\r\n"):
            return  # empty lines before a head are ignored (RFC 9112, section 2.2)
        self._seam = (self._seam + piece)[-3:]
        self._unfinished += len(piece)
        if line is not None and b"\n" in line.lstrip(b"\r\n"):
            if line.startswith(request_parsing.HTTP_2_PREFACE) and not self._messages:
                self._refuse_http_2()
                return
            if not request_parsing.HTTP.match(line):
                self._refuse_next(_OTHER_PROTOCOL)
                return
            line = None
        self._line = line
        if self._unfinished > request_parsing.largest_head(self._limits):
            self._refuse_next(too_heavy(self._limits))

    def _parse_other_words(self, head: bytes, error: HttpProcessingError) -> _Parsed:
        """Parse a refused head again with a method and version that the parser supports."""
        fault = request_parsing.fault(error, self._limits, head)
        known, self._method = request_parsing.with_supported_words(head)
        if known != head:
            self._parser = parser = self._new_parser()
            try:
                came, self._upgraded, _ = parser.feed_data(known)
            except HttpProcessingError as again:
                fault = request_parsing.fault(again, self._limits)
            else:
                return came
        self._refuse_next(fault)
        return ()

    def _parse_body(self, data: bytes, begin: int) -> int:
        content, due = self._arriving, self._due
        assert content is not None
        assert self._parser is not None
        end = self._end_of_section(data, begin) if due is None else begin + due
        piece, before = data[begin:end], content.total_bytes
        try:
            _, self._upgraded, _ = self._parser.feed_data(piece)
            if due is None and not (content.is_eof() or self._reading_paused):
                # After a pause of reading has ended, aiohttp's parser may still stop once and keep
                # the remaining bytes.
                _, self._upgraded, _ = self._parser.feed_data(b"")
        except HttpProcessingError as error:
            self._refuse_body(content, request_parsing.fault(error, self._limits))
            return begin + len(piece)
        if content.is_eof():
            self._request_over()
        elif due is not None:
            self._due = due - len(piece)
        else:
            self._seam = b"" if piece.endswith(_END_OF_SECTION) else (self._seam + piece)[-3:]
            self._unfinished = 0 if content.total_bytes > before else self._unfinished + len(piece)
            if self._unfinished > request_parsing.largest_head(self._limits):
                self._totals.reached(ClientBound.HEADER_BYTES)
                self._refuse_body(content, malformed("Too much framing around the content"))
        return begin + len(piece)

    def _end_of_section(self, data: bytes, begin: int) -> int:
        """Return the end of the first empty line, which ends a head and may end a chunk."""
        seam = self._seam  # the last bytes before `data`
        end = (seam + data if seam else data).find(_END_OF_SECTION, begin) - len(seam)
        return len(data) if end < -len(seam) else end + len(_END_OF_SECTION)

    def _request_over(self) -> None:
        if self._due is None:
            # aiohttp's parser keeps the last trailer field and adds it to the headers of the next
            # request. That request may belong to another user if a proxy in front shares
            # connections.
            self._parser = self._new_parser()
        self._arriving, self._due, self._seam, self._unfinished = None, 0, b"", 0
        self._upgraded = self._switches  # aiohttp's parser reports this only for a WebSocket
        if self._last and not self._upgraded:
            self._close = True  # further bytes must be ignored (RFC 9112, section 9.6)

    def _refuse_next(self, fault: Fault, message: RequestMessage | None = None) -> None:
        self._close = True
        self._messages.append((refused(fault, message or self._unread), EMPTY_PAYLOAD))

    def _refuse_body(self, content: StreamReader, fault: Fault) -> None:
        self._close, self._arriving = True, None
        # The reader would miss an exception that is set in the same iteration in which the end of a
        # chunk wakes it.
        self._loop.call_soon(content.set_exception, RequestPayloadError())
        if self._messages:  # this request is the last one in the queue
            self._messages[-1] = refused(fault, self._messages[-1][0]), EMPTY_PAYLOAD

    def _requests_came(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        if self._state in BETWEEN:
            self._state = _REQUEST[self._state]
        if len(self._messages) > 1 and not self._buffer_paused:
            self._pause_reading_for_buffer()  # further requests stay in the kernel's buffer

    def _await_head(self) -> None:
        if self._state is ClientState.IDLE:
            self._deadline.set(self._limits.header_seconds)
        self._state = CLIENT_TRANSITIONS[self._state, ClientEvent.BYTES]

    def _pause_transport_reading(self) -> None:
        super()._pause_transport_reading()
        if ClientState.HEAD < self._state < _TUNNEL:  # a request is being processed
            self._deadline.set(LOOK_AFTER)

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Resume parsing in the next iteration of the event loop, after other connections."""
        if not resume_parser:
            super().resume_reading(resume_parser=False)
        elif self._reading_paused and not self._resuming:
            # The reader of a body calls this method for each chunk, even if reading is not paused.
            self._resuming = True
            self._loop.call_soon(self._resume)

    def _resume(self) -> None:
        self._resuming = False
        super().resume_reading()

    def _new_parser(self) -> HttpRequestParser:
        return request_parsing.new_parser(self, self._loop, self._limits, self._read_bufsize)

    def _too_slow(self) -> None:
        """Handle a passed deadline.

        The deadline is not moved for every request. Therefore a deadline from an earlier state can
        pass while a request is processed, or before the connection has been idle for long enough.
        """
        if ClientState.HEAD < self._state < ClientState.TUNNEL:
            self._deadline.set(self._limits.idle_seconds)
            self._look_for_client()
        elif self._state is ClientState.HEAD:
            seconds = self._limits.header_seconds
            detail = f"The header fields did not arrive within {seconds:g} seconds."
            self._turn_away(ClientBound.HEADER_SECONDS, Fault(FaultCode.REQUEST_TIMEOUT, detail))
        elif self._state is ClientState.IDLE:
            left = self._idle_since + self._limits.idle_seconds - self._loop.time()
            if left > 0:
                self._deadline.set(left)
                return
            self._state = CLIENT_TRANSITIONS[self._state, ClientEvent.REFUSE]
            self._close_transport()
        elif self._state is ClientState.ENDING:
            if self._reads_enough():
                self._deadline.set(self._limits.stall_seconds)
            else:
                self._totals.reached(ClientBound.STALL_SECONDS)
                self.cut()
        elif self._tunnel is not None and self._exchange is not None:
            before, self._passed = self._passed, self._exchange.bytes_sent + self._tunnel.received
            if self._passed > before:
                self._deadline.set(self._limits.tunnel_seconds)
            else:
                self._totals.reached(ClientBound.TUNNEL_SECONDS)
                self.cut()

    def _look_for_client(self) -> None:
        # While reading is paused, the event loop does not notice that the client disconnects.
        if self.transport is not None and (self._buffer_paused or self._reading_paused):
            self._deadline.set(LOOK_AFTER)
            if has_left(self.transport, reset=not self._messages):
                self.cut()

    def _turn_away(self, bound: ClientBound, fault: Fault) -> None:
        self._totals.reached(bound)
        self._state = CLIENT_TRANSITIONS[self._state, ClientEvent.REFUSE]
        try:
            self._handler.refuse(self._handler.begin(self, self._unread, EMPTY_PAYLOAD), fault)
        finally:  # no other deadline would close the connection
            self._close_transport()

    def _refuse_http_2(self) -> None:
        self._totals.reached(ClientBound.HTTP_2)
        self._close = True
        self._state = CLIENT_TRANSITIONS[self._state, ClientEvent.REFUSE]
        if self.transport is not None:
            self.transport.write(request_parsing.HTTP_1_1_REQUIRED)
            self.transport.write_eof()
        # Closing the connection while the client still sends would reset it, and the client would
        # lose these frames.
        self._loop.call_later(_LINGER, self._close_transport)

    def _close_transport(self) -> None:
        # Buffered bytes are sent before the close, with the same stall timeout as for any response.
        if self.transport is not None:
            self._unsent = unsent_bytes(self.transport)
            self._deadline.set(self._limits.stall_seconds)
            self.transport.close()

    def _reads_enough(self) -> bool:
        """Return whether the client received enough bytes in the last `stall_seconds`."""
        assert self.transport is not None
        before, self._unsent = self._unsent, unsent_bytes(self.transport)
        return before - self._unsent >= max(1, self._limits.min_rate * self._limits.stall_seconds)

    async def drain(self) -> None:
        """Wait until the client has received most of the bytes; raises ConnectionError."""
        waiting = self._totals.waiting
        try:
            while True:
                if self.transport is not None:
                    self._unsent = unsent_bytes(self.transport)
                    waiting.hold(self.give_way, self.transport.get_write_buffer_size())
                try:
                    async with asyncio.timeout(self._limits.stall_seconds):
                        await self._drain_helper()
                    return
                except TimeoutError:
                    self._drain_waiter = None  # the timeout cancelled this future
                    if self.transport is not None and self._reads_enough():
                        continue
                    self._totals.reached(ClientBound.STALL_SECONDS)
                    why = "the client read too little of the response"
                    raise ConnectionAbortedError(why) from None
        finally:
            waiting.release(self.give_way)

    def switch(self) -> Tunnel:
        """Stop parsing HTTP; raises FaultError if too many connections have switched."""
        if self._totals.tunnels >= self._limits.tunnels:
            self._totals.reached(ClientBound.TUNNELS)
            detail = "Too many connections have switched protocols; try again."
            raise FaultError(temporary_fault(FaultCode.OVERLOADED, detail))
        self._state = CLIENT_TRANSITIONS[self._state, ClientEvent.SWITCH]
        self._totals.tunnels += 1
        self._deadline.set(self._limits.tunnel_seconds)
        tunnel = Tunnel(self._pause_transport_reading, self._resume_transport_reading)
        self._tunnel = tunnel
        self.set_parser(tunnel)  # type: ignore[arg-type]  # typed for WebSockets, but calls only these
        return tunnel

    def finish(self) -> None:
        """Close the connection after the current response and any response that is still due."""
        self._state = CLIENT_TRANSITIONS[self._state, ClientEvent.FINISH]
        if self._exchange is not None:
            self._exchange.keep_alive = False
        elif self.transport is not None and self._state is ClientState.ENDING:
            self.transport.close()

    def cut(self) -> None:
        """Reset the connection immediately, even during a response."""
        if self.transport is not None:
            reset(self.transport)

    def give_way(self) -> None:
        """Reset this slow client's connection, since other requests need its resources."""
        self._totals.reached(ClientBound.SLOW)
        self.cut()

    async def start(self) -> None:
        try:
            while self._state is not _ENDING and not self._force_close:
                if not self._messages:
                    self._waiter = self._loop.create_future()
                    try:
                        await self._waiter
                    finally:
                        self._waiter = None
                message, content = self._messages.popleft()
                # aiohttp's parser counts the pipelined requests and stops at a limit.
                if self._parser is not None:
                    self._parser.message_consumed()
                if self._buffer_paused and not self._messages:
                    self._resume_reading_if_drained()
                keep = await self._answer(message, content)
                finishing = self._state is _LAST
                answered = _ANSWERED if keep else _LAST_ANSWERED
                self._state = answered.get(self._state) or answered[self._state]
                if self._state is not _IDLE:
                    await self._linger(message, content, finishing=finishing)
                elif self._messages:
                    self._state = _REQUEST[_IDLE]
                    # One response per connection in an iteration of the event loop, so that
                    # pipelining clients get no larger share (as with Envoy's
                    # max_requests_per_io_cycle).
                    await asyncio.sleep(0)
                elif self._unfinished:
                    self._await_head()
                else:  # the deadline is moved when it passes; see `_too_slow`
                    self._idle_since = self._loop.time()
            self._close_transport()
        except Exception:  # without its task, the connection would stay open forever
            _log.exception("a client's connection failed")
            self.cut()

    async def _answer(self, message: object, content: StreamReader) -> bool:
        self._state = _TAKE.get(self._state) or _TAKE[self._state]
        self._request_in_progress = True
        try:
            if isinstance(message, RawRequestMessage):
                self._exchange = down = self._handler.begin(self, message, content)
                if self._state is _LAST or message.upgrade:
                    # After an Upgrade request the parser stops, so no request can follow.
                    down.keep_alive = False
                await self._handler.answer(down)
            else:
                down = self._refuse(message, content)
            if self._paused:  # a pipelining client that does not read waits here
                await self.drain()
            keep = down.keep_alive and (
                content is EMPTY_PAYLOAD or content.at_eof() or await self._read_rest(content)
            )
        except ConnectionError:
            self.cut()
            keep = False
        finally:
            self._exchange = None
            if self._tunnel is not None:
                self._tunnel = None
                self._totals.tunnels -= 1
            self._request_in_progress = False
            if self._handler_waiter is not None and not self._handler_waiter.done():
                self._handler_waiter.set_result(None)
        return keep

    def _refuse(self, message: object, content: StreamReader) -> ClientExchange:
        assert isinstance(message, RefusedRequest)  # the queue contains no other types
        if message.fault == too_heavy(self._limits):
            self._totals.reached(ClientBound.HEADER_BYTES)
        down: ClientExchange = self._handler.begin(self, message.message, content)
        self._exchange = down
        down.keep_alive = False
        self._handler.refuse(down, message.fault)
        return down

    async def _read_rest(self, content: StreamReader) -> bool:
        # The next request starts after the unread rest of this request's body.
        try:
            async with asyncio.timeout(_LINGER):
                await asyncio.sleep(0)  # lets the previous reader of the body stop
                while await content.readany():
                    pass
        except (TimeoutError, RequestPayloadError, HttpProcessingError):
            return False
        return True

    async def _linger(self, message: object, content: StreamReader, *, finishing: bool) -> None:
        # If the gateway closed the connection while the client still sends, the connection would be
        # reset and the response might be lost. Therefore only the sending side is closed at first,
        # and received bytes are discarded for some seconds (RFC 9112, section 9.6). The client's
        # close cancels this task. A shutdown does not wait for a client that sends nothing.
        sends = self._dropped or self._rest or self._messages or not content.is_eof()
        last = isinstance(message, RawRequestMessage) and message.should_close
        if not sends and (last or finishing):
            return
        transport = self.transport
        self._deadline.clear()
        if transport is not None and not transport.is_closing():
            self._close = True
            self.resume_reading(resume_parser=False)
            transport.write_eof()
            await asyncio.sleep(_LINGER)
