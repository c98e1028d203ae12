"""Health checks, against addresses whose responses the test sets."""

import asyncio
from collections.abc import Callable, Coroutine

from gateway.http.upstream.health_checks import HealthChecks
from gateway.http.upstream.pool import Pool, TargetAddress
from gateway.http.upstream.resolver import Resolution
from gateway.http.upstream.service import Health, Service, Target
from tests.gateway.kit import Scripted, StartUpstream, on_one_port
from tests.gateway.talk import OK, Reader, Writer

HEALTH = Health("/health", interval=0.01, timeout=5.0, down_after=2, up_after=2)


class Started:
    def __init__(self, task: asyncio.Task[None]) -> None:
        self.task = task

    def stop(self) -> None:
        self.task.cancel()


def start(name: str, run: Callable[[], Coroutine[None, None, None]]) -> Started:
    """Start a task; it is not restarted."""
    return Started(asyncio.create_task(run(), name=name))


class Checked:
    """Health checks, and the changes that they report: the address, and the failure or None."""

    def __init__(self, pool: Pool) -> None:
        self.changes: asyncio.Queue[tuple[str, str | None]] = asyncio.Queue()
        self.checks = HealthChecks(pool, self._report, start)

    def _report(self, _: Service, address: TargetAddress, failure: str | None) -> None:
        self.changes.put_nowait((address.host, failure))


async def test_an_address_is_down_after_failures_and_up_after_successes(
    upstream: StartUpstream,
) -> None:
    status = b"503 Service Unavailable"

    async def answer(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        while True:
            request = await scripted.take(reader)
            assert request.startswith(b"GET /health HTTP/1.1")
            writer.write(b"HTTP/1.1 %b\r\nContent-Length: 0\r\n\r\n" % status)

    target = Target("127.0.0.1", (await upstream(answer)).port)
    service, pool = Service("s", (target,), health=HEALTH), Pool(lambda *_: None, [])
    checked = Checked(pool)
    checked.checks.follow([service])
    assert await checked.changes.get() == ("127.0.0.1", "status 503")
    (address,) = pool.addresses(service)
    assert (address.down, address.down_cause) == (True, "status 503")
    status = b"204 No Content"
    assert await checked.changes.get() == ("127.0.0.1", None)
    assert not address.down
    checked.checks.stop()
    pool.close()


async def test_each_address_of_a_name_is_checked(upstream: StartUpstream) -> None:
    bad = b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"
    found = await on_one_port(upstream, {"127.0.0.1": OK, "127.0.0.2": bad})
    first, second = found.values()
    known = ["127.0.0.1", "127.0.0.2"]

    async def look_up(_: str) -> Resolution:
        return Resolution(tuple(known), 1.0)

    pool = Pool(lambda *_: None, [], lookup=look_up)
    service = Service("s", (Target("orders.test", first.port),), health=HEALTH)
    checked = Checked(pool)
    pool.readdressed = lambda: checked.checks.follow([service])
    pool.follow([service])
    assert await checked.changes.get() == ("127.0.0.2", "status 500")
    assert [each.down for each in pool.addresses(service)] == [False, True]
    known.remove("127.0.0.2")
    while len(pool.addresses(service)) == 2:  # noqa: ASYNC110  # there is no event to wait for
        await asyncio.sleep(0.01)
    number = len(second.requests)
    await asyncio.sleep(0.1)
    assert len(second.requests) <= number + 1
    checked.checks.stop()
    pool.close()
