"""Asking in the background: only where there is room, and nobody is judged by it."""

import socket
from dataclasses import dataclass

import pytest

from gateway.core.errors import FaultCode, FaultError
from gateway.core.service import Capacity, Service, Target
from gateway.proxy.shadow import background
from gateway.proxy.shadow.background import Load, ShedError, ask, time_used
from gateway.proxy.upstream.pool import Pool
from gateway.proxy.upstream.upstream import UpstreamRequest
from tests.gateway.kit import StartUpstream
from tests.gateway.talk import OK

GET = UpstreamRequest("GET", "/", [])


def service(port: int, in_flight: int = 4) -> Service:
    """Return a service on this machine."""
    return Service("s", (Target("127.0.0.1", port),), capacity=Capacity(in_flight, 0, 0.1))


async def test_it_leaves_half_of_the_room(upstream: StartUpstream) -> None:
    scripted = await upstream(OK)
    asked, pool = service(scripted.port), Pool()
    one, other = await pool.send(asked, GET), await pool.send(asked, GET)
    with pytest.raises(ShedError, match="capacity"):
        await ask(pool, asked, GET)
    one.abandon()
    response = await ask(pool, asked, GET)
    assert await response.read() == b"ok"
    response.abandon()
    other.abandon()
    assert pool.members(asked).balancer.health_of(asked.targets[0]).in_flight == 0
    pool.close()


async def test_it_speaks_neither_for_a_target_nor_against_it() -> None:
    with socket.socket() as gone:
        gone.bind(("127.0.0.1", 0))
        asked, pool = service(gone.getsockname()[1]), Pool()
        standing = pool.members(asked).balancer.health_of(asked.targets[0])
        standing.failures = 3
        with pytest.raises(FaultError) as failed:
            await ask(pool, asked, GET)
        assert failed.value.fault.code is FaultCode.UPSTREAM_UNREACHABLE
        assert (standing.failures, standing.in_flight) == (3, 0)
        assert not pool.members(asked).limiter.half_full


async def test_no_target_is_well() -> None:
    asked, pool = service(1), Pool()
    pool.members(asked).balancer.health_of(asked.targets[0]).down = True
    with pytest.raises(FaultError) as failed:
        await ask(pool, asked, GET)
    assert failed.value.fault.status == 503


@dataclass
class Clock:
    """Stands for the module `time`."""

    now: float = 0.0
    used: float = 0.0

    def monotonic(self) -> float:
        """Return how much time has passed."""
        return self.now


def test_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that uses most of its time has none left over; it is looked at now and then."""
    clock = Clock()
    monkeypatch.setattr(background, "time", clock)
    load = Load(lambda: clock.used)
    for now, used, high in [
        (0.05, 0.05, False),
        (0.1, 0.1, True),
        (0.15, 0.1, True),
        (0.2, 0.1, False),
        (1.2, 0.8, False),
        (2.2, 1.7, True),
    ]:
        clock.now, clock.used = now, used
        assert load.high is high, now


def test_time_is_used_by_computing() -> None:
    measure = time_used()
    before = measure()
    sum(range(1_000_000))
    assert before < measure() < before + 60
