"""The pipeline and its shadows, with an Upstream that creates responses in memory."""

import asyncio

import pytest

from gateway.base.errors import Fault, FaultCode, FaultError
from gateway.base.headers import HeaderFields
from gateway.http.bounds import SlowClients
from gateway.http.upstream.service import Service, Target
from gateway.http.upstream.upstream import NoRoomError, Upstream, UpstreamRequest, UpstreamResponse
from tests.gateway.proxy.wires import Gateway

RULES = """
services:
  old: { targets: ["http://127.0.0.1:1"] }
  new: { targets: ["http://127.0.0.1:2"] }
apis:
  person:
    upstream_path: /person
    endpoints: [ { path: "/v{version}/person", version: { in: path } } ]
    versions:
      "1": { service: old, shadow: { via: "2" } }
      "2": { service: new }
    conversions: [ { between: ["1", "2"], changes: [] } ]
"""
GET = b"GET /v1/person HTTP/1.1\r\nHost: a.test\r\n\r\n"


class Answered:
    reason = b""
    sized = complete = True
    switched = False
    holders: SlowClients | None = None

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.fields: HeaderFields = [(b"Content-Length", b"%d" % len(body))]
        self.target = "here"
        self.address: str | None = "10.0.0.1"
        self.trailers: HeaderFields = []
        self.pieces = [body]
        self.abandoned = 0

    async def read(self) -> bytes:
        return self.pieces.pop() if self.pieces else b""

    def unread(self, data: bytes) -> None:
        raise AssertionError

    async def write(self, data: bytes) -> None:
        raise AssertionError

    def release(self) -> None:
        raise AssertionError

    def abandon(self) -> None:
        self.abandoned += 1


class Directory:
    """An Upstream that creates responses in memory.

    Attributes:
        sent: For each request, the service, the target, and whether it was sent in the background.
        room: Whether there is spare capacity for background requests.
    """

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, bool]] = []
        self.answers: list[Answered] = []
        self.room = self.up = True
        self.down: set[Target] = set()
        self.probed = asyncio.Event()

    async def send(
        self, service: Service, request: UpstreamRequest, *, background: bool = False
    ) -> UpstreamResponse:
        if background and not self.room:
            raise NoRoomError(service.name)
        self.sent.append((service.name, request.target, background))
        return self._answer()

    def _answer(self) -> Answered:
        if not self.up:
            raise FaultError(Fault(FaultCode.UPSTREAM_UNREACHABLE, "Gone."), "it is gone")
        self.answers.append(Answered(200, b"ok"))
        return self.answers[-1]


@pytest.fixture
def directory() -> Directory:
    return Directory()


@pytest.fixture
async def gateway(directory: Directory) -> Gateway:
    upstream: Upstream = directory
    return Gateway(RULES, {}, upstream=upstream)


async def test_a_request_is_repeated_and_its_responses_are_compared(
    gateway: Gateway, directory: Directory
) -> None:
    answer = await gateway.ask(GET)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\nok")
    assert directory.sent == [
        ("old", "/person", False),
        ("new", "/person", True),
        ("old", "/person", True),
    ]
    assert gateway.counted == [
        ("compared", "person", "1"),
        ("operations_compared", "person", "1", "GET", "/v{version}/person"),
        ("latency", "person", "1"),
    ]
    assert [each.abandoned for each in directory.answers] == [1, 1, 1]
    (exchange,) = gateway.exchanges
    assert (exchange.status, exchange.bytes_sent) == (200, 2)
    assert (exchange.target, exchange.address) == ("here", "10.0.0.1")


async def test_a_shadow_is_shed_without_spare_capacity(
    gateway: Gateway, directory: Directory
) -> None:
    directory.room = False
    await gateway.ask(GET)
    assert directory.sent == [("old", "/person", False)]
    assert gateway.counted == [("shed", "person", "1", "capacity")]


async def test_a_shadow_is_not_planned_while_the_process_is_busy(
    gateway: Gateway, directory: Directory
) -> None:
    gateway.shadows.load._share, gateway.shadows.load._due = 0.0, float("inf")
    await gateway.ask(GET)
    await gateway.ask(GET)
    assert directory.sent == [("old", "/person", False)] * 2
    gateway.shadows.close()  # counts at once, otherwise within 0.1 s
    assert gateway.counted == [("shed", "person", "1", "load")] * 2
    exchange = gateway.exchanges[0]
    assert exchange.plan is not None
    assert exchange.plan.shadow is None


async def test_an_unreachable_service_gives_502_without_a_comparison(
    gateway: Gateway, directory: Directory
) -> None:
    directory.up = False
    assert (await gateway.ask(GET)).startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
    (exchange,) = gateway.exchanges
    assert (exchange.code, exchange.cause) == ("upstream_unreachable", "it is gone")
    assert gateway.counted == []
