"""Threads for slow conversions: those that call Python functions with a time limit.

Each runs in a thread of its own, beside the event loop, and its functions in a process that the
thread holds (see `base.function_process`). So one that never ends keeps neither other requests
waiting nor the gateway from stopping: at the time limit, the process is killed, and the thread gets
an exception at its next step in Python code. If the client leaves before, the process finishes its
call and is used again: to start another takes longer than most functions run.
"""

import asyncio
import ctypes
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Event, Thread
from typing import TypeVar

from gateway.base import function_process
from gateway.base.errors import Fault, FaultCode, FaultError
from gateway.base.function_process import FunctionProcess, NoProcessError
from gateway.conversion.conversion_error import ConversionError
from gateway.http.cooperative import Step, until
from gateway.proxy.conversion_budget import overloaded

T = TypeVar("T")
# The number of such threads in one process, with those that wait for a process of their functions.
_MOST = 16
_running: list[Thread] = []
_limits: "set[asyncio.Task[bytes]]" = set()


async def run(convert: Callable[[Step], bytes], seconds: float) -> bytes:
    """Return what a function returns that is called in a thread.

    Args:
        convert: the function; it calls its argument between its steps.
        seconds: the longest time that it may take.

    Raises:
        ConversionError: it took longer.
        FaultError: too many such threads are running, or their functions have no process.
    """
    _running[:] = [thread for thread in _running if thread.is_alive()]
    if len(_running) >= _MOST:
        raise overloaded()
    loop = asyncio.get_running_loop()
    future: asyncio.Future[bytes] = loop.create_future()
    began: asyncio.Future[FunctionProcess | None] = loop.create_future()
    abandoned = Event()
    # A daemon thread does not keep the process from ending.
    given = convert, abandoned, loop, began, future
    thread = Thread(target=_call, args=given, daemon=True)
    thread.start()
    _running.append(thread)
    limited = asyncio.create_task(_limit(thread, abandoned, began, future, seconds))
    _limits.add(limited)
    limited.add_done_callback(_limits.discard)
    try:
        return await asyncio.shield(limited)
    except asyncio.CancelledError:
        abandoned.set()
        function_process.wake()
        if not began.done() and thread in _running:
            _running.remove(thread)  # it ends once it need not wait for a process
        raise
    finally:
        del limited  # or an error of it, which has this frame, would hold the body for long


async def _limit(
    thread: Thread,
    abandoned: Event,
    began: "asyncio.Future[FunctionProcess | None]",
    future: "asyncio.Future[bytes]",
    seconds: float,
) -> bytes:
    """Return the result of a thread, and end the thread if it takes too long."""
    process = None
    try:
        process = await began  # to start one takes longer than many functions may
        async with asyncio.timeout(seconds):
            return await future
    except TimeoutError:
        raise _late(thread, seconds, process) from None
    finally:
        if not future.done() or future.cancelled():
            future.cancel()
            abandoned.set()
            _end(thread)
        del future


def run_now(convert: Callable[[], T], seconds: float | None) -> T:
    """Return what a function returns, for commands: called in a thread if it has a time limit.

    Raises:
        ConversionError: it took longer.
    """
    if seconds is None:
        return convert()
    made: list[T] = []
    raised: list[Exception] = []
    held: list[FunctionProcess] = []
    began = Event()

    def call() -> None:
        try:
            held.append(function_process.reserve())
            began.set()
            made.append(convert())
        except NoProcessError as error:
            raised.append(ConversionError(str(error)))
        except Exception as error:  # it is raised where it is waited for
            raised.append(error)
        finally:
            began.set()
            function_process.release()

    thread = Thread(target=call, daemon=True)
    thread.start()
    began.wait()
    thread.join(seconds)
    if thread.is_alive():
        late = _late(thread, seconds, *held)
        _end(thread)
        raise late
    for error in raised:
        raise error
    return made[0]


def _late(
    thread: Thread, seconds: float, process: FunctionProcess | None = None
) -> ConversionError:
    reason = f"the Python functions took longer than {seconds:g} s"
    called = "" if process is None else process.calling
    where = f"in {called}" if called else f"at {_where(thread)}"
    return ConversionError(reason, cause=f"{reason}, {where}")


def _call(
    convert: Callable[[Step], bytes],
    abandoned: Event,
    loop: asyncio.AbstractEventLoop,
    began: "asyncio.Future[FunctionProcess | None]",
    future: "asyncio.Future[bytes]",
) -> None:
    def begin(process: FunctionProcess | None) -> None:
        _settle(loop, began, partial(began.set_result, process))

    step = until(abandoned)
    try:
        begin(function_process.reserve(abandoned.is_set))
        step()
        settle = partial(future.set_result, convert(step))
    except SystemExit:
        return  # it was interrupted, and nobody waits for it
    except NoProcessError as error:
        settle = partial(future.set_exception, _no_process(error))
        begin(None)
    except Exception as error:
        settle = partial(future.set_exception, error)
    finally:
        function_process.release()
    _settle(loop, future, settle)


def _no_process(error: NoProcessError) -> FaultError:
    if error.is_busy:
        return FaultError(overloaded().fault, str(error))
    detail = "The Python functions of the conversion cannot be started; try again later."
    return FaultError(
        Fault(FaultCode.OVERLOADED, detail, fields=((b"Retry-After", b"1"),)), str(error)
    )


def _settle(
    loop: asyncio.AbstractEventLoop, future: "asyncio.Future[T]", settle: Callable[[], None]
) -> None:
    def settle_once() -> None:
        if not future.done():
            settle()

    with suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(settle_once)


def _end(thread: Thread) -> None:
    """End a thread and the call of its process."""
    if function_process.kill_reserved(thread):  # else it ends now
        _interrupt(thread)


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
