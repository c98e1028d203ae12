"""The thread for conversions: one after the other, and none that nobody waits for."""

import asyncio
from collections.abc import Callable
from threading import Event

import pytest

from gateway.core.errors import FaultError
from gateway.proxy.body import body_conversion, conversion_thread
from gateway.proxy.body.body_format import described
from gateway.proxy.bounds.conversion_room import ConversionRoom
from gateway.proxy.shadow.replay import CapturedAnswer
from gateway.proxy.turns.thread_pace import AbandonedError, Step
from tests.gateway.proxy.body.formats.rules import conversion


async def test_a_conversion_that_is_cancelled_stops() -> None:
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

    running = asyncio.create_task(conversion_thread.run(convert))
    await began.wait()
    never = asyncio.create_task(conversion_thread.run(lambda _: pytest.fail("it was cancelled")))
    await asyncio.sleep(0)
    never.cancel()
    running.cancel()
    assert await asyncio.to_thread(stopped.wait, 10)
    assert await conversion_thread.run(lambda _: b"next") == b"next"
    assert running.cancelled()
    assert never.cancelled()


async def test_a_conversion_whose_turn_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion_thread, "PATIENCE", 0.01)
    release = Event()

    def convert(_: Step) -> bytes:
        release.wait(10)
        return b"late, and done"

    running = asyncio.create_task(conversion_thread.run(convert))
    await asyncio.sleep(0)
    with pytest.raises(FaultError, match="overloaded"):
        await conversion_thread.run(lambda _: b"")
    release.set()
    assert await running == b"late, and done"


async def test_an_error_is_passed_on() -> None:
    def convert(_: Step) -> bytes:
        raise ValueError("no JSON")

    with pytest.raises(ValueError, match="no JSON"):
        await conversion_thread.run(convert)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list with the network of each conversion that the thread is given."""
    ran: list[str] = []
    run = conversion_thread.run

    async def note(convert: Callable[[Step], bytes], network: str = "") -> bytes:
        ran.append(network)
        return await run(convert, network)

    monkeypatch.setattr(conversion_thread, "run", note)
    return ran


@pytest.mark.parametrize(("halves", "beside"), [(2_000, False), (8_000, True)])
async def test_a_body_of_many_surrogates_is_converted_beside(
    halves: int, beside: bool, ran: list[str]
) -> None:
    body = b'{"title":"%b"}' % (rb"\ud800" * halves)
    room = ConversionRoom(1_000_000, 1_000)
    answer = CapturedAnswer(200, [(b"Content-Type", b"application/json")], body)
    sent = await body_conversion.convert_request_body(
        body, described(answer.fields), conversion(), room
    )
    assert rb"\ud800" * halves in sent
    received = await body_conversion.convert_response_body(answer, conversion(), room)
    assert isinstance(received, bytes)
    assert rb"\ud800" * halves in received
    assert len(ran) == 2 * beside


@pytest.mark.parametrize(
    ("media_type", "line"), [("application/x-ndjson", b"\n"), ("text/event-stream", b"\r")]
)
@pytest.mark.parametrize(("lines", "beside"), [(500, False), (501, True)])
async def test_a_piece_of_many_lines_is_converted_beside(
    media_type: str, line: bytes, lines: int, beside: bool, ran: list[str]
) -> None:
    room = ConversionRoom(1_000_000, 1_000)
    answer = CapturedAnswer(200, [(b"Content-Type", media_type.encode())], line * lines)
    pieces = await body_conversion.convert_response_body(answer, conversion(), room)
    assert not isinstance(pieces, bytes)
    assert b"".join([piece async for piece in pieces]) == line * lines
    room.release()
    assert len(ran) == beside


async def test_a_thread_that_cannot_be_had_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As where the processes of a system are used up; the turn goes to the next."""
    thread = conversion_thread._thread

    def fail() -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(conversion_thread, "_thread", fail)
    with pytest.raises(RuntimeError, match="new thread"):
        await conversion_thread.run(lambda _: b"")
    monkeypatch.setattr(conversion_thread, "_thread", thread)
    assert await conversion_thread.run(lambda _: b"next") == b"next"
