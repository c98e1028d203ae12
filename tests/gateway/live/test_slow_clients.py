"""Clients that read slowly are served; clients that do not read are cut."""

import asyncio
import socket
from contextlib import AsyncExitStack, ExitStack

import pytest

from tests.gateway.kit import DEADLINE, Program, Scripted, StartGateway, StartUpstream, rules
from tests.gateway.live.bounds import bound
from tests.gateway.talk import OK, Reader, Writer, ask, connect, get, soon

pytestmark = pytest.mark.slow

LARGE = 12_000_000
SLOW = "limits: { stall_seconds: 0.5, idle_seconds: 30 }\n"


async def large(scripted: Scripted, reader: Reader, writer: Writer) -> None:
    body = b'{"name":"' + b"x" * (LARGE - 11) + b'"}'
    kind = b"Content-Type: application/json"
    while True:
        await scripted.take(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n%b\r\nContent-Length: %d\r\n\r\n" % (kind, len(body)))
        writer.write(body)
        await writer.drain()


def deaf(program: Program, request: bytes) -> socket.socket:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", program.port))
    connection.sendall(request)
    return connection


def count_until_end(connection: socket.socket) -> int | None:
    """Return the number of bytes until the connection ends, or None after a reset."""
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
async def test_a_client_that_reads_nothing_is_cut(
    gateway: StartGateway, upstream: StartUpstream, path: str, end: str
) -> None:
    scripted = await upstream(large)
    program = gateway(SLOW + rules(scripted.port, via=True, changes=CONVERT))
    connections = [deaf(program, ask(f"GET {path}", f"Connection: {end}")) for _ in range(4)]
    await soon(lambda: bound(program, "stall_seconds") == 4)
    for connection in connections:
        connection.settimeout(5)
        assert count_until_end(connection) is None
    assert (await get(program)).status == 200


@pytest.mark.parametrize("path", ["/plain", "/v1/person"], ids=["passed on", "converted"])
async def test_a_slow_reader_gets_its_response_and_the_next_one(
    gateway: StartGateway, upstream: StartUpstream, path: str
) -> None:
    """The transfer may take longer than the timeout of an inactive client."""
    scripted = await upstream(large)
    limits = "limits: { stall_seconds: 2, idle_seconds: 30 }\n"
    program = gateway(limits + rules(scripted.port, via=True, changes=CONVERT))
    loop = asyncio.get_running_loop()
    with deaf(program, ask(f"GET {path}") * 2) as connection:
        connection.setblocking(False)
        received = 0
        began = loop.time()
        while received < 2 * LARGE:
            piece = await asyncio.wait_for(loop.sock_recv(connection, 400_000), DEADLINE)
            assert piece, f"cut after {received} bytes"
            received += len(piece)
            if loop.time() - began < 5:
                await asyncio.sleep(0.1)
    assert bound(program, "stall_seconds") == 0


async def test_an_unknown_status_does_not_end_the_connection(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """A status without a known class is an error of the service; the client stays connected."""
    scripted = await upstream(b"HTTP/1.1 999 Odd\r\nContent-Length: 2\r\n\r\nok")
    program = gateway(rules(scripted.port))
    async with connect(program) as client:
        for _ in range(3):
            client.send(ask())
            answer = await client.answer()
            assert (answer.status, b'"upstream_protocol"' in answer.body) == (502, True)
    assert not program.log("log")


@pytest.mark.parametrize(
    "framing", ["Content-Length: 100", "Transfer-Encoding: chunked", "Content-Length: 70000"]
)
async def test_slow_senders_do_not_occupy_the_service(
    gateway: StartGateway, upstream: StartUpstream, framing: str
) -> None:
    """With forty slow senders and eight slots in flight, other requests are served."""
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


async def test_slow_small_uploads_do_not_block_another_small_upload(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """Three hundred clients send one byte and wait; another client uploads a small body."""
    scripted = await upstream(OK)
    capacity = ", capacity: { in_flight: 8, queue: 400, patience: 1 }"
    program = gateway(rules(scripted.port, extra=capacity))
    async with AsyncExitStack() as stack:
        for _ in range(300):
            slow = await stack.enter_async_context(connect(program))
            slow.send(ask("POST /plain", "Content-Length: 4000", body=b"x"))
        await asyncio.sleep(0.5)
        for _ in range(3):
            client = await stack.enter_async_context(connect(program))
            client.send(ask("POST /plain", "Content-Length: 2"))
            await asyncio.sleep(0.1)
            client.send(b"ok")
            assert (await client.answer()).status == 200


async def test_a_slow_upload_yields_its_slot_to_a_waiting_upload(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """Six slow clients occupy all upload slots and hold back their last byte."""
    scripted = await upstream(OK)
    capacity = ", capacity: { in_flight: 8, queue: 50, patience: 30 }"
    program = gateway(rules(scripted.port, extra=capacity))
    body = b"x" * 100_000
    async with AsyncExitStack() as stack:
        for _ in range(6):
            slow = await stack.enter_async_context(connect(program))
            slow.send(ask("POST /plain", f"Content-Length: {len(body)}", body=body[1:]))
        await asyncio.sleep(0.5)
        async with connect(program) as client:
            client.send(ask("POST /plain", f"Content-Length: {len(body)}", body=body))
            assert (await client.answer()).status == 200


async def test_fast_uploads_do_not_block_a_slow_upload(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    scripted = await upstream(OK)
    program = gateway(rules(scripted.port, extra=", capacity: { in_flight: 1, queue: 50 }"))
    body = b"x" * 100_000

    async def upload() -> int:
        async with connect(program) as client:
            client.send(ask("POST /plain", f"Content-Length: {len(body)}", body=body))
            return (await client.answer()).status

    async with connect(program) as slow:
        slow.send(ask("POST /plain", f"Content-Length: {len(body)}", body=body[1:]))
        others = [asyncio.create_task(upload()) for _ in range(20)]
        await asyncio.sleep(0.2)
        slow.send(b"x")
        assert (await slow.answer()).status == 200
        assert {await other for other in others} == {200}


async def test_slow_readers_do_not_occupy_the_service(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """The gateway buffers the unread bytes, so the slots of the service are free."""
    body = b"x" * 400_000

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        while True:
            await scripted.take(reader)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
            writer.write(body)

    capacity = ", capacity: { in_flight: 4, queue: 100, patience: 5 }"
    program = gateway(rules((await upstream(script)).port, extra=capacity))
    with ExitStack() as stack:
        connections = [stack.enter_context(deaf(program, ask())) for _ in range(40)]
        for _ in range(5):
            answer = await get(program)
            assert (answer.status, len(answer.body)) == (200, len(body))
        assert await asyncio.to_thread(take, connections[0], len(body)) == body


async def test_a_slow_reader_of_a_large_response_yields_its_slot(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """Such readers occupy all slots of the service. A waiting request takes over one of them.

    The client that is cut has read nothing for a second, and the waiting request has not timed out.
    """
    capacity = ", capacity: { in_flight: 8, queue: 8, patience: 4 }"
    program = gateway(rules((await upstream(large)).port, extra=capacity))
    with ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(deaf(program, ask()))
        answer = await get(program)
        assert (answer.status, len(answer.body)) == (200, LARGE)
        await soon(lambda: bound(program, "slow") == 1)


def take(connection: socket.socket, size: int) -> bytes:
    connection.settimeout(10)
    text = b""
    while b"\r\n\r\n" not in text or len(text.partition(b"\r\n\r\n")[2]) < size:
        text += connection.recv(1_000_000)
    return text.partition(b"\r\n\r\n")[2]


LITTLE = "limits: { stall_seconds: 0.6, min_rate: 2000, idle_seconds: 30 }\n"


async def test_a_client_that_reads_too_slowly_is_cut(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    program = gateway(LITTLE + rules((await upstream(large)).port))
    with deaf(program, ask()) as connection:

        def is_cut() -> bool:
            connection.recv(10)
            return bound(program, "stall_seconds") == 1

        await soon(is_cut)


async def test_a_client_that_sends_too_slowly_is_refused(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    program = gateway(LITTLE + rules((await upstream(large)).port))
    async with connect(program) as client:
        client.send(ask("POST /plain", "Content-Length: 100000"))
        answer = asyncio.create_task(client.answer())
        for _ in range(100):
            if answer.done():
                break
            client.send(b"x")
            await asyncio.sleep(0.1)
        assert (await answer).status == 408
