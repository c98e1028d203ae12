"""The server for clients: aiohttp's low-level server, with connections of our own."""

import asyncio
from collections.abc import Callable
from typing import Any

from aiohttp.web import RequestHandler, Server

from gateway.proxy.client.client_connection import ClientConnection, HttpHandler
from gateway.proxy.client.client_totals import ClientBound, ClientTotals, most_clients


class ClientServer(Server):
    """Accepts connections and has every request answered.

    Args:
        answers: what requests are handed to.
        reached: called whenever clients reach a bound.
    """

    def __init__(self, answers: HttpHandler, reached: Callable[[ClientBound], None]) -> None:
        super().__init__(_unused, handler_cancellation=True)
        self._answers = answers
        self._totals = ClientTotals(reached, most_clients())
        self._emptied = asyncio.Event()
        self._finishing = False

    def __call__(self) -> ClientConnection:
        """Return the protocol for a new connection."""
        return ClientConnection(self, self._answers, self._totals, self._loop)

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        """Count a connection."""
        super().connection_made(handler, transport)
        self._totals.connections += 1
        if self._finishing and isinstance(handler, ClientConnection):
            handler.finish()  # it was accepted just before the socket was closed

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        """Count a connection no more: all that was written to it is sent, or will never be."""
        super().connection_lost(handler, exc)
        self._totals.connections -= 1
        if not self._totals.connections:
            self._emptied.set()

    async def finish(self) -> None:
        """Close every connection, each after the answer that is under way; return when all are."""
        self._finishing = True
        self._emptied.clear()
        for connection in self._clients():
            connection.finish()
        if self._totals.connections:
            await self._emptied.wait()

    async def cut(self, seconds: float) -> None:
        """Cut every connection, so that no answer is taken for whole, and end its task in time."""
        for connection in self._clients():
            connection.cut()
        await self.shutdown(seconds)

    def _clients(self) -> list[ClientConnection]:
        return [each for each in self.connections if isinstance(each, ClientConnection)]


async def _unused(_: object) -> Any:
    raise AssertionError("ClientConnection hands its requests on by itself")
