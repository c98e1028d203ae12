"""The connections to a target, and requests that wait for one."""

import asyncio
import errno
from collections.abc import Callable
from socket import EAI_NONAME, gaierror
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.base.errors import Blame, FaultCode, FaultError
from gateway.http.transport import WriteBatch
from gateway.http.upstream import target_connections
from gateway.http.upstream.connection import StreamedResponse
from gateway.http.upstream.service import Service as BackendService
from gateway.http.upstream.service import Target, Timeouts
from gateway.http.upstream.target_connections import ConnectError, TargetConnections
from gateway.http.upstream.upstream import UpstreamRequest
from tests.gateway.proxy.wires import Wire

GET = UpstreamRequest("GET", "/", [])
POST = UpstreamRequest("POST", "/", [], body=b"")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Service:
    """A service whose connections open, and whose responses arrive, when the test says so."""

    def __init__(self, timeouts: Timeouts | None = None) -> None:
        self.asked: list[asyncio.Future[None]] = []
        self.wires: list[Wire] = []
        self.timeouts = timeouts or Timeouts()
        self.crowded = 0
        writes: WriteBatch = []
        self.reasons: list[str] = []
        target, exhausted = Target("service", 1), self.reasons.append
        self.connections = TargetConnections(
            BackendService("s", (target,)), target, "service", self._count, exhausted, writes
        )
        asyncio.get_running_loop().create_connection = self._connect  # type: ignore[method-assign, assignment]

    def _count(self) -> None:
        self.crowded += 1

    async def _connect(
        self, factory: Callable[[], Any], host: str, port: int
    ) -> tuple[Wire, asyncio.Protocol]:
        allowed = asyncio.get_running_loop().create_future()
        self.asked.append(allowed)
        await allowed
        wire = Wire(lambda _: None)
        wire.protocol = factory()
        wire.protocol.connection_made(wire)
        self.wires.append(wire)
        return wire, wire.protocol

    def send(self, request: UpstreamRequest = GET) -> asyncio.Task[StreamedResponse]:
        return asyncio.create_task(self.connections.send(request, self.timeouts))

    def open(self, error: Exception | None = None) -> None:
        """Complete the oldest pending connection attempt, or make it fail."""
        allowed = self.asked.pop(0)
        if error is None:
            allowed.set_result(None)
        else:
            allowed.set_exception(error)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_an_idle_connection_is_reused() -> None:
    service = Service()
    for number in range(3):
        response = service.send()
        await settle()
        if not number:
            service.open()
            await settle()
        service.wires[0].protocol.data_received(OK)
        assert (await response).status == 200
    assert (len(service.wires), service.asked) == (1, [])


async def test_a_waiting_request_takes_the_first_idle_connection() -> None:
    """A connection released by another request may be idle before the new one is open."""
    service = Service()
    first = service.send()
    await settle()
    service.open()
    await settle()
    second = service.send()
    await settle()
    assert len(service.asked) == 1
    service.wires[0].protocol.data_received(OK)
    await settle()
    service.wires[0].protocol.data_received(OK)
    assert ((await first).status, (await second).status) == (200, 200)
    service.open()  # it stays open for the next request
    await settle()
    third = service.send()
    await settle()
    service.wires[1].protocol.data_received(OK)
    assert (await third).status == 200
    assert service.asked == []


async def test_a_burst_opens_a_limited_number_of_connections_at_a_time() -> None:
    service = Service(Timeouts(connect=60))
    responses = [service.send() for _ in range(40)]
    await settle()
    assert len(service.asked) == 16
    assert service.crowded == 40 - 16
    service.open()
    await settle()
    assert len(service.asked) == 16
    while service.asked:
        service.open()
        await settle()
    assert len(service.wires) == 40
    for wire in service.wires:
        wire.protocol.data_received(OK)
    assert {response.status for response in await asyncio.gather(*responses)} == {200}


async def test_an_unreachable_service_makes_every_waiting_request_fail() -> None:
    service = Service()
    responses = [service.send() for _ in range(20)]
    await settle()
    while service.asked:
        service.open(ConnectionRefusedError(111, "refused"))
        await settle()
    for response in responses:
        with pytest.raises(ConnectError) as failed:
            await response
        assert failed.value.fault.code is FaultCode.UPSTREAM_UNREACHABLE
        assert failed.value.cause == "service:1: refused"


REFUSED = OSError("Multiple exceptions: [Errno 99] No address, [Errno 111] Refused")
NO_IPV6 = OSError("Multiple exceptions: [Errno 111] Refused, [Errno 99] No address")
NO_PORT = OSError("Multiple exceptions: [Errno 99] No address, [Errno 99] No address")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.EADDRNOTAVAIL, "No address"), "ports"),
        (OSError(errno.EMFILE, "Too many files"), "files"),
        (OSError(errno.ENFILE, "Too many files"), "files"),
        (OSError(errno.ENOBUFS, "No buffers"), "memory"),
        (OSError(errno.ENOMEM, "No memory"), "memory"),
        (PermissionError(errno.EPERM, "Not permitted"), None),
        (NO_PORT, "ports"),
        (REFUSED, None),
        (NO_IPV6, None),
        (OSError("What is this?"), None),
        (OSError(errno.EHOSTUNREACH, "No route"), None),
        (gaierror(EAI_NONAME, "Not known"), None),
    ],
)
async def test_a_local_error_is_not_blamed_on_the_target(
    error: OSError, reason: str | None
) -> None:
    service = Service()
    response = service.send()
    await settle()
    service.open(error)
    with pytest.raises(ConnectError) as failed:
        await response
    blamed = Blame.UPSTREAM if reason is None else Blame.GATEWAY
    assert failed.value.fault.blame is blamed
    assert failed.value.target == ("service:1" if reason is None else None)
    assert service.reasons == ([] if reason is None else [reason])


async def test_a_target_of_a_family_that_this_machine_lacks_is_blamed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """EADDRNOTAVAIL then does not mean that all ports are in use."""
    monkeypatch.setattr(target_connections, "has_route", lambda _: False)
    service = Service()
    response = service.send()
    await settle()
    service.open(OSError(errno.EADDRNOTAVAIL, "No address"))
    with pytest.raises(ConnectError) as failed:
        await response
    assert failed.value.fault.blame is Blame.UPSTREAM
    assert service.reasons == []


async def test_an_unexpected_error_ends_the_wait_for_a_connection() -> None:
    service = Service()
    response = service.send()
    await settle()
    service.open(ValueError("an invalid server name"))
    with pytest.raises(ValueError, match="an invalid server name"):
        await response


async def test_waiting_for_a_connection_ends_with_the_connect_timeout() -> None:
    service = Service(Timeouts(connect=0.02))
    responses = [service.send() for _ in range(20)]
    for response in responses:
        with pytest.raises(ConnectError) as failed:
            await response
        assert failed.value.fault.code is FaultCode.UPSTREAM_TIMEOUT
    await settle()
    assert not service.connections._waiting


@pytest.mark.parametrize("meanwhile", ["nothing", "opened", "refused"])
async def test_a_client_that_leaves_while_waiting_takes_no_connection(meanwhile: str) -> None:
    service = Service()
    response = service.send()
    await settle()
    if meanwhile == "opened":
        service.open()
    elif meanwhile == "refused":
        service.open(ConnectionRefusedError(111, "refused"))
    if meanwhile != "nothing":
        while not service.connections._waiting._networks[""][0].done():
            await asyncio.sleep(0)
            if not service.connections._waiting:
                break
    response.cancel()
    with pytest.raises(asyncio.CancelledError):
        await response
    if meanwhile == "nothing":
        service.open()
        await settle()
    if meanwhile != "refused":
        again = service.send()
        await settle()
        service.wires[0].protocol.data_received(OK)
        assert (await again).status == 200
    assert not service.asked
    assert not service.connections._waiting


@pytest.mark.parametrize("request_", [GET, POST], ids=["GET", "POST"])
async def test_a_closed_kept_connection_is_replaced_by_a_new_one_if_the_request_is_repeatable(
    request_: UpstreamRequest,
) -> None:
    """The replacement is never another kept connection."""
    service = Service()
    first = service.send()
    await settle()
    service.open()
    await settle()
    service.wires[0].protocol.data_received(OK)
    await first
    again = service.send(request_)
    await settle()
    service.wires[0].protocol.connection_lost(None)
    await settle()
    if request_ is POST:
        with pytest.raises(FaultError) as failed:
            await again
        assert failed.value.cause == "service:1: it closed a kept connection"
        return
    service.open()
    await settle()
    service.wires[1].protocol.data_received(OK)
    assert (await again).status == 200


async def test_a_request_that_was_not_sent_before_its_kept_connection_closed_is_sent_again() -> (
    None
):
    """The end of the connection arrives before the end of the turn, when requests are sent."""
    service = Service()
    first = service.send()
    await settle()
    service.open()
    await settle()
    service.wires[0].protocol.data_received(OK)
    await first
    sent = service.wires[0].data
    again = service.send(POST)
    await asyncio.sleep(0)
    service.wires[0].closing = True
    await settle()
    service.wires[0].protocol.connection_lost(None)
    await settle()
    service.open()
    await settle()
    service.wires[1].protocol.data_received(OK)
    assert (await again).status == 200
    assert (service.wires[0].data, b"POST" in service.wires[1].data) == (sent, True)


async def test_a_connection_lost_before_its_request_is_sent_is_not_used() -> None:
    service = Service()
    first = service.send()
    await settle()
    service.open()
    await settle()
    second = service.send()
    await settle()
    service.wires[0].protocol.data_received(OK)  # frees the connection for the second request
    service.wires[0].protocol.connection_lost(None)
    assert (await first).status == 200
    service.open()
    await settle()
    service.wires[1].protocol.data_received(OK)
    assert (await second).status == 200


async def test_closing_cancels_pending_connection_attempts() -> None:
    service = Service()
    response = service.send()
    await settle()
    service.connections.close()
    await settle()
    assert not service.connections._opening
    response.cancel()


async def test_networks_take_turns() -> None:
    service = Service()
    many = [service.send(replace(GET, network=lambda: "a")) for _ in range(40)]
    one = service.send(replace(GET, network=lambda: "b"))
    await settle()
    for _ in range(2):
        service.open()
        await settle()
    service.wires[1].protocol.data_received(OK)
    assert (await one).status == 200
    service.connections.make_way("b")  # a request of "b" waits for a place at the service
    with pytest.raises(FaultError, match="overloaded"):
        await many[-1]
    for each in many:
        each.cancel()
    await asyncio.gather(*many, return_exceptions=True)
    service.connections.close()
    await settle()
