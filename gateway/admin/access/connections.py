"""Connections to the admin port: TLS, and bounds on what they hold and on the time they take."""

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

# The time limit of the first request head, of a TLS handshake, and of each body.
REQUEST_SECONDS = 10.0
# A client that reads nothing of a waiting response is disconnected after this time.
STALL_SECONDS = 60.0
# The idle time limit of a connection; the default of aiohttp is an hour.
IDLE_SECONDS = 30.0
# The buffer for a body that its handler has not read; the default of aiohttp is 512 KiB.
_UNREAD_BODY = 16 * 1024
# Bytes parsed in one turn of the event loop, for all connections together: aiohttp takes 2 ms for
# them if they are chunks of one byte, and would take 0.2 s for all that a socket holds.
_BYTES_A_TURN = 2048
# The receive buffer of a connection; the kernel doubles it, and would grow it to megabytes.
_RECEIVE_BUFFER = 16 * 1024
# The pause after a failed accept, when no file descriptor is free.
_ACCEPT_PAUSE = 1.0

_C = TypeVar("_C")


class Places(Generic[_C]):
    """A bounded set of connections, in which a new one replaces an older one.

    The oldest connection of the address with the most connections is replaced, so whoever fills the
    port loses connections of their own (nginx: `drain_connections`).

    Args:
        most: the bound; by default, the share of the admin port in the file descriptors.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = max_admin_connections() if most is None else most
        self._addresses: dict[_C, str] = {}  # the oldest first

    def take(self, connection: _C, address: str) -> _C | None:
        """Add a connection; return the one that it replaces."""
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

    asyncio's `create_server` neither bounds TLS handshakes nor replaces a certificate.

    Args:
        tls: returns the context for a new connection; None without TLS.
    """

    def __init__(
        self,
        listener: socket.socket,
        server: web.Server,
        tls: Callable[[], ssl.SSLContext | None] = lambda: None,
        count: Callable[[str], None] = lambda _: None,
    ) -> None:
        listener.setblocking(False)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)  # inherited
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
            except OSError:  # no descriptor is free, or the client has left already
                await asyncio.sleep(_ACCEPT_PAUSE)
                continue
            handshake = loop.create_task(self._begin(connection))
            lost = self._handshakes.take(handshake, address)
            handshake.add_done_callback(partial(self._ended, connection))
            if lost is not None:
                self.count("handshakes")
                lost.cancel()

    def close(self) -> None:
        """Close the socket, and connections in their TLS handshake."""
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
        except OSError:  # no TLS, or not in time: ssl.SSLError and ConnectionError are among them
            connection.close()

    def _ended(self, connection: socket.socket, handshake: "asyncio.Task[None]") -> None:
        self._handshakes.leave(handshake)
        if handshake.cancelled():  # perhaps before it ran at all
            connection.close()

    def admit(self, connection: "AdminConnection") -> None:
        address, *_ = connection.peername or ("",)
        lost = self._open.take(connection, address)
        if lost is not None:
            lost.abort("connections")

    def leave(self, connection: "AdminConnection") -> None:
        self._open.leave(connection)

    def parse_in_turn(self, parse: Callable[[], None]) -> None:
        """Call a function that parses a piece, one in a turn of the event loop."""
        if not self._unparsed:
            asyncio.get_running_loop().call_soon(self._parse)
        self._unparsed.append(parse)

    def _parse(self) -> None:
        parse = self._unparsed.popleft()
        if self._unparsed:
            asyncio.get_running_loop().call_soon(self._parse)
        parse()


class AdminConnection(web.RequestHandler, asyncio.BufferedProtocol):
    """A connection of the aiohttp server, which is parsed in turn with others."""

    def __init__(self, listener: AdminListener, server: web.Server) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]  # none
            logger=AdminLogger(),  # type: ignore[arg-type]  # an adapter has its methods
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
        """The address of the client; an IPv4-mapped one as an IPv4 address."""
        found = super().peername
        return (plain_address(found[0]), *found[1:]) if found else found

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._listener.admit(self)
        asyncio.get_running_loop().call_later(REQUEST_SECONDS, self._abort_silent)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Parse a piece in turn, and read no more until then."""
        self._pause_transport_reading()
        self._listener.parse_in_turn(partial(self._parse, bytes(self._buffer[:nbytes])))

    def _parse(self, piece: bytes) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.data_received(piece)
            if not (self._reading_paused or self._buffer_paused):  # by aiohttp
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
        """Close the connection, which has reached a bound."""
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
    """Wrap the request handler of an aiohttp server: refuse expectations other than 100-continue.

    aiohttp quotes the expectation in its own refusal, which fails for bytes that are not text.
    """

    async def handle_expected(request: web.BaseRequest) -> web.StreamResponse:
        if isinstance(request.protocol, AdminConnection):
            request.protocol.has_request = True
        expected = request.headers.getall(hdrs.EXPECT, [])
        if request.version == HttpVersion11 and {each.lower() for each in expected} - {
            "100-continue"
        }:
            detail = "Only 100-continue can be expected."
            return problem(request, 417, "expectation_failed", detail)
        response: web.StreamResponse = await handle(request)
        return response

    return handle_expected


class AdminLogger(logging.LoggerAdapter[logging.Logger]):
    """The logger of the aiohttp server: only faults of the gateway are logged with a traceback.

    A malformed request is one line without its bytes, which may hold a token.
    """

    def __init__(self) -> None:
        super().__init__(logging.getLogger("aiohttp.server"))

    def exception(self, msg: object, *args: object, exc_info: Any = True, **more: Any) -> None:
        """Log an error, unless it is a connection that the client closed."""
        if isinstance(exc_info, (HttpProcessingError, RequestPayloadError)):
            fields: dict[str, object] = {"peer": args[0]} if args else {}
            log.event("admin_request_bad", "info", **fields, reason=type(exc_info).__name__)
        elif not isinstance(exc_info, ConnectionError):
            super().exception(msg, *args, exc_info=exc_info, **more)
