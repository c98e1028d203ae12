"""Clients that take their answers slowly are served; those that take nothing are cut."""

import asyncio
import socket
from contextlib import AsyncExitStack

import pytest

from tests.gateway.kit import Program, Scripted, StartGateway, StartUpstream, rules
from tests.gateway.live.bounds import bound
from tests.gateway.talk import OK, Reader, Writer, ask, connect, get, soon

LARGE = 12_000_000
SLOW = "limits: { stall_seconds: 0.5, idle_seconds: 30 }\n"


async def large(scripted: Scripted, reader: Reader, writer: Writer) -> None:
    """Answer everything with a large JSON text, in one piece."""
    body = b'{"name":"' + b"x" * (LARGE - 11) + b'"}'
    kind = b"Content-Type: application/json"
    while True:
        await scripted.take(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n%b\r\nContent-Length: %d\r\n\r\n" % (kind, len(body)))
        writer.write(body)
        await writer.drain()


def deaf(program: Program, request: bytes) -> socket.socket:
    """Send a request and take nothing of its answer."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", program.port))
    connection.sendall(request)
    return connection


def taken(connection: socket.socket) -> int | None:
    """Return how many bytes come until the end; None where that is a reset."""
    size = 0
    with connection:
        try:
            while piece := connection.recv(1_000_000):
                size += len(piece)
        except ConnectionResetError:
            return None
    return size


CONVERT = "- rename: { field: name, to: title }"


@pytest.mark.parametrize("path", ["/plain", "/v1/person"], ids=["passed on", "converted"])
@pytest.mark.parametrize("end", ["keep-alive", "close"])
async def test_who_takes_nothing_is_cut(
    gateway: StartGateway, upstream: StartUpstream, path: str, end: str
) -> None:
    scripted = await upstream(large)
    program = gateway(SLOW + rules(scripted.port, via=True, changes=CONVERT))
    connections = [deaf(program, ask(f"GET {path}", f"Connection: {end}")) for _ in range(4)]
    await soon(lambda: bound(program, "stall_seconds") == 4)
    for connection in connections:
        connection.settimeout(5)
        assert taken(connection) is None
    assert (await get(program)).status == 200


@pytest.mark.parametrize("path", ["/plain", "/v1/person"], ids=["passed on", "converted"])
async def test_who_takes_slowly_gets_all_of_it_and_the_next_answer(
    gateway: StartGateway, upstream: StartUpstream, path: str
) -> None:
    """However long it takes: here six times as long as a client may do nothing."""
    scripted = await upstream(large)
    program = gateway(SLOW + rules(scripted.port, via=True, changes=CONVERT))
    loop = asyncio.get_running_loop()
    with deaf(program, ask(f"GET {path}") * 2) as connection:
        connection.setblocking(False)
        received = 0
        began = loop.time()
        while received < 2 * LARGE:
            piece = await asyncio.wait_for(loop.sock_recv(connection, 400_000), 5)
            assert piece, f"cut after {received} bytes"
            received += len(piece)
            if loop.time() - began < 3:
                await asyncio.sleep(0.1)
    assert bound(program, "stall_seconds") == 0


async def test_no_connection_dies_unseen(gateway: StartGateway, upstream: StartUpstream) -> None:
    """A status that no recorder has a class for is the service's mistake, and costs nobody."""
    scripted = await upstream(b"HTTP/1.1 999 Odd\r\nContent-Length: 2\r\n\r\nok")
    program = gateway(rules(scripted.port))
    async with connect(program) as client:
        for _ in range(3):
            client.send(ask())
            answer = await client.answer()
            assert (answer.status, b'"upstream_protocol"' in answer.body) == (502, True)
    assert not program.log("log")


@pytest.mark.parametrize("framing", ["Content-Length: 100", "Transfer-Encoding: chunked"])
async def test_slow_senders_leave_room_at_the_service(
    gateway: StartGateway, upstream: StartUpstream, framing: str
) -> None:
    """Forty of them, where eight requests may be in flight: fresh requests are answered."""
    scripted = await upstream(OK)
    capacity = ", capacity: { in_flight: 8, queue: 8, patience: 0.5 }"
    program = gateway(rules(scripted.port, extra=capacity))
    async with AsyncExitStack() as stack:
        for _ in range(40):
            slow = await stack.enter_async_context(connect(program))
            slow.send(ask("POST /plain", framing, body=b"1\r\nx\r\n"))
        await asyncio.sleep(0.5)
        for _ in range(10):
            assert (await get(program)).status == 200
