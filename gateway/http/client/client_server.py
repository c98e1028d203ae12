"""The server for clients: aiohttp's low-level server with `ClientConnection` as its protocol."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec
from aiohttp.web import RequestHandler, Server

from gateway.base.addresses import plain_address
from gateway.base.descriptors import max_clients
from gateway.base.errors import Fault, FaultCode
from gateway.http.client.connection import ClientBound, ClientConnection, ClientTotals, HttpHandler
from gateway.http.client.listener import Listener
from gateway.http.client.proxy_protocol import ProxyHeaderReader
from gateway.http.tls import TlsConnection
from gateway.http.tls_errors import TlsError
from gateway.http.transport import WriteBatch

# The maximum number of concurrent handshakes. Beyond it, the oldest one is aborted; an ordinary
# handshake takes a millisecond.
_MOST_HANDSHAKES: Final = 1024
_PLAIN_HTTP: Final = Fault(FaultCode.BAD_REQUEST, "This port requires TLS; use https.")
_PROBLEM: Final = msgspec.json.encode(_PLAIN_HTTP.problem("/"))
_PLAIN_RESPONSE: Final = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/problem+json\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(_PROBLEM), _PROBLEM)
)
_NO_PROXY_HEADER = "a load balancer in proxy_protocol sent no PROXY protocol header"


class ClientServer(Server):
    """Accepts client connections and passes their requests to a handler.

    Args:
        refused: called when a connection ends before its first request, with the reason as a metric
            label, the reason in words, and the address of the client.
    """

    def __init__(
        self,
        handler: HttpHandler[Any],
        reached: Callable[[ClientBound], None],
        batch: WriteBatch,
        refused: Callable[[str, str, str], None] = lambda *_: None,
    ) -> None:
        super().__init__(_unused, handler_cancellation=True)
        self._refused = refused
        self._handshakes: dict[TlsConnection, None] = {}  # the oldest first
        self.listeners: dict[str, Listener] = {}
        self._handler = handler
        self._totals = ClientTotals(reached, max_clients())
        self._batch = batch
        self._emptied = asyncio.Event()
        self._finishing = False

    def __call__(self) -> ClientConnection:
        return ClientConnection(self, self._handler, self._totals, self._batch, self._loop)

    def accept(self, address: str) -> Any:
        listener = self.listeners.get(address)
        if listener is None or not (listener.context or listener.proxies):
            return self()
        if not listener.proxies:
            return self._secured(listener, self())
        return ProxyHeaderReader(
            self._loop,
            listener.proxies,
            self._handler.limits.header_seconds,
            partial(self._refused, "proxy_header", _NO_PROXY_HEADER),
            partial(self._forwarded, listener),
        )

    def _forwarded(self, listener: Listener, client: str | None) -> Any:
        connection = self()
        connection.peer = client or ""
        return self._secured(listener, connection)

    def _secured(self, listener: Listener, connection: ClientConnection) -> Any:
        if listener.context is None:
            return connection
        seconds = self._handler.limits.header_seconds
        handshake = TlsConnection(
            *(self._loop, connection, listener.context, seconds, self._shaken),
            plain_response=_PLAIN_RESPONSE,
        )
        self._handshakes[handshake] = None
        if len(self._handshakes) > _MOST_HANDSHAKES:
            next(iter(self._handshakes)).fail(TlsError("crowded"))
        return handshake

    def _shaken(self, handshake: TlsConnection, error: TlsError | None) -> None:
        del self._handshakes[handshake]
        if error is not None:
            peer = handshake.get_extra_info("peername")
            self._refused(error.reason, str(error), plain_address(peer[0]) if peer else "")

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self._totals.connections += 1
        if self._finishing and isinstance(handler, ClientConnection):
            handler.finish()  # accepted just before the listener closed

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        self._totals.connections -= 1
        if not self._totals.connections:
            self._emptied.set()

    async def finish(self) -> None:
        """Close every connection after its current response; return when all are closed."""
        self._finishing = True
        for handshake in tuple(self._handshakes):
            handshake.abort()
        self._emptied.clear()
        for connection in self._clients():
            connection.finish()
        if self._totals.connections:
            await self._emptied.wait()

    async def cut(self, seconds: float) -> None:
        """Reset all connections, so that no response seems complete; end the tasks in `seconds`."""
        for connection in self._clients():
            connection.cut()
        await self.shutdown(seconds)

    def _clients(self) -> list[ClientConnection]:
        return [each for each in self.connections if isinstance(each, ClientConnection)]


async def _unused(_: object) -> Any:
    raise AssertionError("ClientConnection itself passes on its requests")
