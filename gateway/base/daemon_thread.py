"""Calls in daemon threads, so that a call that never returns does not prevent the process exit."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


async def in_daemon_thread(call: Callable[[], T]) -> T:
    """Call a function in a new daemon thread, and return its result.

    `asyncio.to_thread` is unsuitable: it shares a small thread pool, and the process waits for its
    threads at exit. A BaseException such as SystemExit is raised as RuntimeError.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            settle = partial(future.set_result, call())
        except BaseException as error:
            if not isinstance(error, Exception) or isinstance(error, StopIteration):
                error = RuntimeError(f"it raises {type(error).__name__}")
            settle = partial(future.set_exception, error)
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(lambda: future.done() or settle())

    Thread(target=run, daemon=True).start()
    return await future
