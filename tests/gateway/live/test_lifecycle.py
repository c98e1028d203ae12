"""Start, health and shutdown: requests in flight finish, and new ones are not accepted."""

import asyncio
import json
import signal
import socket

import psutil
import pytest

from tests.gateway.kit import DEADLINE, IDLE, Program, Scripted, StartGateway, StartUpstream, rules
from tests.gateway.talk import OK, Answer, Client, Reader, Writer, ask, connect, get, settled, soon

STOPS = [signal.SIGTERM, signal.SIGINT]


async def stop(program: Program, number: signal.Signals = signal.SIGTERM) -> None:
    """Send SIGTERM, and return when the shutdown has begun."""
    program.process.send_signal(number)
    await soon(lambda: program.log("stopping"))


async def ended(program: Program) -> int:
    return await asyncio.to_thread(program.process.wait, 10)


async def admin(program: Program, path: str) -> Answer:
    reader, writer = await asyncio.open_connection("127.0.0.1", program.admin)
    writer.write(ask(f"GET {path}", "Connection: close"))
    try:
        return await Client(reader, writer).answer()
    finally:
        writer.close()


def refuses(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.parametrize("number", STOPS, ids=lambda number: number.name)
async def test_a_shutdown_finishes_requests_in_flight(
    number: signal.Signals, gateway: StartGateway, upstream: StartUpstream
) -> None:
    go = asyncio.Event()

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        while True:
            request = await scripted.take(reader)
            if b"/tail/" not in request:
                await go.wait()
            body = request.partition(b"\r\n\r\n")[2] or b"ok"
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    scripted = await upstream(script)
    program = gateway(rules(scripted.port))
    async with (
        connect(program) as idle,
        connect(program) as fresh,
        connect(program) as waiting,
        connect(program) as uploading,
    ):
        idle.send(ask("GET /tail/x"))
        assert (await idle.answer()).status == 200
        waiting.send(ask())
        uploading.send(ask("POST /plain", "Content-Length: 8", body=b"half"))
        await soon(lambda: scripted.connections == 2)
        await stop(program, number)

        assert await idle.rest() == b""
        assert await fresh.rest() == b""
        assert refuses(program.port)
        assert (await admin(program, "/healthz")).status == 200
        readiness = await admin(program, "/readyz")
        assert (readiness.status, json.loads(readiness.body)["status"]) == (503, "not ready")

        uploading.send(b"half")
        go.set()
        for client, body in ((waiting, b"ok"), (uploading, b"halfhalf")):
            answer = await client.answer()
            assert (answer.status, answer["connection"], answer.body) == (200, "close", body)
            assert await client.rest() == b""
    assert await ended(program) == 0
    events = [entry["event"] for entry in program.log()]
    assert (events[0], events[-1], events.count("request")) == ("listening", "stopped", 3)
    assert program.log("log") == []


@pytest.mark.parametrize("number", STOPS, ids=lambda number: number.name)
async def test_a_shutdown_without_requests_is_immediate(
    number: signal.Signals, gateway: StartGateway
) -> None:
    program = gateway(rules(1), GATEWAY_GRACE="600")
    async with connect(program) as half, connect(program):
        half.send(b"GET /plain HTT")
        await stop(program, number)
        assert await ended(program) == 0


async def test_a_response_that_exceeds_the_grace_period_is_cut(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """The client detects this even if the end of the connection ends the body."""

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        request = await scripted.take(reader)
        if b"/plain" in request:
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")
        await reader.read()

    scripted = await upstream(script)
    program = gateway(rules(scripted.port), GATEWAY_GRACE="0.2")
    async with connect(program) as new, connect(program) as old, connect(program) as waiting:
        new.send(ask())
        old.send(ask(http="1.0"))
        waiting.send(ask("GET /tail/x"))
        assert (await new.head()).status == (await old.head()).status == 200
        await soon(lambda: len(scripted.requests) == 3)
        await stop(program)
        for client in (new, old, waiting):
            with pytest.raises(ConnectionResetError):
                await client.rest()
    assert await ended(program) == 0
    lines = program.log("request")
    assert [line["aborted"] for line in lines] == [True] * 3
    assert program.log()[-1]["event"] == "stopped"
    assert program.log("log") == []


async def test_a_shutdown_lets_a_slow_client_get_its_whole_response(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """A response is in flight while the gateway still buffers a part of it."""
    body = bytes(8 * 1024 * 1024)
    scripted = await upstream(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    program = gateway(rules(scripted.port), GATEWAY_GRACE="600")
    async with connect(program, window=4096) as client:
        client.send(ask())
        assert (await client.head()).status == 200
        await stop(program)
        async with asyncio.timeout(DEADLINE):
            assert len(await client.reader.readexactly(len(body))) == len(body)
            assert await client.rest() == b""
    assert await ended(program) == 0


async def test_a_shutdown_lets_a_slow_client_get_buffered_responses(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """The service has finished long ago, and the last responses are buffered."""
    size = 200_000
    scripted = await upstream(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + bytes(size))
    program = gateway(rules(scripted.port), GATEWAY_GRACE="600")
    async with connect(program, window=4096) as client:
        client.send(ask() * 400)
        served = await settled(lambda: len(scripted.requests))
        assert served < 100  # the others do not fit into the buffers
        await stop(program)
        for _ in range(served):
            assert len((await client.answer()).body) == size
    assert await ended(program) == 0


async def test_health_is_only_on_the_admin_port(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    scripted = await upstream(OK)
    program = gateway(rules(scripted.port))
    for path, status in (("/healthz", "ok"), ("/readyz", "ready")):
        answer = await admin(program, path)
        assert (answer.status, json.loads(answer.body)) == (200, {"status": status})
        assert (await get(program, f"GET {path}")).status == 404
    assert (await admin(program, "/plain")).status == 404
    assert program.admin != program.port
    assert scripted.requests == []
    assert program.log("request") == [
        line for line in program.log("request") if line["status"] == 404
    ]


async def test_an_idle_gateway_uses_little_memory(
    executed_gateway: StartGateway, upstream: StartUpstream
) -> None:
    """Memory is measured before the first request and after a few thousand."""
    scripted = await upstream(OK)
    program = executed_gateway(rules(scripted.port))
    process = psutil.Process(program.process.pid)
    sizes = [process.memory_info().rss]
    async with connect(program) as client:
        for _ in range(20):
            client.send(ask() * 100)
            for _ in range(100):
                assert (await client.answer()).status == 200
    sizes.append(process.memory_info().rss)
    print(f"resident: {[round(size / 1e6, 1) for size in sizes]} MB")  # noqa: T201
    assert max(sizes) < IDLE
