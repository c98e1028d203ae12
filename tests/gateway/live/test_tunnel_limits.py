"""Tunnels after a protocol switch have their own limit and timeout."""

import asyncio
import socket
from contextlib import ExitStack, suppress

import psutil
import pytest

from tests.gateway.kit import Scripted, StartGateway, StartUpstream, rules, wait_for
from tests.gateway.live.bounds import bound
from tests.gateway.talk import OK, Reader, Writer, ask, connect, get, soon

pytestmark = pytest.mark.slow

UPGRADE = ask("GET /plain", "Connection: Upgrade", "Upgrade: websocket")
SWITCHED = b"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"


async def echo(scripted: Scripted, reader: Reader, writer: Writer) -> None:
    while b"Upgrade" not in await scripted.take(reader):
        writer.write(OK)
    writer.write(SWITCHED)
    while data := await reader.read(65536):
        writer.write(data)


async def test_a_switch_above_the_limit_of_tunnels_is_refused(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    scripted = await upstream(echo)
    program = gateway("limits: { tunnels: 1 }\n" + rules(scripted.port))
    async with connect(program) as first:
        first.send(UPGRADE)
        assert (await first.head()).status == 101
        async with connect(program) as second:
            second.send(UPGRADE)
            answer = await second.answer()
            assert (answer.status, answer["retry-after"]) == (503, "1")
        await soon(lambda: bound(program, "tunnels") == 1)
    for _ in range(100):
        async with connect(program) as third:
            third.send(UPGRADE)
            if (await third.head()).status == 101:
                return
        await asyncio.sleep(0.05)
    raise AssertionError("the place that became free was not given away")


async def test_an_idle_tunnel_is_cut(gateway: StartGateway, upstream: StartUpstream) -> None:
    scripted = await upstream(echo)
    program = gateway("limits: { tunnel_seconds: 1.5 }\n" + rules(scripted.port))
    async with connect(program) as client:
        client.send(UPGRADE)
        assert (await client.head()).status == 101
        for _ in range(10):
            client.send(b"ping")
            assert await client.reader.readexactly(4) == b"ping"
            await asyncio.sleep(0.2)
        with suppress(ConnectionResetError):
            assert await client.rest() == b""
    await soon(lambda: bound(program, "tunnel_seconds") == 1)


def test_buffered_bytes_of_all_tunnels_are_bounded(gateway: StartGateway) -> None:
    """Both sides send and do not read. Some tunnels are cut to keep the total within its limit."""
    with ExitStack() as stack:
        service = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=16))
        service.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        program = gateway(rules(service.getsockname()[1]))
        process = psutil.Process(program.process.pid)
        before, both = process.memory_info().rss, []
        for _ in range(100):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", program.port))
            client.sendall(UPGRADE)
            far = stack.enter_context(service.accept()[0])
            far.recv(65536)
            far.sendall(SWITCHED)
            assert client.recv(4096).startswith(b"HTTP/1.1 101 ")
            both += [client, far]

        def send_more() -> bool:  # the system takes some megabytes first
            for end in both:
                with suppress(OSError):  # the buffer is full, or the connection was cut
                    end.send(bytes(1 << 20), socket.MSG_DONTWAIT)
            return bound(program, "slow") > 0

        wait_for(send_more)
        assert process.memory_info().rss - before < 120e6


async def test_a_tunnel_to_a_service_that_does_not_read_is_cut(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # a method of socket transports
        writer.write(SWITCHED)
        await asyncio.Event().wait()

    scripted = await upstream(script)
    program = gateway(rules(scripted.port, extra=", timeouts: { between_bytes: 1 }"))
    async with connect(program) as client:
        client.send(UPGRADE)
        assert (await client.head()).status == 101
        client.send(bytes(16_000_000))
        with suppress(ConnectionResetError):
            assert await client.rest() == b""
    (entry,) = await soon(lambda: program.log("request"))
    assert (entry["code"], entry["aborted"]) == ("upstream_timeout", True)


async def test_a_tunnel_does_not_count_as_a_request_in_flight(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    scripted = await upstream(echo)
    capacity = ", capacity: { in_flight: 1, queue: 1, patience: 0.5 }"
    program = gateway(rules(scripted.port, extra=capacity))
    async with connect(program) as client:
        client.send(UPGRADE)
        assert (await client.head()).status == 101
        assert (await get(program)).status == 200
