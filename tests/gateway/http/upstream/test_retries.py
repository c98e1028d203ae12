"""Retried requests, to services that fail in different ways."""

import asyncio
from collections import Counter
from typing import NamedTuple

import pytest

from gateway.base.errors import FaultCode, FaultError
from gateway.http.upstream.pool import Pool
from gateway.http.upstream.service import Retries, RetryCause, Service, Target, Timeouts
from gateway.http.upstream.upstream import UpstreamRequest
from tests.gateway.kit import Scripted, StartUpstream
from tests.gateway.talk import OK, Reader, Writer

GET = UpstreamRequest("GET", "/", [])
PUT = UpstreamRequest("PUT", "/", [], body=b"twice is once")
POST = UpstreamRequest("POST", "/", [], body=b"twice is two")
BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy"


async def reset(scripted: Scripted, reader: Reader, writer: Writer) -> None:
    await scripted.take(reader)
    writer.transport.abort()


async def hang(scripted: Scripted, reader: Reader, writer: Writer) -> None:
    await scripted.take(reader)
    await asyncio.Event().wait()


class Outcome(NamedTuple):
    status: int | str
    body: bytes
    attempts: int


async def outcome(
    service: Service, request: UpstreamRequest, failing: Scripted, counted: Counter[tuple[str, ...]]
) -> Outcome:
    """Return the status or fault code, the body, and the number of failed requests."""
    pool = Pool(lambda *labels: counted.update([labels]), [])
    body = b""
    status: int | str
    try:
        response = await pool.send(service, request)
    except FaultError as error:
        status = error.fault.code.value
    else:
        status = response.status
        while piece := await response.read():
            body += piece
        response.abandon()
    assert all(each.in_flight == 0 for each in pool.addresses(service))
    pool.close()
    return Outcome(status, body, len(failing.requests))


@pytest.mark.parametrize(
    ("cause", "script", "failed"),
    [
        ("reset", reset, "upstream_unreachable"),
        ("timeout", hang, "upstream_timeout"),
        (503, BUSY, 503),
    ],
)
@pytest.mark.parametrize("request_", [GET, PUT, POST], ids=["GET", "PUT", "POST"])
@pytest.mark.parametrize("configured", [True, False])
async def test_a_failed_request_is_retried_elsewhere_if_that_is_configured_and_safe(
    upstream: StartUpstream,
    cause: RetryCause,
    script: object,
    failed: int | str,
    request_: UpstreamRequest,
    configured: bool,
) -> None:
    failing, well = await upstream(script), await upstream(OK)
    service = Service(
        "s",
        tuple(Target("127.0.0.1", each.port) for each in (well, failing)),
        timeouts=Timeouts(first_byte=0.5) if cause == "timeout" else Timeouts(),
        retries=Retries(on=("connect", cause) if configured else ("connect",)),
    )
    counted: Counter[tuple[str, ...]] = Counter()
    found = await outcome(service, request_, failing, counted)
    if configured and request_ is not POST:
        assert found == (200, b"ok", 1)
        assert counted["retries", "s", str(cause)] == 1
    else:
        assert found == (failed, b"busy" if failed == 503 else b"", 1)
        assert not counted


@pytest.mark.parametrize("attempts", [0, 1, 3])
async def test_a_single_target_is_tried_as_often_as_configured(
    upstream: StartUpstream, attempts: int
) -> None:
    failing = await upstream(BUSY)
    service = Service(
        "s", (Target("127.0.0.1", failing.port),), retries=Retries(attempts=attempts, on=(503,))
    )
    assert await outcome(service, GET, failing, Counter()) == (503, b"busy", 1 + attempts)


async def test_all_attempts_together_take_at_most_the_whole_time(upstream: StartUpstream) -> None:
    failing = await upstream(hang)
    service = Service(
        "s",
        (Target("127.0.0.1", failing.port),),
        timeouts=Timeouts(first_byte=0.5, whole=0.9),
        retries=Retries(attempts=3, on=("timeout",)),
    )
    assert await outcome(service, GET, failing, Counter()) == ("upstream_timeout", b"", 2)


async def test_the_repeat_after_a_closed_kept_connection_gets_the_rest_of_the_whole_time(
    upstream: StartUpstream,
) -> None:
    async def slow(scripted: Scripted, reader: Reader, writer: Writer) -> None:
        await scripted.take(reader)
        if len(scripted.requests) == 1:
            writer.write(OK)
            await scripted.take(reader)
            await asyncio.sleep(0.4)  # before it closes the kept connection
        else:
            await asyncio.sleep(0.4)
            writer.write(OK)
        writer.close()

    service = Service(
        "s", (Target("127.0.0.1", (await upstream(slow)).port),), timeouts=Timeouts(whole=0.6)
    )
    pool = Pool(lambda *_: None, [])
    assert await (await pool.send(service, GET)).read() == b"ok"
    with pytest.raises(FaultError) as failed:
        await pool.send(service, GET)
    assert failed.value.fault.code is FaultCode.UPSTREAM_TIMEOUT
    pool.close()


async def test_retries_are_limited_by_their_budget(upstream: StartUpstream) -> None:
    """Ten retries are always possible; beyond that, a share of the requests may be retried."""
    failing = await upstream(BUSY)
    service = Service(
        "s",
        (Target("127.0.0.1", failing.port),),
        retries=Retries(attempts=1, on=(503,), budget=10.0),
    )
    pool = Pool(lambda *_: None, [])
    for _ in range(100):
        response = await pool.send(service, GET)
        while await response.read():
            pass
        response.abandon()
    assert len(failing.requests) in range(100 + 10 + 8, 100 + 10 + 11)
    pool.close()
