"""Host names with several addresses that change, over real sockets."""

import asyncio
import math
import socket
import ssl
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial

import aiodns
import pytest

from gateway.base.errors import FaultCode, FaultError
from gateway.http.upstream import resolver
from gateway.http.upstream.health_checks import HealthChecks
from gateway.http.upstream.pool import Pool
from gateway.http.upstream.resolver import Resolution, ResolveError, needs_no_lookup, resolve
from gateway.http.upstream.service import Ejection, Health, Retries, Service, Target, Timeouts
from gateway.http.upstream.upstream import UpstreamRequest
from tests.gateway.dns import name_server
from tests.gateway.http.upstream.test_health_checks import start
from tests.gateway.kit import Scripted, StartUpstream, on_one_port
from tests.gateway.talk import OK, Reader, Writer

GET = UpstreamRequest("GET", "/", [])
POST = UpstreamRequest("POST", "/", [], body=b"once")


class Names:
    """A fake DNS with a time to live of one second; `addresses` None makes lookups fail."""

    def __init__(self, *addresses: str) -> None:
        self.addresses: tuple[str, ...] | None = addresses
        self.looked_up = 0
        self.failures: list[tuple[str, str | None]] = []
        self.counted: Counter[tuple[str, ...]] = Counter()
        self.pool = Pool(
            lambda *labels: self.counted.update([labels]),
            [],
            lambda *failure: self.failures.append(failure),
            self._look_up,
        )

    async def _look_up(self, host: str) -> Resolution:
        self.looked_up += 1
        if self.addresses is None:
            raise ResolveError(f"{host}: not known")
        return Resolution(self.addresses, 1.0)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not true():  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0.01)


async def get(pool: Pool, service: Service, request: UpstreamRequest = GET) -> int:
    response = await pool.send(service, request)
    while await response.read():
        pass
    response.abandon()
    return response.status


@pytest.fixture
async def three(upstream: StartUpstream) -> dict[str, Scripted]:
    return await on_one_port(upstream, dict.fromkeys(("127.0.0.1", "127.0.0.2", "127.0.0.3"), OK))


def named(three: dict[str, Scripted], **more: float) -> Service:
    return Service("s", (Target("orders.test", three["127.0.0.1"].port),), **more)  # type: ignore[arg-type]


async def test_each_address_gets_its_share_of_the_requests(three: dict[str, Scripted]) -> None:
    names, service = Names(*three), named(three)
    begin = time.monotonic()
    for _ in range(300):
        assert await get(names.pool, service) == 200
    assert [len(each.requests) for each in three.values()] == [100, 100, 100]
    assert names.looked_up <= 2 + time.monotonic() - begin  # addresses are valid for one second
    names.pool.close()


async def test_an_added_address_is_used_and_a_removed_one_is_not(
    three: dict[str, Scripted],
) -> None:
    names, service = Names("127.0.0.1", "127.0.0.2"), named(three)
    for _ in range(10):
        await get(names.pool, service)
    names.addresses = ("127.0.0.2", "127.0.0.3")
    async with asyncio.timeout(20):
        while not three["127.0.0.3"].requests:
            await get(names.pool, service)
    number = len(three["127.0.0.1"].requests)
    for _ in range(10):
        await get(names.pool, service)
    assert len(three["127.0.0.1"].requests) == number
    names.pool.close()


async def test_a_request_to_a_removed_address_is_completed(
    upstream: StartUpstream, three: dict[str, Scripted]
) -> None:
    release = asyncio.Event()

    async def slow(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        await release.wait()
        writer.write(OK)
        await scripted.take(reader)  # no request follows: the connection ends

    old = await upstream(slow, host="127.0.0.4", port=three["127.0.0.1"].port)
    names, service = Names("127.0.0.4"), named(three)
    request = asyncio.create_task(get(names.pool, service))
    await until(lambda: bool(old.requests))
    names.addresses = ("127.0.0.1",)
    await until(lambda: names.pool.addresses(service)[0].host == "127.0.0.1")
    release.set()
    assert await request == 200
    assert await get(names.pool, service) == 200
    assert (len(old.requests), len(three["127.0.0.1"].requests)) == (1, 1)
    names.pool.close()


@pytest.mark.parametrize("request_", [GET, POST], ids=["GET", "POST"])
async def test_an_unreachable_address_makes_no_request_fail(
    three: dict[str, Scripted], request_: UpstreamRequest
) -> None:
    names, service = Names("127.0.0.9", *three), named(three)
    begin = time.monotonic()
    assert {await get(names.pool, service, request_) for _ in range(100)} == {200}
    trials = (time.monotonic() - begin) / 5  # an ejection lasts at least 5 s
    assert 1 <= names.counted["retries", "s", "connect"] <= 5 + trials
    names.pool.close()


@pytest.mark.parametrize("request_", [GET, POST], ids=["GET", "POST"])
async def test_several_dead_addresses_cost_no_request(
    three: dict[str, Scripted], request_: UpstreamRequest
) -> None:
    """A service is scaled down, for example. Requests that were not sent use no retry budget."""
    dead = [f"127.0.0.{number}" for number in range(10, 20)]
    names, service = Names(*dead, "127.0.0.1"), named(three)
    for _ in range(20):
        found = await asyncio.gather(*(get(names.pool, service, request_) for _ in range(4)))
        assert found == [200] * 4
    assert names.counted["retries", "s", "connect"] > 10
    names.pool.close()


@contextmanager
def full_backlog(host: str, port: int) -> Iterator[None]:
    """Listen without accepting, so that opening further connections takes forever."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(0)
        for _ in range(3):
            end = stack.enter_context(socket.socket())
            end.setblocking(False)
            end.connect_ex((host, port))
        yield


@pytest.mark.parametrize("request_", [GET, POST], ids=["GET", "POST"])
@pytest.mark.parametrize("reason", ["removed", "ejected", "down"])
async def test_a_request_leaves_an_address_that_goes_out_of_use_while_it_waits(
    upstream: StartUpstream, reason: str, request_: UpstreamRequest
) -> None:
    """The request goes to another address long before the connect timeout, and is not a retry."""
    good, names = await upstream(OK), Names("127.0.0.9")
    target, none = Target("orders.test", good.port), Retries(attempts=0)
    service = Service("s", (target,), timeouts=Timeouts(connect=60), retries=none)
    checks = HealthChecks(names.pool, lambda *_: None, start)
    with full_backlog("127.0.0.9", good.port):
        waiting = [asyncio.create_task(get(names.pool, service, request_)) for _ in range(20)]
        await until(lambda: names.pool.addresses(service)[:1] != ())
        (full,) = names.pool.addresses(service)
        await until(lambda: full.in_flight == 20)
        names.addresses = ("127.0.0.1",) if reason == "removed" else ("127.0.0.9", "127.0.0.1")
        await until(lambda: names.pool.addresses(service)[-1] is not full)
        if reason == "down":
            health = Health("/", interval=0.05, timeout=1, down_after=1)
            checks.follow([replace(service, health=health)])
        elif reason == "ejected":
            hurried = replace(service, timeouts=Timeouts(connect=0.05), ejection=Ejection(1))
            names.pool.addresses(hurried)[
                -1
            ].in_flight = 100  # makes the pool select the full address
            with pytest.raises(FaultError):
                await names.pool.send(hurried, GET)
        assert await asyncio.gather(*waiting) == [200] * 20
        assert full.in_flight == 0
    assert not names.counted["retries", "s", "connect"]
    checks.stop()
    names.pool.close()


@pytest.mark.parametrize(
    ("found", "used"),
    [(("127.0.0.8", "127.0.0.1", "127.0.0.9"), {"127.0.0.1"}), (("127.0.0.8",), {"127.0.0.8"})],
    ids=["dropped", "the only one"],
)
async def test_an_address_without_a_route_gets_no_requests_unless_no_other_is_found(
    three: dict[str, Scripted],
    monkeypatch: pytest.MonkeyPatch,
    found: tuple[str, ...],
    used: set[str],
) -> None:
    """A container without IPv6 has no route to the IPv6 addresses of a name, for example."""
    monkeypatch.setattr(resolver, "has_route", lambda address: address in three)
    names, service = Names(*found), named(three)
    with suppress(FaultError):
        await get(names.pool, service)
    assert {address.host for address in names.pool.addresses(service)} == used
    assert not names.counted
    names.pool.close()


def test_addresses_of_a_missing_family_have_no_route() -> None:
    assert resolver.has_route("127.0.0.1")
    code = "from gateway.http.upstream.resolver import has_route as r; print(r('2001:db8::1'))"
    command = ["unshare", "--user", "--net", sys.executable, "-c", code]
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    if ran.returncode:
        pytest.skip("needs the right to make a network namespace")
    assert ran.stdout == "False\n"


async def test_the_second_name_server_is_used_if_the_first_one_does_not_respond(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first attempt of c-ares takes 2 s, unless resolv.conf has another value."""
    async with name_server(monkeypatch) as server:
        server.addresses["orders.test"] = ("127.0.0.1",)
        port = server.port
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
            silent.bind(("127.0.0.2", port))
            made = partial(aiodns.DNSResolver, nameservers=["127.0.0.2", "127.0.0.1"])
            monkeypatch.setattr(aiodns, "DNSResolver", made)
            assert (await resolve("orders.test")).addresses == ("127.0.0.1",)
            assert silent.recv(512)


async def test_the_last_address_is_used_although_it_was_ejected(three: dict[str, Scripted]) -> None:
    """The address was ejected in favour of another one, which DNS has removed since."""
    names, service = Names("127.0.0.1", "127.0.0.2"), named(three)
    await get(names.pool, service)
    ejected = next(each for each in names.pool.addresses(service) if each.host == "127.0.0.2")
    ejected.failures, ejected.ejected_until = 5, math.inf
    names.addresses = ("127.0.0.2",)
    await until(lambda: names.pool.addresses(service) == (ejected,))
    assert await get(names.pool, service) == 200
    names.pool.close()


async def test_addresses_stay_in_use_while_lookups_fail(three: dict[str, Scripted]) -> None:
    names, service = Names("127.0.0.1"), named(three)
    await get(names.pool, service)
    names.addresses = None
    await until(lambda: bool(names.failures))
    assert await get(names.pool, service) == 200
    assert names.failures == [("orders.test", "orders.test: not known")]
    names.pool.close()


async def test_an_unknown_host_name_makes_the_service_unreachable(
    three: dict[str, Scripted],
) -> None:
    names, service = Names(), named(three)
    names.addresses = None
    with pytest.raises(FaultError) as failed:
        await names.pool.send(service, GET)
    assert failed.value.fault.code is FaultCode.UPSTREAM_UNREACHABLE
    port = three["127.0.0.1"].port
    assert failed.value.cause == f"orders.test:{port}: orders.test: not known"
    assert names.pool.unresolved(service.targets[0]) == "orders.test: not known"
    names.addresses = ("127.0.0.1",)
    await until(lambda: not names.pool.unresolved(service.targets[0]))
    assert await get(names.pool, service) == 200
    names.pool.close()


async def test_a_hanging_lookup_ends_with_the_connect_timeout() -> None:
    async def hang(_: str) -> Resolution:
        await asyncio.Event().wait()
        raise AssertionError

    pool = Pool(lambda *_: None, [], lookup=hang)
    service = Service("s", (Target("orders.test", 1),), timeouts=Timeouts(connect=0.05))
    with pytest.raises(FaultError) as failed:
        await pool.send(service, GET)
    assert failed.value.fault.code is FaultCode.UPSTREAM_TIMEOUT
    pool.close()


async def test_a_request_waits_only_for_the_first_name_that_has_an_address(
    three: dict[str, Scripted],
) -> None:
    async def look_up(host: str) -> Resolution:
        if host == "hangs.test":
            await asyncio.Event().wait()
        return Resolution(("127.0.0.1",), 1.0)

    port = three["127.0.0.1"].port
    pool = Pool(lambda *_: None, [], lookup=look_up)
    service = Service("s", (Target("hangs.test", port), Target("orders.test", port)))
    assert await get(pool, service) == 200
    pool.close()


async def test_an_address_keeps_its_health_if_the_client_certificate_changes() -> None:
    pool = Pool(lambda *_: None, [])
    targets = (Target("127.0.0.1", 1, secure=True), Target("127.0.0.2", 1, secure=True))
    contexts = [ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) for _ in range(2)]
    first, second = (
        Service("s", targets, tls=context, health=Health("/ready")) for context in contexts
    )
    before = pool.addresses(first)
    before[0].down, before[1].ejected_until = True, math.inf
    assert pool.addresses(second) == before
    assert [address.connections.tls for address in before] == [contexts[1]] * 2
    pool.close()


@pytest.mark.parametrize(("seconds", "connections"), [(600.0, 1), (0.000001, 4)])
async def test_a_connection_is_not_used_beyond_its_maximum_age(
    three: dict[str, Scripted], seconds: float, connections: int
) -> None:
    names, service = Names("127.0.0.1"), named(three, connection_seconds=seconds)
    for _ in range(4):
        await get(names.pool, service)
    assert three["127.0.0.1"].connections == connections
    names.pool.close()


async def test_addresses_of_a_removed_host_name_are_dropped(
    upstream: StartUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Known addresses stay in use while the name server fails; without any, requests fail."""
    scripted, failures = await upstream(OK), []
    async with name_server(monkeypatch) as server:
        server.addresses["orders.test"] = ("127.0.0.1",)
        pool = Pool(lambda *_: None, [], lambda *failure: failures.append(failure))
        target = Target("orders.test", scripted.port)
        service = Service("s", (target,), resolve_seconds=0.05)
        assert await get(pool, service) == 200
        server.failing = True
        await until(lambda: len(failures) == 1)
        looked_up = len(server.queries)
        await until(lambda: len(server.queries) > looked_up + 8)  # 4 lookups for A and AAAA
        assert await get(pool, service) == 200
        server.failing = False
        del server.addresses["orders.test"]
        await until(lambda: not pool.addresses(service))
        for _ in range(3):
            with pytest.raises(FaultError) as failed:
                await pool.send(service, GET)
            assert failed.value.fault.code is FaultCode.UPSTREAM_UNREACHABLE
            assert failed.value.cause.endswith(": orders.test: not found by the system")
        server.addresses["orders.test"] = ("127.0.0.1",)
        await until(lambda: bool(pool.addresses(service)))
        assert await get(pool, service) == 200
        pool.close()


class Load:
    def __init__(self, pool: Pool, service: Service) -> None:
        self.pool, self.service = pool, service
        self.statuses: Counter[int] = Counter()
        self.over = False

    async def __aenter__(self) -> "Load":
        self._clients = [asyncio.create_task(self._send()) for _ in range(8)]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.over = True
        await asyncio.gather(*self._clients)
        self.pool.close()

    async def _send(self) -> None:
        while not self.over:
            self.statuses[await get(self.pool, self.service)] += 1

    async def shares(self, services: list[Scripted], requests: int = 500) -> list[float]:
        before, total = [len(each.requests) for each in services], self.statuses.total()
        await until(lambda: self.statuses.total() >= total + requests)
        found = [len(each.requests) - old for each, old in zip(services, before, strict=True)]
        return [each / sum(found) for each in found]


async def test_addresses_get_equal_shares_while_they_come_and_go_under_load(
    upstream: StartUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await upstream(OK)
    hosts = [f"127.0.0.{number}" for number in range(1, 6)]
    services = [first] + [await upstream(OK, host=host, port=first.port) for host in hosts[1:]]
    async with name_server(monkeypatch) as server:
        server.addresses["orders.test"] = (*hosts[:2],)
        service = Service("s", (Target("orders.test", first.port),), resolve_seconds=0.2)
        async with Load(Pool(lambda *_: None, []), service) as load:
            assert await load.shares(services[:2]) == pytest.approx([0.5] * 2, abs=0.05 / 2)
            server.addresses["orders.test"] = (*hosts,)
            await until(lambda: all(each.requests for each in services))
            assert await load.shares(services) == pytest.approx([0.2] * 5, abs=0.05 / 5)
            server.addresses["orders.test"] = (*hosts[2:], "127.0.0.99")  # nothing listens there
            await until(lambda: len(load.pool.addresses(service)) == 4)
            await load.shares(services)  # requests in flight end
            removed = [len(each.requests) for each in services[:2]]
            assert await load.shares(services[2:]) == pytest.approx([1 / 3] * 3, abs=0.05 / 3)
            assert [len(each.requests) for each in services[:2]] == removed
    assert {*load.statuses} == {200}


async def test_a_name_may_have_addresses_of_both_families_and_need_a_search_domain(
    upstream: StartUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await upstream(OK)
    services = [first, await upstream(OK, host="::1", port=first.port)]
    async with name_server(monkeypatch, "none.test", "shop.test") as server:
        server.addresses["orders.shop.test"] = ("127.0.0.1", "::1")
        service = Service("s", (Target("orders", first.port),))
        async with Load(Pool(lambda *_: None, []), service) as load:
            assert await load.shares(services, 200) == pytest.approx([0.5] * 2, abs=0.05 / 2)
    assert {*load.statuses} == {200}


async def test_a_response_contains_the_address_if_the_target_is_a_host_name(
    three: dict[str, Scripted],
) -> None:
    names = Names("127.0.0.2")
    for service, address in (
        (named(three), "127.0.0.2"),
        (Service("t", (Target("127.0.0.1", three["127.0.0.1"].port),)), None),
    ):
        response = await names.pool.send(service, GET)
        assert (response.target, response.address) == (service.targets[0].authority, address)
        response.abandon()
    names.pool.close()


SEARCH = ("shop.svc.cluster.local", "svc.cluster.local", "cluster.local")
"""The search domains of a pod in the namespace `shop`; Kubernetes sets ndots to 5."""


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("orders", "orders.shop.svc.cluster.local"),
        ("orders.shop", "orders.shop.svc.cluster.local"),
        ("orders.shop.svc.cluster.local", "orders.shop.svc.cluster.local"),
        ("orders.shop.svc.cluster.local.", "orders.shop.svc.cluster.local"),
        ("shop-orders-1.example.com", "shop-orders-1.example.com"),
    ],
)
async def test_requests_follow_the_pods_of_a_headless_service(
    host: str, found: str, three: dict[str, Scripted], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, other = three
    target = Target(host, three[one].port)
    service = Service("s", (target,), resolve_seconds=0.02)

    def addresses(pool: Pool) -> set[str]:
        return {each.host for each in pool.addresses(service)}

    async with name_server(monkeypatch, *SEARCH, ndots=5) as server:
        server.addresses[found] = (one,)
        pool = Pool(lambda *_: None, [])
        assert await get(pool, service) == 200
        server.addresses[found] = (one, two, other)
        await until(lambda: addresses(pool) == {*three})
        for _ in range(30):
            assert await get(pool, service) == 200
        requests = Counter({each: len(scripted.requests) for each, scripted in three.items()})
        assert min(requests.values()) >= 9
        server.addresses[found] = (two, other)
        await until(lambda: addresses(pool) == {two, other})
        for _ in range(10):
            assert await get(pool, service) == 200
        assert len(three[one].requests) == requests[one]
        pool.close()


async def test_an_absolute_host_name_is_looked_up_without_search_domains(
    three: dict[str, Scripted], monkeypatch: pytest.MonkeyPatch
) -> None:
    """This saves four lookups per interval, as ndots is 5 in Kubernetes."""
    async with name_server(monkeypatch, *SEARCH, ndots=5) as server:
        name = "orders.shop.svc.cluster.local"
        server.addresses[name] = ("127.0.0.1",)
        pool = Pool(lambda *_: None, [])
        assert await get(pool, Service("s", (Target(f"{name}.", three["127.0.0.1"].port),))) == 200
        assert {*server.queries} == {name}
        pool.close()


async def test_the_hosts_file_is_used() -> None:
    assert "127.0.0.1" in (await resolve("localhost")).addresses
    with pytest.raises(ResolveError, match=r"^no-such-host\.invalid: "):
        await resolve("no-such-host.invalid")


@pytest.mark.parametrize(
    ("host", "literal"),
    [("10.0.0.1", True), ("::1", True), ("localhost", True), ("orders", False), ("10.0.0", False)],
)
def test_addresses_and_localhost_need_no_lookup(host: str, literal: bool) -> None:
    assert needs_no_lookup(host) is literal
