"""Clients that hold all conversion memory delay other clients only for a limited time."""

import asyncio
from contextlib import AsyncExitStack
from itertools import count

import pytest

from tests.gateway.kit import Scripted, StartGateway, StartUpstream, rules
from tests.gateway.live.test_conversion_load import JSON, echo, outcome
from tests.gateway.live.test_slow_clients import CONVERT, LARGE
from tests.gateway.talk import Client, Reader, Writer, ask, connect, get

pytestmark = pytest.mark.slow

ALL = 5  # the number of large responses that use up all conversion memory
QUARTER = 16 * 1024 * 1024  # a quarter of the conversion memory, and the largest body
BODY = b'{"name":"' + b"x" * (LARGE - 11) + b'"}'


async def test_a_client_with_one_body_is_served_beside_a_client_with_many(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """The bodies of the greedy client never end; the other client has another address."""
    program = gateway(rules((await upstream(echo)).port, via=True, changes=CONVERT))

    async def endless(client: Client) -> None:
        client.send(ask("POST /v1/person", JSON, f"Content-Length: {QUARTER}"))
        client.send(b"[" + b" " * (QUARTER - 500_000))
        await client.writer.drain()
        sent.release()
        while True:
            client.send(b" " * 5_000)  # 25 kB/s; from 13 kB/s, a client is not slow
            await asyncio.sleep(0.2)

    sent = asyncio.Semaphore(0)
    async with AsyncExitStack() as stack:
        greedy = [await stack.enter_async_context(connect(program)) for _ in range(4)]
        tasks = [asyncio.create_task(endless(client)) for client in greedy]
        for _ in greedy:
            await sent.acquire()
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", program.port, local_addr=("127.0.0.2", 0)
        )
        body = b'{"name":"' + b"x" * 6_000_000 + b'"}'
        writer.write(ask("POST /v1/person", JSON, f"Content-Length: {len(body)}", body=body))
        assert outcome(await Client(reader, writer).answer()) == (204, "")
        writer.close()
        for task in tasks:
            task.cancel()


async def test_slow_service_responses_release_conversion_memory(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """Before, such responses held the memory until the `between_bytes` timeout."""
    requests = count()

    async def stuck(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        while True:
            await scripted.take(reader)
            sent = BODY[:-10] if next(requests) < ALL else BODY
            length = b"Content-Length: %d" % LARGE
            writer.write(b"HTTP/1.1 200 OK\r\n%b\r\n%b\r\n\r\n" % (JSON.encode(), length))
            writer.write(sent)
            await writer.drain()

    program = gateway(rules((await upstream(stuck)).port, via=True, changes=CONVERT))
    async with AsyncExitStack() as stack:
        for _ in range(ALL):
            client = await stack.enter_async_context(connect(program))
            client.send(ask("GET /v1/person"))
            await asyncio.sleep(0.3)  # otherwise the responses wait for each other
        await asyncio.sleep(5)  # after this time they count as slow
        assert outcome(await get(program, "GET /v1/person")) == (200, "")
