"""The server for clients: no connection stays open when it shuts down."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.base.errors import Fault
from gateway.http.client.client_server import ClientServer
from gateway.http.limits import Limits
from gateway.proxy.exchange import Exchange


class Silent:
    limits = Limits()
    begin = Exchange

    async def answer(self, exchange: Exchange) -> None:
        raise AssertionError("nobody asks")

    def refuse(self, exchange: Exchange, fault: Fault) -> None:
        raise AssertionError("nobody is refused")


@pytest.fixture
async def listening() -> AsyncIterator[tuple[ClientServer, int]]:
    server = ClientServer(Silent(), lambda _: None, [])
    accepting = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    try:
        yield server, accepting.sockets[0].getsockname()[1]
    finally:
        accepting.close()
        await server.cut(1.0)


async def test_a_connection_accepted_during_the_shutdown_is_closed(
    listening: tuple[ClientServer, int],
) -> None:
    """The kernel may pass such a connection on just before the listening socket is closed."""
    server, port = listening
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    async with asyncio.timeout(10):
        await asyncio.sleep(0.05)
        await server.finish()
        assert await reader.read() == b""
        late, late_writer = await asyncio.open_connection("127.0.0.1", port)
        assert await late.read() == b""
    for each in (writer, late_writer):
        each.close()
        await each.wait_closed()


class Busy(Silent):
    """A handler that continues to respond after the client has disconnected."""

    def __init__(self) -> None:
        self.begun, self.left, self.over = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def answer(self, exchange: Exchange) -> None:
        self.begun.set()
        try:
            await self.over.wait()
        except asyncio.CancelledError:
            self.left.set()
            await self.over.wait()
            raise


async def test_a_client_that_leaves_during_its_response_does_not_delay_the_shutdown() -> None:
    busy = Busy()
    server = ClientServer(busy, lambda _: None, [])
    accepting = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    async with asyncio.timeout(10):
        _, writer = await asyncio.open_connection(*accepting.sockets[0].getsockname())
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await busy.begun.wait()
        writer.transport.abort()
        await busy.left.wait()
        await server.finish()
    busy.over.set()
    accepting.close()
    await server.cut(1.0)
