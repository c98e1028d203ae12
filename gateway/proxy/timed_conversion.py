"""Threads for conversions that call Python functions with a time limit.

Each conversion runs in its own thread, in parallel with the event loop. Its Python functions run in
a process that the thread has reserved (see `base.function_process`). At the time limit, the process
is killed, and the thread ends at the next step of its conversion. A function that never ends
therefore blocks neither other requests nor the shutdown of the gateway. If the client disconnects
before the time limit, the process finishes its call and is reused, because the start of a process
takes longer than most functions.
"""

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Event, Thread
from typing import TypeVar

from gateway.base import function_process
from gateway.base.errors import FaultCode, FaultError, temporary_fault
from gateway.base.function_process import FunctionProcess, NoProcessError
from gateway.conversion.conversion_error import ConversionError
from gateway.http.cooperative import Step, until
from gateway.proxy.conversion_budget import overloaded

T = TypeVar("T")
# The maximum number of these threads, including threads that wait for a process.
_MOST = 16
_running: list[Thread] = []
_limits: "set[asyncio.Task[bytes]]" = set()


async def run(convert: Callable[[Step], bytes], seconds: float) -> bytes:
    """Call a function in a thread; raises ConversionError after `seconds`, or FaultError.

    The function must call its argument between its steps.
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
            _running.remove(thread)  # the thread stops waiting for a process, and ends soon
        raise
    finally:
        # The traceback of an error of the task refers to this frame. This reference cycle would
        # keep the body in memory until the next garbage collection.
        del limited


async def _limit(
    thread: Thread,
    abandoned: Event,
    began: "asyncio.Future[FunctionProcess | None]",
    future: "asyncio.Future[bytes]",
    seconds: float,
) -> bytes:
    process = None
    try:
        process = await began  # not limited: the start of a process can take longer
        async with asyncio.timeout(seconds):
            return await future
    except TimeoutError:
        raise _late(thread, seconds, process) from None
    finally:
        if not future.done() or future.cancelled():
            future.cancel()
            abandoned.set()
            function_process.kill_reserved(thread)
        del future


def run_now(convert: Callable[[], T], seconds: float | None) -> T:
    """Call a function, in a thread if `seconds` sets a time limit; raises ConversionError."""
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
        except Exception as error:  # raised again in the calling thread
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
        function_process.kill_reserved(thread)
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
    return FaultError(temporary_fault(FaultCode.OVERLOADED, detail), str(error))


def _settle(
    loop: asyncio.AbstractEventLoop, future: "asyncio.Future[T]", settle: Callable[[], None]
) -> None:
    def settle_once() -> None:
        if not future.done():
            settle()

    with suppress(RuntimeError):  # the event loop is closed
        loop.call_soon_threadsafe(settle_once)


def _where(thread: Thread) -> str:
    frame = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001  # there is no other way
    if frame is None:
        return "its end"
    return f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno}"
