"""The threads for conversions: one conversion at a time in each, and cancellation."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from threading import Event

import pytest

from gateway.base.errors import FaultError
from gateway.conversion.formats.body_format import described, is_stream
from gateway.http.cooperative import AbandonedError, Step
from gateway.proxy import body_conversion, conversion_threads
from gateway.proxy.conversion_budget import ConversionShare
from gateway.proxy.replay import CapturedResponse
from tests.gateway.proxy.body.rules import conversion


async def test_a_cancelled_conversion_stops_and_frees_its_thread() -> None:
    began, stopped = asyncio.Event(), Event()
    loop = asyncio.get_running_loop()

    def convert(step: Step) -> bytes:
        loop.call_soon_threadsafe(began.set)
        try:
            while True:
                step()
        except AbandonedError:
            stopped.set()
            raise

    running = asyncio.create_task(conversion_threads.run(convert))
    await began.wait()
    never = asyncio.create_task(conversion_threads.run(lambda _: pytest.fail("it was cancelled")))
    await asyncio.sleep(0)
    never.cancel()
    running.cancel()
    assert await asyncio.to_thread(stopped.wait, 10)
    assert await conversion_threads.run(lambda _: b"next") == b"next"
    assert running.cancelled()
    assert never.cancelled()


@asynccontextmanager
async def under_way(*, light: bool = False) -> AsyncIterator[None]:
    release = Event()

    def convert(_: Step) -> bytes:
        release.wait(10)
        return b"late, and done"

    running = asyncio.create_task(conversion_threads.run(convert, light=light))
    await asyncio.sleep(0)
    try:
        yield
    finally:
        release.set()
    assert await running == b"late, and done"


@pytest.mark.parametrize(("light", "patience"), [(True, "PATIENCE"), (False, "_HEAVY_PATIENCE")])
async def test_a_conversion_that_waits_too_long_for_its_thread_is_refused(
    light: bool, patience: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversion_threads, patience, 0.01)
    async with under_way(light=light):
        with pytest.raises(FaultError, match="overloaded"):
            await conversion_threads.run(lambda _: b"", light=light)


@pytest.mark.parametrize(
    ("media_type", "codings", "body"),
    [
        (b"application/json", [], b"[%b{}]" % (b'{"a":1},' * 20_000)),
        (b"application/json", [b"gzip"], gzip.compress(b"[%b{}]" % (b'{"a":1},' * 20_000))),
        (b"application/json", [], b'{"a":"%b"}' % (b"x" * 1_000_000)),
        (b"application/x-ndjson", [], b"{}\n" * 40_000),
    ],
    ids=["objects", "coded", "a long text", "lines"],
)
async def test_a_light_body_does_not_wait_for_a_heavy_body(
    media_type: bytes, codings: list[bytes], body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversion_threads, "_HEAVY_PATIENCE", 0.01)
    async with under_way():
        assert await converted(media_type, codings, body)


@pytest.mark.parametrize(
    ("media_type", "codings", "body"),
    [
        (b"application/json", [], b"[%b{}]" % (b"{}," * 60_000)),
        (b"application/json", [b"gzip"], gzip.compress(b"[%b{}]" % (b"{}," * 60_000))),
        (b"application/json", [], b'{"a":"%b"}' % (b"x" * 1_100_000)),
        (b"application/x-ndjson", [], b"{}\n" * 100_000),
    ],
    ids=["objects", "coded", "a long text", "lines"],
)
async def test_heavy_bodies_are_converted_one_at_a_time(
    media_type: bytes, codings: list[bytes], body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await converted(media_type, codings, body)
    monkeypatch.setattr(conversion_threads, "_HEAVY_PATIENCE", 0.01)
    async with under_way():
        with pytest.raises(FaultError, match="overloaded"):
            await converted(media_type, codings, body)


async def converted(media_type: bytes, codings: list[bytes], body: bytes) -> bytes:
    room = ConversionShare(16 * 1024 * 1024, 1_000_000)
    fields = [(b"Content-Type", media_type), *((b"Content-Encoding", each) for each in codings)]
    kind = described(fields)
    try:
        if is_stream(kind):
            given = body, kind[0], conversion(), room, None
            return b"".join(
                [piece async for piece in body_conversion.convert_request_stream(*given)]
            )
        made = await body_conversion.convert_request_body(body, kind, conversion(), room)
        assert made is not None
        return made
    finally:
        room.release()


async def test_an_error_in_the_thread_is_raised_in_the_caller() -> None:
    def convert(_: Step) -> bytes:
        raise ValueError("no JSON")

    with pytest.raises(ValueError, match="no JSON"):
        await conversion_threads.run(convert)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    ran: list[str] = []
    run = conversion_threads.run

    async def note(
        convert: Callable[[Step], bytes], network: str = "", *, light: bool = False
    ) -> bytes:
        ran.append(network)
        return await run(convert, network, light=light)

    monkeypatch.setattr(conversion_threads, "run", note)
    return ran


@pytest.mark.parametrize(("halves", "beside"), [(2_000, False), (8_000, True)])
async def test_a_body_with_many_surrogates_is_converted_in_a_thread(
    halves: int, beside: bool, ran: list[str]
) -> None:
    body = b'{"title":"%b"}' % (rb"\ud800" * halves)
    room = ConversionShare(1_000_000, 1_000)
    answer = CapturedResponse(200, [(b"Content-Type", b"application/json")], body)
    sent = await body_conversion.convert_request_body(
        body, described(answer.fields), conversion(), room
    )
    assert sent is not None
    assert rb"\ud800" * halves in sent
    received, _ = await body_conversion.convert_response_body(answer, conversion(), room)
    assert isinstance(received, bytes)
    assert rb"\ud800" * halves in received
    assert len(ran) == 2 * beside


@pytest.mark.parametrize(
    ("media_type", "line"), [("application/x-ndjson", b"\n"), ("text/event-stream", b"\r")]
)
@pytest.mark.parametrize(("lines", "beside"), [(500, False), (501, True)])
async def test_a_piece_with_many_lines_is_converted_in_a_thread(
    media_type: str, line: bytes, lines: int, beside: bool, ran: list[str]
) -> None:
    room = ConversionShare(1_000_000, 1_000)
    answer = CapturedResponse(200, [(b"Content-Type", media_type.encode())], line * lines)
    pieces, _ = await body_conversion.convert_response_body(answer, conversion(), room)
    assert pieces is not None
    assert not isinstance(pieces, bytes)
    assert b"".join([piece async for piece in pieces]) == line * lines
    room.release()
    assert len(ran) == beside


async def test_a_thread_that_cannot_be_started_does_not_block_the_next_conversion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For example, the system may have too many processes. The next conversion then runs."""
    thread = conversion_threads._thread

    def fail(_: bool) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(conversion_threads, "_thread", fail)
    with pytest.raises(RuntimeError, match="new thread"):
        await conversion_threads.run(lambda _: b"")
    monkeypatch.setattr(conversion_threads, "_thread", thread)
    assert await conversion_threads.run(lambda _: b"next") == b"next"
