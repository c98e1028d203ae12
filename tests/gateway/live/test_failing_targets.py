"""A failing target is in the metrics, on the page and in the log until it recovers."""

import asyncio
import http.client
import json
import resource
import socket
from typing import Any

import pytest

from tests.gateway.kit import Program, Scripted, StartGateway, StartUpstream, children
from tests.gateway.live.bounds import metric
from tests.gateway.live.shifting import admin, answer
from tests.gateway.talk import OK, Reader, Writer, ask, connect, get, soon


def read(program: Program, path: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", program.admin, timeout=60)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def rules(*ports: int) -> str:
    listed = ", ".join(f'"http://127.0.0.1:{port}"' for port in ports)
    return f"""
services: {{ s: {{ targets: [{listed}], ejection: {{ failures: 1, seconds: 1, longest: 1 }} }} }}
apis: {{ plain: {{ service: s, endpoints: [ {{ path: /plain }} ] }} }}
"""


async def test_a_gateway_that_cannot_connect_blames_no_target(
    reloaded: StartGateway, upstream: StartUpstream
) -> None:
    """Without free descriptors, as without free ports, no connection can be opened."""
    closing = answer({"name": "A B"}, "Connection: close")
    ports = [(await upstream(closing)).port for _ in range(3)]
    first, *others = [f'"http://127.0.0.1:{port}"' for port in ports]
    well = "ejection: { failures: 1 }, health: { path: /, interval: 0.1, down_after: 1 }"
    program = reloaded(f"""
services:
  old: {{ targets: [{first}] }}
  new: {{ targets: [{", ".join(others)}], {well} }}
apis:
  away:
    upstream_path: /person
    endpoints: [ {{ path: "/v{{version}}/person", version: {{ in: path }} }} ]
    versions:
      "1": {{ service: old, cutover: {{ via: "2", percent: 100, sticky_by: request }} }}
      "2": {{ service: new }}
    conversions: [ {{ between: ["1", "2"], changes: [] }} ]
""")
    soft, hard = resource.prlimit(program.process.pid, resource.RLIMIT_NOFILE)
    async with connect(program) as client:
        client.send(ask("GET /v1/person"))
        assert (await client.answer()).status == 200
        resource.prlimit(program.process.pid, resource.RLIMIT_NOFILE, (3, hard))
        for _ in range(5):
            client.send(ask("GET /v1/person"))
            refused = await client.answer()
            assert (refused.status, refused["retry-after"]) == (503, "1")
            assert json.loads(refused.body)["code"] == "gateway_exhausted"
        await asyncio.sleep(0.5)  # for health checks
        resource.prlimit(program.process.pid, resource.RLIMIT_NOFILE, (soft, hard))
        client.send(ask("GET /v1/person"))
        assert (await client.answer()).status == 200
    series = 'gateway_local_connect_failures_total{reason="files"}'
    await soon(lambda: metric(program, series) > 10)
    refusals = 'gateway_refusals_total{api="away",code="gateway_exhausted",version="1"}'
    await soon(lambda: metric(program, refusals) == 5)
    assert not [entry for entry in program.log() if entry["event"].startswith("target_")]

    def new() -> dict[str, Any]:
        found: dict[str, Any] = admin(program, "GET", "/cutovers/away/1")[1]["new"]
        return found

    await soon(lambda: new()["requests"] == 2)
    assert new()["outcomes"] == {"2xx": 2}


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_one_failing_target_of_two_is_reported_and_clients_notice_nothing(
    workers: str, gateway: StartGateway, upstream: StartUpstream
) -> None:
    with socket.socket() as closed:  # bound, but nobody listens
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        program = gateway(rules((await upstream(OK)).port, port), GATEWAY_WORKERS=workers)
        failing = f'gateway_target_failing{{service="s",target="127.0.0.1:{port}"}}'
        assert f"{failing} 0.0" in read(program, "/metrics").splitlines()
        async with asyncio.timeout(60):
            while f"{failing} {workers}" not in await asyncio.to_thread(read, program, "/metrics"):
                assert (await get(program)).status == 200
                await asyncio.sleep(0.05)
        shown = await asyncio.to_thread(read, program, "/")
        assert "Service fails" in shown
        assert f"1 of 2 targets fails: 127.0.0.1:{port} since " in shown
        events = program.log("target_ejected")
        assert len(events) == int(workers)
        assert (events[0]["service"], events[0]["target"]) == ("s", f"127.0.0.1:{port}")
        assert events[0]["reason"] == "Connection refused"
        closed.listen()

        async def answer() -> None:
            loop = asyncio.get_running_loop()
            closed.setblocking(False)
            while True:
                accepted, _ = await loop.sock_accept(closed)
                with accepted:
                    await loop.sock_recv(accepted, 65536)
                    await loop.sock_sendall(
                        accepted, b"HTTP/1.1 204 No\r\nConnection: close\r\n\r\n"
                    )

        answering = asyncio.create_task(answer())
        async with asyncio.timeout(60):
            while f"{failing} 0" not in await asyncio.to_thread(read, program, "/metrics"):
                assert (await get(program)).status in (200, 204)
                await asyncio.sleep(0.05)
        answering.cancel()
        assert "Service fails" not in await asyncio.to_thread(read, program, "/")
        assert len(program.log("target_recovered")) == int(workers)


async def test_the_only_target_is_never_ejected(
    reloaded: StartGateway, upstream: StartUpstream
) -> None:
    well = False

    async def moody(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        if well:
            writer.write(b"HTTP/1.1 204 No\r\nConnection: close\r\n\r\n")

    program = reloaded(rules((await upstream(moody)).port))
    assert (await get(program)).status == 502
    await soon(lambda: program.log("target_failing"))
    shown = await asyncio.to_thread(read, program, "/")
    assert "1 of 1 target fails: " in shown
    assert "Its requests fail." in shown
    well = True
    assert (await get(program)).status == 204
    await soon(lambda: program.log("target_recovered"))
    assert "Service fails" not in await asyncio.to_thread(read, program, "/")


async def test_failing_targets_of_a_worker_are_forgotten_when_it_ends(
    gateway: StartGateway,
) -> None:
    """Otherwise the target would stay failing, since the new worker has no report about it."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        program = gateway(rules(port), GATEWAY_WORKERS="2")
        failing = f'gateway_target_failing{{service="s",target="127.0.0.1:{port}"}}'
        async with asyncio.timeout(60):
            while f"{failing} 2" not in await asyncio.to_thread(read, program, "/metrics"):
                assert (await get(program)).status == 502
                await asyncio.sleep(0.05)
        for worker in children(program):
            worker.kill()
        await soon(lambda: len(program.log("worker_replaced")) == 2)
        assert f"{failing} 0" in await asyncio.to_thread(read, program, "/metrics")
