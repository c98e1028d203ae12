"""One client, or service, that sends much at a time leaves others their turns."""

import asyncio
from collections.abc import Callable, Coroutine

import psutil
import pytest

from tests.gateway.kit import Program, Scripted, StartGateway, StartUpstream, rules
from tests.gateway.talk import OK, Reader, Writer, ask, connect

pytestmark = pytest.mark.slow

GREEDY = 4


@pytest.mark.parametrize(
    "flood",
    [ask("GET /nowhere") * 2000, ask("POST /plain", "Transfer-Encoding: chunked")],
    ids=["requests ahead", "chunks of one byte"],
)
async def test_others_are_answered_meanwhile(
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


async def test_others_are_answered_while_a_service_sends_chunks_of_one_byte(
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
            writer.transport.abort()  # what is left of it would wait for the gateway

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
        """Return how many seconds the gateway has worked: a busy machine adds none to them."""
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
