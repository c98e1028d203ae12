"""The server for clients: aiohttp's low-level server with `ClientConnection` as its protocol."""

import asyncio
from collections.abc import Callable
from typing import Any

from aiohttp.web import RequestHandler, Server

from gateway.base.descriptors import max_clients
from gateway.http.client.connection import ClientBound, ClientConnection, ClientTotals, HttpHandler
from gateway.http.transport import WriteBatch


class ClientServer(Server):
    """Accepts client connections and passes their requests to a handler.

    Args:
        handler: answers the requests.
        reached: a function that is called whenever a bound on clients is reached.
        batch: the transports that send at the end of the iteration of the event loop.
    """

    def __init__(
        self, handler: HttpHandler[Any], reached: Callable[[ClientBound], None], batch: WriteBatch
    ) -> None:
        super().__init__(_unused, handler_cancellation=True)
        self._handler = handler
        self._totals = ClientTotals(reached, max_clients())
        self._batch = batch
        self._emptied = asyncio.Event()
        self._finishing = False

    def __call__(self) -> ClientConnection:
        """Return the protocol for a new connection."""
        return ClientConnection(self, self._handler, self._totals, self._batch, self._loop)

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        """Count a connection."""
        super().connection_made(handler, transport)
        self._totals.connections += 1
        if self._finishing and isinstance(handler, ClientConnection):
            handler.finish()  # accepted just before the listener closed

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        """Stop counting a connection: its written bytes are sent, or can never be sent."""
        super().connection_lost(handler, exc)
        self._totals.connections -= 1
        if not self._totals.connections:
            self._emptied.set()

    async def finish(self) -> None:
        """Close every connection after any response under way; return when all are closed."""
        self._finishing = True
        self._emptied.clear()
        for connection in self._clients():
            connection.finish()
        if self._totals.connections:
            await self._emptied.wait()

    async def cut(self, seconds: float) -> None:
        """Reset all connections, so that no response looks complete; end the tasks in `seconds`."""
        for connection in self._clients():
            connection.cut()
        await self.shutdown(seconds)

    def _clients(self) -> list[ClientConnection]:
        return [each for each in self.connections if isinstance(each, ClientConnection)]


async def _unused(_: object) -> Any:
    raise AssertionError("ClientConnection hands its requests on by itself")
