"""Calls in daemon threads: results and exceptions of any kind reach the caller."""

import asyncio
from threading import Event, current_thread

import pytest

from gateway.base.daemon_thread import in_daemon_thread


async def test_the_result_is_returned_from_a_daemon_thread() -> None:
    assert (await in_daemon_thread(current_thread)).daemon


@pytest.mark.parametrize("error", [ValueError("a mistake"), MemoryError(), TimeoutError()])
async def test_exceptions_are_raised_unchanged(error: Exception) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        await in_daemon_thread(fail)
    assert caught.value is error


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration])
async def test_a_base_exception_becomes_a_runtime_error(kind: type[BaseException]) -> None:
    def fail() -> None:
        raise kind

    with pytest.raises(RuntimeError, match=f"^it raises {kind.__name__}$"):
        await in_daemon_thread(fail)


async def test_a_late_result_is_ignored() -> None:
    go, done = Event(), Event()

    def late() -> None:
        go.wait()
        done.set()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await in_daemon_thread(late)
    go.set()
    assert await asyncio.to_thread(done.wait, 60)
    await asyncio.sleep(0.01)  # the event loop receives the result and ignores it
