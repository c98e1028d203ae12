"""The thread for conversions: one after the other, and none that nobody waits for."""

import asyncio
from threading import Event

import pytest

from gateway.core.errors import FaultError
from gateway.proxy.body import conversion_thread


async def test_a_conversion_that_is_cancelled_stops() -> None:
    began, stopped = asyncio.Event(), Event()
    loop = asyncio.get_running_loop()

    def convert(abandoned: Event) -> bytes:
        loop.call_soon_threadsafe(began.set)
        assert abandoned.wait(10)
        stopped.set()
        return b""

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
    monkeypatch.setattr(conversion_thread, "_PATIENCE", 0.01)
    release = Event()

    def convert(_: Event) -> bytes:
        release.wait(10)
        return b"late, and done"

    running = asyncio.create_task(conversion_thread.run(convert))
    await asyncio.sleep(0)
    with pytest.raises(FaultError, match="overloaded"):
        await conversion_thread.run(lambda _: b"")
    release.set()
    assert await running == b"late, and done"


async def test_an_error_is_passed_on() -> None:
    def convert(_: Event) -> bytes:
        raise ValueError("no JSON")

    with pytest.raises(ValueError, match="no JSON"):
        await conversion_thread.run(convert)
