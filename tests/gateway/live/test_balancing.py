"""Several targets, some failing: the choice of a target, and immediate refusals."""

import asyncio
import json
from contextlib import ExitStack

import pytest

from tests.gateway.kit import Program, Scripted, StartGateway, StartUpstream, held_port, wait_for
from tests.gateway.talk import Reader, Writer, ask, connect


def answer(body: bytes, status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)


def house(targets: list[int], more: str) -> str:
    listed = ", ".join(f'"http://127.0.0.1:{port}"' for port in targets)
    return f"""
services:
  s: {{ targets: [{listed}], {more} }}
apis:
  plain: {{ service: s, endpoints: [ {{ path: /plain }} ] }}
"""


async def bodies(program: Program, count: int) -> list[bytes]:
    async with connect(program) as client:
        found = []
        for _ in range(count):
            client.send(ask())
            found.append((await client.answer()).body)
        return found


async def test_the_targets_share_the_work(reloaded: StartGateway, upstream: StartUpstream) -> None:
    one, two = await upstream(answer(b"1")), await upstream(answer(b"2"))
    program = reloaded(house([one.port, two.port], ""))
    assert sorted(await bodies(program, 10)) == [b"1"] * 5 + [b"2"] * 5


async def test_a_target_that_keeps_failing_gets_no_requests(
    reloaded: StartGateway, upstream: StartUpstream
) -> None:
    async def broken(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)

    ill, well = await upstream(broken), await upstream(answer(b"well"))
    more = "ejection: { failures: 2, seconds: 60 }"
    program = reloaded(house([ill.port, well.port], more))
    seen = await bodies(program, 20)
    assert len([body for body in seen if body != b"well"]) == 2
    assert len(ill.requests) == 2


async def test_health_checks_eject_a_target_and_readmit_it(
    reloaded: StartGateway, upstream: StartUpstream
) -> None:
    well = True

    async def moody(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        while True:
            asked = await scripted.take(reader)
            health = asked.startswith(b"GET /readyz ")
            writer.write(answer(b"", b"503 No") if health and not well else answer(b"moody"))

    steady, other = await upstream(answer(b"steady")), await upstream(moody)
    more = "health: { path: /readyz, interval: 0.05, down_after: 2, up_after: 2 }"
    program = reloaded(house([steady.port, other.port], more))
    assert set(await bodies(program, 4)) == {b"steady", b"moody"}
    well = False
    down = await asyncio.to_thread(wait_for, lambda: program.log("target_down"))
    assert down[0]["target"] == f"127.0.0.1:{other.port}"
    assert set(await bodies(program, 6)) == {b"steady"}
    well = True
    await asyncio.to_thread(wait_for, lambda: program.log("target_up"))
    assert set(await bodies(program, 4)) == {b"steady", b"moody"}


HEALTH_FAILURES = {
    b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n": "status 404",
    b"HTTP/1.1 301 Moved\r\nContent-Length: 0\r\nLocation: /\r\n\r\n": "status 301",
    b"SSH-2.0-OpenSSH_9.6\r\n\r\n": "another protocol",
    b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok": "it took too long",
    b"": "it took too long",
}


@pytest.mark.parametrize(("reply", "reason"), HEALTH_FAILURES.items())
async def test_the_target_down_event_has_the_reason(
    reloaded: StartGateway, upstream: StartUpstream, reply: bytes, reason: str
) -> None:
    target = await upstream(reply)
    more = "health: { path: /readyz, interval: 0.05, timeout: 1, down_after: 1 }"
    program = reloaded(house([target.port], more))
    (down, *_) = await asyncio.to_thread(wait_for, lambda: program.log("target_down"))
    assert (down["service"], down["target"]) == ("s", f"127.0.0.1:{target.port}")
    assert down["reason"] == reason


async def test_the_target_down_event_has_the_connection_error(reloaded: StartGateway) -> None:
    more = "health: { path: /readyz, interval: 0.05, down_after: 1 }"
    with ExitStack() as held:
        program = reloaded(house([held_port(held)], more))
        (down, *_) = await asyncio.to_thread(wait_for, lambda: program.log("target_down"))
    assert "refused" in down["reason"].lower()


@pytest.mark.parametrize("host", ["api.internal", "target", "client"])
async def test_health_checks_send_the_host_of_requests(
    reloaded: StartGateway, upstream: StartUpstream, host: str
) -> None:
    service = await upstream(answer(b"ok"))
    more = f"host: {host}, health: {{ path: /readyz, interval: 0.05 }}"
    program = reloaded(house([service.port], more))
    await asyncio.to_thread(wait_for, lambda: service.requests)
    await bodies(program, 1)
    checked, asked = (
        next(one for one in service.requests if one.startswith(line)).split(b"\r\n")[1].decode()
        for line in (b"GET /readyz ", b"GET /plain ")
    )
    own = f"127.0.0.1:{service.port}"
    sent = {"target": own, "client": "api.test"}.get(host, host)
    assert asked == f"Host: {sent}"
    assert checked == (f"Host: {own}" if host == "client" else asked)  # a check has no client


async def test_a_request_without_a_healthy_target_is_503(
    reloaded: StartGateway, upstream: StartUpstream
) -> None:
    ill = await upstream(answer(b"", b"500 No"))
    more = "health: { path: /readyz, interval: 0.05, down_after: 1 }"
    program = reloaded(house([ill.port], more))
    await asyncio.to_thread(wait_for, lambda: program.log("target_down"))
    async with connect(program) as client:
        client.send(ask())
        refused = await client.answer()
    assert (refused.status, refused["retry-after"]) == (503, "5")
    assert json.loads(refused.body)["code"] == "upstream_unavailable"


async def test_a_request_beyond_the_capacity_is_503_at_once(
    reloaded: StartGateway, upstream: StartUpstream
) -> None:
    go = asyncio.Event()

    async def slow(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        while True:
            await scripted.take(reader)
            await go.wait()
            writer.write(answer(b"ok"))

    scripted = await upstream(slow)
    program = reloaded(house([scripted.port], "capacity: { in_flight: 1, queue: 1 }"))
    async with connect(program) as first, connect(program) as second, connect(program) as third:
        first.send(ask())
        await asyncio.to_thread(wait_for, lambda: scripted.requests)
        second.send(ask())
        await asyncio.sleep(0.1)  # in line before the third asks
        third.send(ask())
        refused = await third.answer()
        assert (refused.status, refused["retry-after"]) == (503, "1")
        assert json.loads(refused.body)["code"] == "overloaded"
        go.set()
        assert (await first.answer()).body == (await second.answer()).body == b"ok"


async def test_a_response_that_trickles_past_the_total_timeout_is_cut(
    reloaded: StartGateway, upstream: StartUpstream
) -> None:
    async def trickle(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
        for _ in range(100):
            writer.write(b".")
            await asyncio.sleep(0.05)

    scripted = await upstream(trickle)
    program = reloaded(house([scripted.port], "timeouts: { whole: 0.4 }"))
    async with connect(program) as client:
        client.send(ask())
        assert (await client.head()).status == 200
        with pytest.raises(ConnectionResetError):
            await client.rest()
    (line,) = await asyncio.to_thread(wait_for, lambda: program.log("request"))
    assert (line["code"], line["aborted"]) == ("upstream_timeout", True)
