"""Conversions take limited memory and time, whatever they convert."""

import asyncio
import gzip
import signal
import time
from contextlib import AsyncExitStack

import pytest

from tests.gateway.kit import Program, Scripted, StartGateway, StartUpstream, rules
from tests.gateway.live.test_memory import watch
from tests.gateway.live.test_slow_clients import CONVERT, LARGE, deaf, large
from tests.gateway.talk import Answer, Reader, Writer, ask, connect, get, soon

pytestmark = pytest.mark.slow

JSON = "Content-Type: application/json"
# 16 kB that decode to 16 MB, below the conversion limit, with the maximum number of elements.
BOMB = gzip.compress(b"[" + b"{}," * 5_500_000 + b"{}]")
MANY = b"[" + b"{}," * 480_000 + b"{}]"
OVERLOADED = (503, "overloaded")


def outcome(answer: Answer) -> tuple[int, str]:
    code = answer.body.partition(b'"code":"')[2].partition(b'"')[0]
    return answer.status, code.decode()


async def post(program: Program, body: bytes, *fields: str) -> tuple[int, str]:
    async with connect(program) as client:
        length = f"Content-Length: {len(body)}"
        client.send(ask("POST /v1/person", JSON, length, *fields, body=body))
        return outcome(await client.answer())


async def answering(program: Program, fair: list[float]) -> None:
    async with connect(program) as client:
        while True:
            began = time.monotonic()
            body = b'{"name":"A B"}'
            client.send(ask("POST /v1/person", JSON, "Content-Length: 14", body=body))
            assert (await client.answer()).status == 200
            fair.append(time.monotonic() - began)
            await asyncio.sleep(0.01)


async def echo(scripted: Scripted, reader: Reader, writer: Writer) -> None:
    while True:
        await scripted.take(reader)
        scripted.requests.clear()
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")


async def test_small_bodies_of_many_elements_take_bounded_time_and_memory(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """Earlier, eight at once took 5 GB and blocked all other requests for half a minute."""

    async def small(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        while True:
            await scripted.take(reader)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    program = gateway(rules((await upstream(small)).port, via=True, changes=CONVERT))
    fair: list[float] = []
    with watch(program) as peak:
        others = asyncio.create_task(answering(program, fair))
        bombs = [post(program, BOMB, "Content-Encoding: gzip") for _ in range(4)]
        assert set(await asyncio.gather(*bombs)) <= {(413, "body_too_large"), OVERLOADED}
        many = await asyncio.gather(*(post(program, MANY) for _ in range(4)))
        assert set(many) <= {(200, ""), OVERLOADED}
        assert (200, "") in many
        others.cancel()
    assert peak.rise < 196e6
    assert len(fair) > 20
    assert not program.log("log")


async def test_a_response_of_many_elements_takes_bounded_time_and_memory(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    fields = b"Content-Type: application/json\r\nContent-Encoding: gzip"
    head = b"HTTP/1.1 200 OK\r\n%b\r\nContent-Length: %d\r\n\r\n" % (fields, len(BOMB))
    program = gateway(rules((await upstream(head + BOMB)).port, via=True, changes=CONVERT))
    with watch(program) as peak:
        assert outcome(await get(program, "GET /v1/person")) == (502, "conversion_failed")
    assert peak.rise < 100e6


async def test_converted_responses_that_clients_do_not_read_take_bounded_memory(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """Earlier, thirty of 12 MB took 700 MB. Above the budget, clients that do not read are cut."""
    scripted = await upstream(large)
    program = gateway(rules(scripted.port, via=True, changes=CONVERT))
    with watch(program) as peak:
        connections = [deaf(program, ask("GET /v1/person")) for _ in range(12)]
        await soon(lambda: [e for e in program.log("request") if e.get("aborted")])
        assert (await get(program)).status == 200  # a request without a conversion
        assert (await get(program, "GET /v1/person")).status == 200
    assert peak.rise < 196e6
    for connection in connections:
        connection.close()

    assert (await get(program, "GET /v1/person")).status == 200  # memory is available again


async def test_slow_senders_of_large_bodies_take_bounded_memory(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    program = gateway(rules((await upstream(echo)).port, via=True, changes=CONVERT))
    async with AsyncExitStack() as stack:
        with watch(program) as peak:
            for _ in range(7):
                slow = await stack.enter_async_context(connect(program))
                slow.send(ask("POST /v1/person", JSON, f"Content-Length: {LARGE}"))
                slow.send(b"[" + b" " * (LARGE - 10))
            refused = await soon(lambda: program.log("request"))
            assert (refused[0]["status"], refused[0]["code"]) == OVERLOADED
            assert await post(program, b'{"name":"A B"}') == (204, "")
            large_body = b'{"name":"' + b"x" * (LARGE - 11) + b'"}'
            assert await post(program, large_body) == (204, "")  # silent clients are cut off
    assert peak.rise < 150e6


@pytest.mark.parametrize("leaving", [True, False], ids=["clients leave", "the gateway is stopped"])
async def test_conversions_for_departed_clients_delay_no_request_or_shutdown(
    gateway: StartGateway, upstream: StartUpstream, leaving: bool
) -> None:
    program = gateway(
        rules((await upstream(echo)).port, via=True, changes=CONVERT), GATEWAY_GRACE="0.2"
    )
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connect(program)) for _ in range(4)]
        for client in clients:
            client.send(ask("POST /v1/person", JSON, f"Content-Length: {len(MANY)}", body=MANY))
            await client.writer.drain()
        await asyncio.sleep(0.1)
        if leaving:
            for client in clients:
                client.cut()
            began = time.monotonic()
            assert (await post(program, b"[" + b" " * 70_000 + b"]"))[0] == 204
        else:
            program.process.send_signal(signal.SIGTERM)
            began = time.monotonic()
            assert await asyncio.to_thread(program.process.wait) == 0
        assert time.monotonic() - began < 4
