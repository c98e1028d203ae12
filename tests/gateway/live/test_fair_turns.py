"""A client or service that sends many bytes at once does not block other clients."""

import asyncio
from collections.abc import Callable, Coroutine

import psutil
import pytest

from tests.gateway.kit import DEADLINE, Program, Scripted, StartGateway, StartUpstream, rules
from tests.gateway.live.bounds import metric
from tests.gateway.talk import OK, Reader, Writer, ask, connect, soon

pytestmark = pytest.mark.slow

GREEDY = 4


@pytest.mark.parametrize(
    "flood",
    [ask("GET /nowhere") * 2000, ask("POST /plain", "Transfer-Encoding: chunked")],
    ids=["requests ahead", "chunks of one byte"],
)
async def test_other_clients_are_served_while_one_sends_many_requests(
    gateway: StartGateway, upstream: StartUpstream, flood: bytes
) -> None:
    scripted = await upstream(OK)
    program = gateway(rules(scripted.port))
    more = b"1\r\nx\r\n" * 20_000 if b"chunked" in flood else flood

    async def greedy() -> None:
        async with connect(program) as client:
            client.send(flood)

            async def send() -> None:
                while True:
                    client.send(more)
                    await client.writer.drain()

            sending = asyncio.create_task(send())
            try:
                while await client.reader.read(65536):
                    pass
            finally:
                sending.cancel()

    await others_are_answered(program, greedy)


async def test_other_clients_are_served_while_a_service_sends_tiny_chunks(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    async def flood(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            while True:
                writer.write(b"1\r\nx\r\n" * 20_000)
                await writer.drain()
        finally:
            writer.transport.abort()  # unsent bytes would wait for the gateway

    scripted = await upstream(flood)
    program = gateway(rules(scripted.port))

    async def greedy() -> None:
        async with connect(program) as client:
            client.send(ask())
            while await client.reader.read(65536):
                pass

    await others_are_answered(program, greedy)


async def others_are_answered(
    program: Program, greedy: Callable[[], Coroutine[None, None, None]]
) -> None:
    greedies = [asyncio.create_task(greedy()) for _ in range(GREEDY)]
    waits = []
    process = psutil.Process(program.process.pid)

    def busy() -> float:
        """Return the gateway's CPU seconds, which do not depend on other load on the machine."""
        return sum(process.cpu_times()[:2])

    async with connect(program) as client:
        await asyncio.sleep(0.5)
        for _ in range(30):
            began = busy()
            client.send(ask("GET /nowhere/else"))
            assert (await client.answer()).status == 404
            waits.append(busy() - began)
    for each in greedies:
        each.cancel()
    await asyncio.gather(*greedies, return_exceptions=True)
    median = sorted(waits)[len(waits) // 2]
    assert median < 0.1


async def test_networks_take_turns_at_a_busy_service(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    turns = asyncio.Semaphore(0)

    async def script(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        while True:
            await scripted.take(reader)
            await turns.acquire()
            writer.write(OK)

    scripted = await upstream(script)
    capacity = ", capacity: { in_flight: 1, queue: 50, patience: 60 }"
    program = gateway(rules(scripted.port, extra=capacity))

    async def ask_from(address: str) -> bytes:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", program.port, local_addr=(address, 0)
        )
        writer.write(ask("GET /plain", "Connection: close"))
        answer = await reader.read()
        writer.close()
        return answer

    def waits() -> float:
        return metric(program, 'gateway_in_flight_waits_total{service="s"}')

    many = [asyncio.create_task(ask_from("127.0.0.1")) for _ in range(20)]
    await soon(lambda: waits() == 19)
    one = asyncio.create_task(ask_from("127.0.0.2"))
    await soon(lambda: waits() == 20)
    for _ in range(3):
        turns.release()
    assert (await asyncio.wait_for(one, DEADLINE)).startswith(b"HTTP/1.1 200")
    assert sum(each.done() for each in many) <= 2
    for _ in range(18):
        turns.release()
    await asyncio.gather(*many)
