"""A client's connection: aiohttp's protocol and parser, with a faster loop over the requests.

aiohttp's own loop creates a task, a request object and a response object for every request, which
costs as much as all the rest of the gateway's work. `ClientConnection` reuses aiohttp's parsing,
flow control, keep-alive and shutdown, and replaces the loop.
"""

import asyncio
import logging
from typing import Any, cast

from aiohttp import StreamReader
from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD
from aiohttp.web import RequestPayloadError, Server

from gateway.base.addresses import plain_address
from gateway.base.errors import Fault, FaultCode, FaultError
from gateway.http.client.client_response import ClientResponse, reset
from gateway.http.client.client_socket import has_left, unsent_bytes
from gateway.http.client.client_state import TRANSITIONS, ClientEvent, ClientState
from gateway.http.client.client_totals import ClientBound, ClientTotals
from gateway.http.client.http_handler import HttpHandler
from gateway.http.client.parser_limits import RefusedRequest, too_heavy
from gateway.http.client.request_receiver import LOOK_AFTER, RequestReceiver
from gateway.http.client.tunnel import Tunnel
from gateway.http.turns.turn_writes import TurnTransport, TurnWrites

_log = logging.getLogger(__name__)

# For how many seconds bytes that a client still sends after its answer are read and dropped.
_LINGER = 5.0
_AGAIN = ((b"Retry-After", b"1"),)

_IDLE, _LAST, _ENDING = ClientState.IDLE, ClientState.LAST, ClientState.ENDING
_REQUEST = TRANSITIONS.after(ClientEvent.REQUEST)
_TAKE = TRANSITIONS.after(ClientEvent.TAKE)
_ANSWERED = TRANSITIONS.after(ClientEvent.ANSWERED)
_LAST_ANSWERED = TRANSITIONS.after(ClientEvent.LAST_ANSWERED)


class ClientConnection(RequestReceiver):
    """A client's connection: answers the requests that `RequestReceiver` receives.

    Its states are defined in `client_state`.

    Args:
        server: the server that accepted the connection.
        answers: the handler of its requests.
        totals: the counts of connections and tunnels in this process.
        writes: what sends the answers of a turn of the event loop.
        loop: the event loop.
    """

    __slots__ = (
        "_answers",
        "_down",
        "_passed",
        "_tunnel",
        "_unsent",
        "_writes",
        "own",
        "peer",
        "stall_seconds",
    )

    def __init__(
        self,
        server: Server,
        answers: HttpHandler[Any],
        totals: ClientTotals,
        writes: TurnWrites,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(server, answers.limits, totals, loop, self._too_slow)
        self._answers = answers
        self._writes = writes
        self._down: ClientResponse | None = None
        self._tunnel: Tunnel | None = None
        self._passed = self._unsent = 0
        self.peer = self.own = ""
        self.stall_seconds = self._limits.stall_seconds

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the two addresses; refuse the connection if there are too many."""
        peer = transport.get_extra_info("peername")  # None if the client has disconnected
        self.peer = plain_address(peer[0]) if peer else ""
        host, port = transport.get_extra_info("sockname")[:2]
        host = plain_address(host)
        self.own = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        joined = TurnTransport(cast(asyncio.Transport, transport), self._writes)
        # All that waits is counted: below a mark that is higher, ten thousand clients may each
        # leave a small answer.
        joined.set_write_buffer_limits(0)
        super().connection_made(cast(asyncio.Transport, joined))
        self._deadline.set(self._limits.idle_seconds)
        if self._totals.connections > min(self._limits.connections, self._totals.most):
            detail = "Too many clients are connected; try again."
            fault = Fault(FaultCode.OVERLOADED, detail, fields=_AGAIN)
            self._turn_away(ClientBound.CONNECTIONS, fault)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Close the state and cancel the deadline."""
        self._state = TRANSITIONS[self._state, ClientEvent.LOST]
        self._deadline.cancel()
        self._totals.waiting.release(self.give_way)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Write no more; count what waits of an answer that has ended, which nobody drains."""
        super().pause_writing()
        if self._down is None and self.transport is not None:
            self._totals.waiting.hold(self.give_way, self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Write again."""
        self._totals.waiting.release(self.give_way)
        super().resume_writing()

    # Timeouts, and the end of the connection.

    def _too_slow(self) -> None:
        if ClientState.HEAD < self._state < ClientState.TUNNEL:
            self._look_for_client()
        elif self._state is ClientState.HEAD:
            seconds = self._limits.header_seconds
            detail = f"The header fields were not there within {seconds:g} seconds."
            self._turn_away(ClientBound.HEADER_SECONDS, Fault(FaultCode.REQUEST_TIMEOUT, detail))
        elif self._state is ClientState.IDLE:
            self._state = TRANSITIONS[self._state, ClientEvent.REFUSE]
            self._close_transport()
        elif self._state is ClientState.ENDING:
            if self._takes():
                self._deadline.set(self._limits.stall_seconds)
            else:
                self._totals.reached(ClientBound.STALL_SECONDS)
                self.cut()
        elif self._tunnel is not None and self._down is not None:
            before, self._passed = self._passed, self._down.bytes_sent + self._tunnel.received
            if self._passed > before:
                self._deadline.set(self._limits.tunnel_seconds)
            else:
                self._totals.reached(ClientBound.TUNNEL_SECONDS)
                self.cut()

    def _look_for_client(self) -> None:
        # While it is not read, nothing else tells; a body may end behind what is not read yet.
        if self.transport is not None and (self._buffer_paused or self._reading_paused):
            self._deadline.set(LOOK_AFTER)
            if has_left(self.transport, reset=not self._messages):
                self.cut()

    def _turn_away(self, bound: ClientBound, fault: Fault) -> None:
        self._totals.reached(bound)
        self._state = TRANSITIONS[self._state, ClientEvent.REFUSE]
        try:
            self._answers.refuse(self._answers.begin(self, self._unread, EMPTY_PAYLOAD), fault)
        finally:  # no deadline is left that would close the connection
            self._close_transport()

    def _close_transport(self) -> None:
        # Written bytes are sent before the close, under the same stall timeout as any response.
        if self.transport is not None:
            self._unsent = unsent_bytes(self.transport)
            self._deadline.set(self._limits.stall_seconds)
            self.transport.close()

    def _takes(self) -> bool:
        """Return whether the client received enough in the last `stall_seconds`."""
        assert self.transport is not None
        before, self._unsent = self._unsent, unsent_bytes(self.transport)
        return before - self._unsent >= max(1, self._limits.min_rate * self._limits.stall_seconds)

    async def drain(self) -> None:
        """Wait until the client has received most of the written bytes.

        Raises:
            ConnectionError: the client received too little for `stall_seconds`, or disconnected.
        """
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
                    self._drain_waiter = None  # the time-out cancelled this future
                    if self.transport is not None and self._takes():
                        continue
                    self._totals.reached(ClientBound.STALL_SECONDS)
                    why = "the client took too little of the response"
                    raise ConnectionAbortedError(why) from None
        finally:
            waiting.release(self.give_way)

    def switch(self) -> Tunnel:
        """Stop parsing HTTP; return a tunnel that reads the client's bytes from now on.

        Raises:
            FaultError: too many connections have switched protocols already.
        """
        if self._totals.tunnels >= self._limits.tunnels:
            self._totals.reached(ClientBound.TUNNELS)
            detail = "Too many connections have switched protocols; try again."
            raise FaultError(Fault(FaultCode.OVERLOADED, detail, fields=_AGAIN))
        self._state = TRANSITIONS[self._state, ClientEvent.SWITCH]
        self._totals.tunnels += 1
        self._deadline.set(self._limits.tunnel_seconds)
        tunnel = Tunnel(self._pause_transport_reading, self._resume_transport_reading)
        self._tunnel = tunnel
        self.set_parser(tunnel)  # type: ignore[arg-type]  # typed for WebSockets, calls only these
        return tunnel

    def finish(self) -> None:
        """Close the connection, after any answer that is under way or due."""
        self._state = TRANSITIONS[self._state, ClientEvent.FINISH]
        if self._down is not None:
            self._down.keep_alive = False
        elif self.transport is not None and self._state is ClientState.ENDING:
            self.transport.close()

    def cut(self) -> None:
        """Reset the connection at once, even during an answer."""
        if self.transport is not None:
            reset(self.transport)

    def give_way(self) -> None:
        """Cut the connection, since others wait for what this slow client holds."""
        self._totals.reached(ClientBound.SLOW)
        self.cut()

    # The task of the connection.

    async def start(self) -> None:
        """Answer the requests one after the other; this is the connection's task."""
        try:
            while self._state is not _ENDING and not self._force_close:
                if not self._messages:
                    self._waiter = self._loop.create_future()
                    try:
                        await self._waiter
                    finally:
                        self._waiter = None
                message, content = self._messages.popleft()
                # aiohttp's parser counts the pipelined requests, and stops at a limit.
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
                    # One answer per connection in a turn of the event loop, so that pipelining
                    # clients get no larger share (Envoy's max_requests_per_io_cycle).
                    await asyncio.sleep(0)
                elif self._unfinished:
                    self._await_head()
                else:
                    self._deadline.set(self._limits.idle_seconds)
            self._close_transport()
        except Exception:  # without its task, the connection would stay open forever
            _log.exception("a client's connection failed")
            self.cut()

    async def _answer(self, message: object, content: StreamReader) -> bool:
        """Answer one request; return whether another can follow on this connection."""
        self._state = _TAKE.get(self._state) or _TAKE[self._state]
        self._request_in_progress = True
        try:
            if isinstance(message, RawRequestMessage):
                self._down = down = self._answers.begin(self, message, content)
                if self._state is _LAST or message.upgrade:
                    # After an Upgrade request the parser stops, so no request can follow.
                    down.keep_alive = False
                await self._answers.answer(down)
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
            self._down = None
            if self._tunnel is not None:
                self._tunnel = None
                self._totals.tunnels -= 1
            self._request_in_progress = False
            if self._handler_waiter is not None and not self._handler_waiter.done():
                self._handler_waiter.set_result(None)
        return keep

    def _refuse(self, message: object, content: StreamReader) -> ClientResponse:
        assert isinstance(message, RefusedRequest)  # no other stands in the queue
        if message.fault == too_heavy(self._limits):
            self._totals.reached(ClientBound.HEADER_BYTES)
        down: ClientResponse = self._answers.begin(self, message.message, content)
        self._down = down
        down.keep_alive = False
        self._answers.refuse(down, message.fault)
        return down

    async def _read_rest(self, content: StreamReader) -> bool:
        # The next request comes after the rest of this request's body.
        try:
            async with asyncio.timeout(_LINGER):
                await asyncio.sleep(0)  # lets the previous reader of the body stop
                while await content.readany():
                    pass
        except (TimeoutError, RequestPayloadError, HttpProcessingError):
            return False
        return True

    async def _linger(self, message: object, content: StreamReader, *, finishing: bool) -> None:
        # A close while the client still sends resets the connection, and the answer may be lost. So
        # only the sending side is closed first, and what comes is dropped for a while (RFC 9112,
        # section 9.6). A close by the client cancels the task. A shutdown waits for no quiet one.
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
