"""A thousand concurrent clients share the connections to a service."""

import asyncio

from tests.gateway.kit import Scripted, StartGateway, StartUpstream, rules
from tests.gateway.live.bounds import metric
from tests.gateway.talk import OK, Reader, Writer, ask, connect, soon

CLIENTS = 1000
ROUNDS = 2
CAPACITY = "capacity: { in_flight: 64, queue: 1000, patience: 60 }"


async def test_connections_to_the_service_are_bounded(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    everyone = asyncio.Barrier(CLIENTS)
    opened = most = 0

    async def service(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        nonlocal opened, most
        opened += 1
        most = max(most, opened)
        try:
            while True:
                await scripted.take(reader)
                writer.write(OK)
        finally:
            opened -= 1

    async def client() -> None:
        async with connect(program) as one:
            for _ in range(ROUNDS):
                await everyone.wait()
                one.send(ask())
                assert (await one.answer()).body == b"ok"

    scripted = await upstream(service)
    program = gateway(rules(scripted.port, extra=f", {CAPACITY}"))
    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    assert len(scripted.requests) == CLIENTS * ROUNDS
    assert most <= 64
    target = f'target="127.0.0.1:{scripted.port}"'
    await soon(lambda: metric(program, f"gateway_connection_waits_total{{{target}}}") > 0)
    assert metric(program, 'gateway_in_flight_waits_total{service="s"}') > 0
