"""Idle connections to services: their maximum idle time, and unsolicited bytes on them."""

import asyncio
import signal

import psutil
import pytest

from tests.gateway.kit import Scripted, StartGateway, StartUpstream, rules
from tests.gateway.talk import OK, Reader, Writer, ask, connect, get, soon

UNASKED = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


async def test_unsolicited_bytes_on_an_idle_connection_are_not_a_response(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """The gateway is suspended, so these bytes and the next request arrive at the same time."""
    resting: list[Writer] = []

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        while True:
            await scripted.take(reader)
            writer.write(OK)
            resting.append(writer)

    scripted = await upstream(script)
    program = gateway(rules(scripted.port))
    for _ in range(10):
        async with connect(program) as client:
            client.send(ask())
            assert (await client.answer()).status == 200
            await asyncio.sleep(0.05)
            program.process.send_signal(signal.SIGSTOP)
            client.send(ask("POST /plain", "Content-Length: 0"))
            await asyncio.sleep(0.02)
            resting[-1].write(UNASKED)
            await asyncio.sleep(0.02)
            program.process.send_signal(signal.SIGCONT)
            assert (await client.answer()).status == 200


async def test_a_short_keep_alive_timeout_causes_a_new_connection(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        for seconds in (b"60", b"2"):
            await scripted.take(reader)
            grant = b"\r\nKeep-Alive: timeout=" + seconds + b"\r\n\r\n"
            writer.write(OK.replace(b"\r\n\r\n", grant))
        await reader.read()

    scripted = await upstream(script)
    program = gateway(rules(scripted.port))
    for _ in range(2):
        assert (await get(program)).status == 200
    assert scripted.connections == 1
    await asyncio.sleep(1.3)
    assert (await get(program)).status == 200
    assert scripted.connections == 2


@pytest.mark.parametrize("size", [4, 100_000], ids=["a small body", "a streamed body"])
async def test_no_write_fails_on_a_connection_that_closes_after_its_response(
    gateway: StartGateway, upstream: StartUpstream, size: int
) -> None:
    """The gateway is suspended, so the response, its end and the write arrive at the same time."""
    pending: list[Writer] = []

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        while b"GET /tail/late" not in await scripted.take(reader):
            writer.write(OK)
        pending.append(writer)
        await reader.read()

    scripted = await upstream(script)
    program = gateway(rules(scripted.port))
    process = psutil.Process(program.process.pid)
    async with connect(program) as writing, connect(program) as reading:
        writing.send(ask())
        assert (await writing.answer()).status == 200
        reading.send(ask("GET /tail/late"))
        (last,) = await soon(lambda: pending)
        process.suspend()
        await soon(lambda: process.status() == psutil.STATUS_STOPPED)
        writing.send(ask("POST /plain", f"Content-Length: {size}", body=b"body"))
        last.write(OK)
        last.close()
        await last.wait_closed()
        process.resume()
        assert (await reading.answer()).status == 200
        writing.send(bytes(size - 4))
        assert (await writing.answer()).status == 200


async def test_a_client_that_leaves_when_its_response_arrives_disturbs_no_other_request(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """The gateway is suspended, so it learns of all three events in one turn of its event loop."""
    pending: list[Writer] = []

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        while True:
            if b"GET /tail/late" in await scripted.take(reader):
                pending.append(writer)
            else:
                writer.write(OK)

    scripted = await upstream(script)
    program = gateway(rules(scripted.port))
    process = psutil.Process(program.process.pid)
    async with connect(program) as client, connect(program) as leaver:
        client.send(ask())
        assert (await client.answer()).status == 200
        leaver.send(ask("GET /tail/late"))
        await soon(lambda: pending)
        process.suspend()
        await soon(lambda: process.status() == psutil.STATUS_STOPPED)
        client.send(ask("POST /plain", "Content-Length: 0"))
        leaver.cut()
        await leaver.writer.wait_closed()
        pending.pop().write(OK)
        process.resume()
        assert (await client.answer()).status == 200
