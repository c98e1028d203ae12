"""Client connections over fake transports: the budget of bytes buffered for all clients."""

import asyncio
from typing import Any

from gateway.http.bounds import ByteBudget
from gateway.http.client.client_server import ClientServer
from tests.gateway.kit import rules
from tests.gateway.proxy.wires import Gateway, Wire
from tests.gateway.talk import ask


def answer(size: int) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (size, b"x" * size)


class Socket:
    """The socket of a client, without unsent bytes."""

    family = 0

    def fileno(self) -> int:
        return -1

    def setsockopt(self, *_: object) -> None:
        """Accept the option that makes a close reset the connection."""


class Client(Wire):
    """A client, on its own connection, that reads nothing unless the test lets it."""

    def __init__(self, server: ClientServer) -> None:
        names = {"peername": ("192.0.2.1", 1), "sockname": ("127.0.0.1", 8080), "socket": Socket()}
        super().__init__(self._look, **names)
        self.cut = self.closing = False
        self._high = 64 * 1024  # the default of asyncio's transports
        self._answered, self.ended = asyncio.Event(), asyncio.Event()
        self.protocol = server()
        self.protocol.connection_made(self)

    def get_write_buffer_size(self) -> int:
        return len(self.data)

    def set_write_buffer_limits(self, *limits: Any, **_: object) -> None:
        (self._high,) = limits

    async def ask(self) -> None:
        """Read everything, send a request, and return when the whole response is written."""
        if self.protocol.writing_paused:
            self.protocol.resume_writing()
        self.data = b""
        self._answered.clear()
        self.protocol.data_received(ask())
        await self._answered.wait()

    def close(self, *_: object, **__: object) -> None:
        self.closing = True

    def is_closing(self) -> bool:
        return self.closing

    def abort(self, *_: object, **__: object) -> None:
        self.cut = True
        self.ended.set()
        asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    def _look(self, _: Wire) -> None:
        if len(self.data) > self._high and not self.protocol.writing_paused:
            self.protocol.pause_writing()
        if self.data.endswith(b"x" * 1000):
            self._answered.set()


async def test_the_client_that_has_read_nothing_for_longest_is_cut_above_the_budget() -> None:
    bounds: list[Any] = []
    gateway = Gateway(rules(1), {1: lambda _: answer(600_000)})
    server = ClientServer(gateway.pipeline, bounds.append, [])
    server._totals.waiting = ByteBudget(most=1_500_000)
    clients = [Client(server) for _ in range(4)]
    for client in clients[:2]:
        await client.ask()
    for client in (clients[0], *clients[2:]):  # the first has read everything
        await client.ask()
    await asyncio.sleep(0)  # the last client also has to wait
    assert [client.cut for client in clients] == [True, True, False, False]
    assert bounds == ["slow", "slow"]
    for client in clients[2:]:
        client.protocol.connection_lost(None)
    gateway.close()


async def test_small_responses_that_clients_do_not_read_count() -> None:
    """Otherwise ten thousand clients could each leave a small response in memory."""
    bounds: list[Any] = []
    gateway = Gateway(rules(1), {1: lambda _: answer(20_000)})
    server = ClientServer(gateway.pipeline, bounds.append, [])
    server._totals.waiting = ByteBudget(most=50_000)
    clients = [Client(server) for _ in range(4)]
    for client in clients:
        await client.ask()
    await asyncio.sleep(0)  # the last client also has to wait
    assert [client.cut for client in clients] == [True, True, False, False]
    for client in clients[2:]:
        client.protocol.connection_lost(None)
    gateway.close()


async def test_a_client_that_reads_nothing_of_the_last_response_is_cut() -> None:
    """The connection is already closing and would otherwise wait for the client forever."""
    bounds: list[Any] = []
    limits = "limits: { header_seconds: 0.01, stall_seconds: 0.01 }\n"
    gateway = Gateway(limits + rules(1), {})
    server = ClientServer(gateway.pipeline, bounds.append, [])
    client = Client(server)
    client.protocol.data_received(b"GET / HTTP/1.1\r\n")
    async with asyncio.timeout(20):
        await client.ended.wait()
    assert client.data.startswith(b"HTTP/1.1 408 ")
    assert bounds == ["header_seconds", "stall_seconds"]
    gateway.close()


async def test_cutting_a_finished_connection_does_not_discard_sent_bytes() -> None:
    """A reset would discard bytes that are still in transit."""
    gateway = Gateway(rules(1), {})
    server = ClientServer(gateway.pipeline, lambda _: None, [])
    client = Client(server)
    client.protocol.finish()
    client.protocol.cut()
    assert (client.closing, client.cut) == (True, False)
    client.protocol.connection_lost(None)
    gateway.close()
