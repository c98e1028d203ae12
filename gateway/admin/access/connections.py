"""Connections to the admin port: TLS, and limits on memory, number and duration."""

import asyncio
import logging
import socket
import ssl
from collections import Counter, deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Generic, TypeVar

from aiohttp import HttpVersion11, hdrs, web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestPayloadError

from gateway.admin.access.rights import problem
from gateway.base.addresses import plain_address
from gateway.base.descriptors import max_admin_connections
from gateway.observe import log

# The time limit for the first request head, for the TLS handshake and for each body.
REQUEST_SECONDS = 10.0
# A client that does not read its response is disconnected after this time.
STALL_SECONDS = 60.0
# The maximum idle seconds of a connection. aiohttp's default is an hour.
IDLE_SECONDS = 30.0
# The size of the buffer for unread bytes of a body. aiohttp's default is 512 KiB.
_UNREAD_BODY = 16 * 1024
# The number of bytes that all connections together parse in one iteration of the event loop. In the
# worst case (chunks of one byte), aiohttp takes 2 ms for this number of bytes, and 0.2 s for a full
# socket buffer.
_BYTES_A_TURN = 2048
# The size of a connection's receive buffer, in bytes; the kernel doubles it. Without this setting,
# the kernel lets the buffer grow to megabytes.
_RECEIVE_BUFFER = 16 * 1024
# Seconds to wait after a failed accept, for example if no file descriptor is free.
_ACCEPT_PAUSE = 1.0

_C = TypeVar("_C")


class Places(Generic[_C]):
    """A bounded set of connections. If the set is full, a new connection replaces an older one.

    The replaced connection is the oldest one of the address with the most connections. Therefore a
    client that fills the port loses its own connections (as with `drain_connections` in nginx).

    Args:
        most: the maximum number. The default is the admin port's share of the file descriptors.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = max_admin_connections() if most is None else most
        self._addresses: dict[_C, str] = {}  # oldest connections first

    def take(self, connection: _C, address: str) -> _C | None:
        """Add a connection; return the connection that it replaces, or None."""
        lost = None
        if len(self._addresses) >= self._most:
            ((most, _),) = Counter(self._addresses.values()).most_common(1)
            lost = next(one for one, of in self._addresses.items() if of == most)
            del self._addresses[lost]
        self._addresses[connection] = address
        return lost

    def leave(self, connection: _C) -> None:
        self._addresses.pop(connection, None)

    def __iter__(self) -> Iterator[_C]:
        return iter(tuple(self._addresses))


class AdminListener:
    """Accepts connections and passes them to an aiohttp server.

    asyncio's `create_server` can neither limit TLS handshakes nor replace a certificate.

    Args:
        count: called when a connection is closed at a limit, with the name of the limit.
    """

    def __init__(
        self,
        listener: socket.socket,
        server: web.Server,
        tls: Callable[[], ssl.SSLContext | None] = lambda: None,
        count: Callable[[str], None] = lambda _: None,
    ) -> None:
        listener.setblocking(False)
        # Accepted sockets inherit the size of the buffer.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        self._listener = listener
        self._server = server
        self._tls = tls
        self.count = count
        self._handshakes = Places[asyncio.Task[None]]()
        self._open = Places[AdminConnection]()
        self._unparsed: deque[Callable[[], None]] = deque()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, (address, *_) = await loop.sock_accept(self._listener)
            except OSError:  # no free descriptor, or the client has disconnected
                await asyncio.sleep(_ACCEPT_PAUSE)
                continue
            handshake = loop.create_task(self._begin(connection))
            lost = self._handshakes.take(handshake, address)
            handshake.add_done_callback(partial(self._ended, connection))
            if lost is not None:
                self.count("handshakes")
                lost.cancel()

    def close(self) -> None:
        self._listener.close()
        for handshake in self._handshakes:
            handshake.cancel()

    async def _begin(self, connection: socket.socket) -> None:
        tls = self._tls()
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: AdminConnection(self, self._server),
                connection,
                ssl=tls,
                ssl_handshake_timeout=None if tls is None else REQUEST_SECONDS,
            )
        except OSError:  # the TLS handshake failed or timed out (ssl.SSLError, ConnectionError)
            connection.close()

    def _ended(self, connection: socket.socket, handshake: "asyncio.Task[None]") -> None:
        self._handshakes.leave(handshake)
        if handshake.cancelled():  # possibly before the task started
            connection.close()

    def admit(self, connection: "AdminConnection") -> None:
        address, *_ = connection.peername or ("",)
        lost = self._open.take(connection, address)
        if lost is not None:
            lost.abort("connections")

    def leave(self, connection: "AdminConnection") -> None:
        self._open.leave(connection)

    def parse_in_turn(self, parse: Callable[[], None]) -> None:
        """Schedule a call of `parse`. One such call runs in each iteration of the event loop."""
        if not self._unparsed:
            asyncio.get_running_loop().call_soon(self._parse)
        self._unparsed.append(parse)

    def _parse(self) -> None:
        parse = self._unparsed.popleft()
        if self._unparsed:
            asyncio.get_running_loop().call_soon(self._parse)
        parse()


class AdminConnection(web.RequestHandler, asyncio.BufferedProtocol):
    """A connection of the aiohttp server. Connections take turns in parsing their input."""

    def __init__(self, listener: AdminListener, server: web.Server) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]  # no access log
            logger=AdminLogger(),  # type: ignore[arg-type]  # an adapter has a logger's methods
            keepalive_timeout=IDLE_SECONDS,
            lingering_time=1.0,
            read_bufsize=_UNREAD_BODY,
            auto_decompress=False,  # a body with a content coding is refused
        )
        self.has_request = False
        self._listener = listener
        self._buffer = bytearray(_BYTES_A_TURN)
        self._stalled: asyncio.TimerHandle | None = None

    @property
    def peername(self) -> Any:
        found = super().peername
        return (plain_address(found[0]), *found[1:]) if found else found

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._listener.admit(self)
        asyncio.get_running_loop().call_later(REQUEST_SECONDS, self._abort_silent)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._pause_transport_reading()
        self._listener.parse_in_turn(partial(self._parse, bytes(self._buffer[:nbytes])))

    def _parse(self, piece: bytes) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.data_received(piece)
            if not (self._reading_paused or self._buffer_paused):  # paused by aiohttp
                self._resume_transport_reading()

    def pause_writing(self) -> None:
        super().pause_writing()
        loop = asyncio.get_running_loop()
        self._stalled = loop.call_later(STALL_SECONDS, self.abort, "stall_seconds")

    def resume_writing(self) -> None:
        self._end_stall()
        super().resume_writing()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._end_stall()
        self._listener.leave(self)
        super().connection_lost(exc)

    def abort(self, bound: str) -> None:
        self._listener.count(bound)
        if self.transport is not None:
            self.transport.abort()

    def _abort_silent(self) -> None:
        if not self.has_request and self.transport is not None:
            self.transport.abort()

    def _end_stall(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None


def with_expectations(handle: Any) -> Any:
    """Wrap an aiohttp request handler so that it refuses expectations other than 100-continue.

    aiohttp's own refusal quotes the expectation, and fails if it is not valid UTF-8.
    """

    async def handle_expected(request: web.BaseRequest) -> web.StreamResponse:
        if isinstance(request.protocol, AdminConnection):
            request.protocol.has_request = True
        expected = request.headers.getall(hdrs.EXPECT, [])
        if request.version == HttpVersion11 and {each.lower() for each in expected} - {
            "100-continue"
        }:
            detail = "The only supported value of Expect is 100-continue."
            return problem(request, 417, "expectation_failed", detail)
        response: web.StreamResponse = await handle(request)
        return response

    return handle_expected


class AdminLogger(logging.LoggerAdapter[logging.Logger]):
    """The logger of the aiohttp server. It logs a traceback only for errors of the gateway.

    A malformed request is logged in one line, without its bytes, which may contain a token.
    """

    def __init__(self) -> None:
        super().__init__(logging.getLogger("aiohttp.server"))

    def exception(self, msg: object, *args: object, exc_info: Any = True, **more: Any) -> None:
        """Log an error, unless it only means that the client closed its connection."""
        if isinstance(exc_info, (HttpProcessingError, RequestPayloadError)):
            fields: dict[str, object] = {"peer": args[0]} if args else {}
            log.event("admin_request_bad", "info", **fields, reason=type(exc_info).__name__)
        elif not isinstance(exc_info, ConnectionError):
            super().exception(msg, *args, exc_info=exc_info, **more)
