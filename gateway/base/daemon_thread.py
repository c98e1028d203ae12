"""Calls in threads of their own: one that never returns does not keep the process from ending."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


async def in_daemon_thread(call: Callable[[], T]) -> T:
    """Return what a function returns, called in a thread of its own.

    `asyncio.to_thread` has few threads, which others wait for, and the process for them.

    Raises:
        RuntimeError: the function raised what is no Exception, such as SystemExit. What else it
            raises is raised as it is.
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
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(lambda: future.done() or settle())

    Thread(target=run, daemon=True).start()
    return await future
