"""Threads for slow conversions: those that call Python functions with a time limit.

Each runs in a thread of its own, beside the event loop, so that one that never ends keeps neither
other requests waiting nor the process from stopping. Python cannot end a thread from outside: one
that is over its limit gets an exception, at its next step in Python code. A thread that waits in
other code, for a socket for instance, lives until that returns, and counts until then.
"""

import asyncio
import ctypes
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Event, Thread
from typing import TypeVar

from gateway.core.conversion.conversion_error import ConversionError
from gateway.proxy.bounds.conversion_budget import overloaded
from gateway.proxy.turns.thread_pace import Step, until

T = TypeVar("T")
# The number of such threads in one process. Python runs one at a time, so that more would help only
# functions that wait, which they are not meant to do.
_MOST = 16
_running: list[Thread] = []


async def run(convert: Callable[[Step], bytes], seconds: float) -> bytes:
    """Return what a function returns that is called in a thread.

    Args:
        convert: the function; it calls its argument between its steps.
        seconds: the longest time that it may take.

    Raises:
        ConversionError: it took longer.
        FaultError: too many such threads are running.
    """
    _running[:] = [thread for thread in _running if thread.is_alive()]
    if len(_running) >= _MOST:
        raise overloaded()
    loop = asyncio.get_running_loop()
    future: asyncio.Future[bytes] = loop.create_future()
    abandoned = Event()
    # A daemon thread does not keep the process from ending.
    thread = Thread(target=_call, args=(convert, until(abandoned), loop, future), daemon=True)
    thread.start()
    _running.append(thread)
    try:
        async with asyncio.timeout(seconds):
            return await future
    except TimeoutError:
        raise _late(thread, seconds) from None
    finally:
        if future.cancelled():  # by the time limit, or with the request
            abandoned.set()
            _interrupt(thread)
        del future  # or an error of it, which has this frame, would hold the body for long


def run_now(convert: Callable[[], T], seconds: float | None) -> T:
    """Return what a function returns, for commands: called in a thread if it has a time limit.

    Raises:
        ConversionError: it took longer.
    """
    if seconds is None:
        return convert()
    made: list[T] = []
    raised: list[Exception] = []

    def call() -> None:
        try:
            made.append(convert())
        except Exception as error:  # it is raised where it is waited for
            raised.append(error)

    thread = Thread(target=call, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        late = _late(thread, seconds)
        _interrupt(thread)
        raise late
    for error in raised:
        raise error
    return made[0]


def _late(thread: Thread, seconds: float) -> ConversionError:
    reason = f"the Python functions took longer than {seconds:g} s"
    return ConversionError(reason, cause=f"{reason}, at {_where(thread)}")


def _call(
    convert: Callable[[Step], bytes],
    step: Step,
    loop: asyncio.AbstractEventLoop,
    future: "asyncio.Future[bytes]",
) -> None:
    try:
        settle = partial(future.set_result, convert(step))
    except SystemExit:
        return  # it was interrupted, and nobody waits for it
    except Exception as error:
        settle = partial(future.set_exception, error)
    with suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(lambda: future.done() or settle())


def _interrupt(thread: Thread) -> None:
    """Raise SystemExit in a thread, at its next step in Python code."""
    assert thread.ident is not None  # it has begun
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
    )


def _where(thread: Thread) -> str:
    """Return the file and the line where a thread is."""
    frame = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001  # there is no other way
    if frame is None:
        return "its end"
    return f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno}"
