"""The pool: capacity for background requests, probes, and the health of targets."""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from gateway.base.errors import FaultCode, FaultError
from gateway.http.upstream.pool import Pool
from gateway.http.upstream.service import Capacity, Health, Service, Target
from gateway.http.upstream.upstream import NoRoomError, UpstreamRequest
from tests.gateway.kit import Scripted, StartUpstream
from tests.gateway.talk import OK, Reader, Writer

GET = UpstreamRequest("GET", "/", [])


def service(port: int, in_flight: int = 4) -> Service:
    return Service("s", (Target("127.0.0.1", port),), capacity=Capacity(in_flight, 0, 0.1))


def pool_of(count: Callable[..., None] = lambda *_: None) -> Pool:
    return Pool(count, [])


async def test_background_requests_leave_half_of_the_capacity_free(upstream: StartUpstream) -> None:
    scripted = await upstream(OK)
    asked, pool = service(scripted.port), pool_of()
    one, other = await pool.send(asked, GET), await pool.send(asked, GET)
    with pytest.raises(NoRoomError):
        await pool.send(asked, GET, background=True)
    one.abandon()
    response = await pool.send(asked, GET, background=True)
    assert await response.read() == b"ok"
    response.abandon()
    other.abandon()
    assert pool.addresses(asked)[0].in_flight == 0
    pool.close()


async def test_background_requests_do_not_affect_the_health_of_a_target() -> None:
    with socket.socket() as gone:
        gone.bind(("127.0.0.1", 0))
        asked, pool = service(gone.getsockname()[1]), pool_of()
        (standing,) = pool.addresses(asked)
        standing.failures = 3
        with pytest.raises(FaultError) as failed:
            await pool.send(asked, GET, background=True)
        assert failed.value.fault.code is FaultCode.UPSTREAM_UNREACHABLE
        assert (standing.failures, standing.in_flight) == (3, 0)
        assert not pool._service_pool(asked).limiter.half_full


@pytest.mark.parametrize("background", [False, True])
async def test_without_a_healthy_target_a_request_fails_with_503(background: bool) -> None:
    asked, pool = service(1), pool_of()
    pool.addresses(asked)[0].down = True
    with pytest.raises(FaultError) as failed:
        await pool.send(asked, GET, background=background)
    assert failed.value.fault.status == 503


async def test_a_probe_reaches_a_target_that_is_down(upstream: StartUpstream) -> None:
    """It also reaches a service without free capacity, since no limit applies to probes."""
    scripted = await upstream(OK)
    asked, pool = service(scripted.port, in_flight=0), pool_of()
    pool.addresses(asked)[0].down = True
    response = await pool.probe(pool.addresses(asked)[0], GET, asked.timeouts)
    assert (response.status, await response.read()) == (200, b"ok")
    response.abandon()
    pool.close()


async def test_a_probe_of_an_unreachable_target_fails() -> None:
    with socket.socket() as gone:
        gone.bind(("127.0.0.1", 0))
        asked = service(gone.getsockname()[1])
        pool = pool_of()
        with pytest.raises(FaultError) as failed:
            await pool.probe(pool.addresses(asked)[0], GET, asked.timeouts)
    assert failed.value.fault.code is FaultCode.UPSTREAM_UNREACHABLE


async def test_health_survives_a_reload() -> None:
    def service(port: int) -> Service:
        return Service("s", (Target("127.0.0.1", port),), health=Health("/"))

    pool = pool_of()
    pool.addresses(service(1))[0].down = True
    again = service(1)
    pool.follow([again])
    assert pool.addresses(again)[0].down
    pool.follow([service(2)])
    assert not pool.addresses(service(1))[0].down


async def test_a_service_without_health_checks_has_no_address_marked_as_down() -> None:
    checked = Service("s", (Target("127.0.0.1", 1),), health=Health("/"))
    pool = pool_of()
    pool.addresses(checked)[0].down = True
    assert not pool.addresses(service(1))[0].down


async def test_waiting_requests_are_counted(upstream: StartUpstream) -> None:
    counted: Counter[str] = Counter()
    release = asyncio.Event()

    async def held(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        while True:
            await scripted.take(reader)
            await release.wait()
            writer.write(OK)

    port = (await upstream(held)).port
    asked = Service("s", (Target("127.0.0.1", port),), capacity=Capacity(40, 10, 5))
    pool = pool_of(lambda kind, name: counted.update({f"{kind} {name}": 1}))
    sent = [asyncio.create_task(pool.send(asked, GET)) for _ in range(43)]
    for _ in range(3):
        await asyncio.sleep(0)
    waited = {"in_flight_waits s": 3, f"connection_waits 127.0.0.1:{port}": 40 - 16}
    assert counted == waited
    release.set()
    for response in sent:
        assert await (await response).read() == b"ok"
        response.result().abandon()
    pool.close()


async def test_a_request_that_waits_for_a_connection_is_refused_in_favour_of_another_network() -> (
    None
):
    async def hang(*_: object) -> None:
        await asyncio.Event().wait()

    asyncio.get_running_loop().create_connection = hang  # type: ignore[method-assign, assignment]
    asked = Service("s", (Target("127.0.0.1", 1),), capacity=Capacity(3, 9, 30))
    pool = pool_of()
    of_a, of_b = replace(GET, network=lambda: "a"), replace(GET, network=lambda: "b")
    many = [asyncio.create_task(pool.send(asked, of_a)) for _ in range(3)]
    await asyncio.sleep(0)
    one = asyncio.create_task(pool.send(asked, of_b))
    with pytest.raises(FaultError, match="overloaded"):
        await many.pop()
    await asyncio.sleep(0)
    assert not pool._service_pool(asked).limiter.waiting.size
    assert pool.addresses(asked)[0].connections._waiting.size == 3
    for each in (*many, one):
        each.cancel()
    await asyncio.gather(*many, one, return_exceptions=True)
    pool.close()
