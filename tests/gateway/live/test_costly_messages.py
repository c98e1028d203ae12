"""Messages crafted to be costly: their cost is linear in their size, and others are served."""

import asyncio
import gzip

import psutil
import pytest

from tests.gateway.kit import StartGateway, StartUpstream, rules
from tests.gateway.live.test_conversion_load import MANY, echo, post
from tests.gateway.live.test_memory import watch
from tests.gateway.live.test_slow_clients import CONVERT
from tests.gateway.talk import OK, ask, connect

pytestmark = pytest.mark.slow

FORM = b"application/x-www-form-urlencoded"
LINES, EVENTS = b"application/x-ndjson", b"text/event-stream"
GZIP = "Content-Encoding: gzip"
TOO_LARGE = (413, "body_too_large")


@pytest.mark.parametrize(
    ("content_type", "body", "fields", "expected"),
    [
        (FORM, b"a&" * 500_000, (), (204, "")),
        (FORM, gzip.compress(b"a&" * 2_000_000), (GZIP,), TOO_LARGE),
        (LINES, gzip.compress(b"\n" * 15_000_000), (GZIP,), TOO_LARGE),
        (EVENTS, b"a\n" * 2_000_000 + b"\n", (), (204, "")),
        (EVENTS, b"data\n" * 500_000 + b"\n", (), (204, "")),
    ],
    ids=["a name many times", "fields", "lines", "lines of an event", "data of an event"],
)
async def test_a_body_of_very_many_parts_takes_bounded_memory_and_time(
    gateway: StartGateway,
    upstream: StartUpstream,
    content_type: bytes,
    body: bytes,
    fields: tuple[str, ...],
    expected: tuple[int, str],
) -> None:
    """Earlier, a kilobyte took 1.4 GB, and one form blocked large conversions for minutes."""
    program = gateway(rules((await upstream(echo)).port, via=True, changes=CONVERT))
    named = f"Content-Type: {content_type.decode()}"
    async with connect(program) as client:
        with watch(program) as peak:
            length = f"Content-Length: {len(body)}"
            client.send(ask("POST /v1/person", named, length, *fields, body=body))
            answer = await client.answer()
        code = answer.body.partition(b'"code":"')[2].partition(b'"')[0].decode()
        assert (answer.status, code) == expected
    assert peak.rise < 128e6
    assert await post(program, MANY) == (204, "")


@pytest.mark.parametrize(
    ("value", "refused"), [(b"<" * 240_000, True), (b'</a>;title="' + b'\\"' * 120_000, False)]
)
async def test_a_very_long_link_field_takes_bounded_time(
    gateway: StartGateway, upstream: StartUpstream, value: bytes, refused: bool
) -> None:
    """Earlier, it blocked all requests for minutes.

    A field that may have too many links is refused.
    """
    scripted = await upstream(OK.replace(b"\r\n\r\n", b"\r\nLink: %b\r\n\r\n" % value))
    program = gateway(rules(scripted.port))
    answer = await asyncio.to_thread(program.raw, ask("GET /plain", "Connection: close"))
    assert answer.startswith(b"HTTP/1.1 502 " if refused else b"HTTP/1.1 200 OK\r\n")
    assert (b"\r\nLink: %b\r\n" % value in answer) != refused


async def test_connection_fields_with_many_options_take_bounded_time(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """Earlier, the cost was quadratic: 0.7 s for a response and 50 ms for a request."""
    firsts = range(0, 14_000, 7)
    lines = b"".join(
        b"Connection: %x,%x,%x,%x,%x,%x,%x\r\n" % tuple(range(first, first + 7)) for first in firsts
    )
    scripted = await upstream(OK.replace(b"\r\n\r\n", b"\r\n%b\r\n" % lines))
    program = gateway(rules(scripted.port))
    process = psutil.Process(program.process.pid)
    before = sum(process.cpu_times()[:2])
    answer = await asyncio.to_thread(program.raw, ask("GET /plain", "Connection: close"))
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.count(b"\r\nConnection: ") == 1
    assert sum(process.cpu_times()[:2]) - before < 0.35


async def test_forwarding_fields_are_not_cached(
    gateway: StartGateway, upstream: StartUpstream
) -> None:
    """Earlier, fields that a trusted proxy forwards for clients took 120 MB permanently."""
    trusted = "trusted_proxies: [127.0.0.1/32]\n"
    program = gateway(rules((await upstream(echo)).port) + trusted)
    async with connect(program) as client:
        with watch(program) as peak:
            for number in range(1100):
                client.send(ask("GET /plain", f"X-Forwarded-For: {number}{',a' * 30_000}"))
                assert (await client.answer()).status == 204
    assert peak.rise < 40e6


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("GET /accept", f"Accept: {'a/b,' * 16_000}"),
        ("GET /plain", f"X-Forwarded-For: {','.join(map(str, range(11_000)))}"),
        ("GET /plain", f"Forwarded: {','.join(f'for={number}' for number in range(6000))}"),
        (f"GET /param?{'%61&' * 15_000}version=2", "X: y"),
    ],
    ids=["Accept", "X-Forwarded-For", "Forwarded", "query"],
)
async def test_long_lists_in_a_head_cost_little_time(
    gateway: StartGateway, upstream: StartUpstream, line: str, field: str
) -> None:
    """Earlier, each blocked all requests: for 60 ms, proxy fields for 70 ms, a query for 30 ms."""
    more = "trusted_proxies: [127.0.0.1/32]\nclients: { by: [ { address: {} } ] }\n"
    more += "limits: { target: 65536 }\n"
    program = gateway(rules((await upstream(OK)).port) + more)
    process = psutil.Process(program.process.pid)
    async with connect(program) as client:
        before = sum(process.cpu_times()[:2])
        for _ in range(30):
            client.send(ask(line, field))
            assert (await client.answer()).status in (200, 406)
        assert sum(process.cpu_times()[:2]) - before < 0.6
