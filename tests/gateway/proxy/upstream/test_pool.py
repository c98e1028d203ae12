"""The pool: room for the background, probes, and the health of targets."""

import socket

import pytest

from gateway.core.errors import FaultCode, FaultError
from gateway.core.service import Capacity, Service, Target
from gateway.proxy.upstream.pool import Pool
from gateway.proxy.upstream.upstream import NoRoomError, UpstreamRequest
from tests.gateway.kit import StartUpstream
from tests.gateway.talk import OK

GET = UpstreamRequest("GET", "/", [])


def service(port: int, in_flight: int = 4) -> Service:
    """Return a service on this machine."""
    return Service("s", (Target("127.0.0.1", port),), capacity=Capacity(in_flight, 0, 0.1))


async def test_the_background_leaves_half_of_the_room(upstream: StartUpstream) -> None:
    scripted = await upstream(OK)
    asked, pool = service(scripted.port), Pool()
    one, other = await pool.send(asked, GET), await pool.send(asked, GET)
    with pytest.raises(NoRoomError):
        await pool.send(asked, GET, background=True)
    one.abandon()
    response = await pool.send(asked, GET, background=True)
    assert await response.read() == b"ok"
    response.abandon()
    other.abandon()
    assert pool._service_pool(asked).balancer.health_of(asked.targets[0]).in_flight == 0
    pool.close()


async def test_the_background_has_no_effect_on_the_health_of_a_target() -> None:
    with socket.socket() as gone:
        gone.bind(("127.0.0.1", 0))
        asked, pool = service(gone.getsockname()[1]), Pool()
        standing = pool._service_pool(asked).balancer.health_of(asked.targets[0])
        standing.failures = 3
        with pytest.raises(FaultError) as failed:
            await pool.send(asked, GET, background=True)
        assert failed.value.fault.code is FaultCode.UPSTREAM_UNREACHABLE
        assert (standing.failures, standing.in_flight) == (3, 0)
        assert not pool._service_pool(asked).limiter.half_full


@pytest.mark.parametrize("background", [False, True])
async def test_no_target_is_up(background: bool) -> None:
    asked, pool = service(1), Pool()
    pool.set_down(asked, asked.targets[0], down=True)
    assert pool.is_down(asked, asked.targets[0])
    with pytest.raises(FaultError) as failed:
        await pool.send(asked, GET, background=background)
    assert failed.value.fault.status == 503


async def test_a_probe_reaches_a_target_that_is_down(upstream: StartUpstream) -> None:
    """And one of a service that has no room: probes are outside of every limit."""
    scripted = await upstream(OK)
    asked, pool = service(scripted.port, in_flight=0), Pool()
    pool.set_down(asked, asked.targets[0], down=True)
    response = await pool.probe(asked.targets[0], GET, asked.timeouts)
    assert (response.status, await response.read()) == (200, b"ok")
    response.abandon()
    pool.close()


async def test_a_probe_that_finds_nobody() -> None:
    with socket.socket() as gone:
        gone.bind(("127.0.0.1", 0))
        asked = service(gone.getsockname()[1])
        with pytest.raises(FaultError) as failed:
            await Pool().probe(asked.targets[0], GET, asked.timeouts)
    assert failed.value.fault.code is FaultCode.UPSTREAM_UNREACHABLE


async def test_health_is_kept_over_a_reload() -> None:
    """A target that the rules name no more is forgotten, and begins anew if it comes back."""
    asked, pool = service(1), Pool()
    target = asked.targets[0]
    pool.set_down(asked, target, down=True)
    again = service(1)
    pool.follow([again])
    assert pool.is_down(again, target)
    pool.follow([service(2)])
    assert not pool.is_down(service(1), target)
