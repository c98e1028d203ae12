"""The threads that convert large bodies, in parallel with the event loop.

One thread converts light bodies, and one thread converts heavy bodies. A heavy body can take
seconds if the event loop is busy, and light bodies do not wait for it. Networks of clients take
turns at each thread. If one client sends many bodies, another client therefore waits for only one
of them. During a conversion, the event loop continues to run (see `GilThrottle`).

More threads would not be faster, because Python runs one thread at a time. Each thread would also
hold the elements of its body in memory.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import cache
from threading import Event
from typing import TypeVar

from gateway.http.bounds import FairLock
from gateway.http.cooperative import GilThrottle, Step
from gateway.proxy.conversion_budget import PATIENCE, overloaded

# The parameter of mallopt(3) for the size from which freed memory is returned to the system, and
# the initial value of this size in bytes.
_M_MMAP_THRESHOLD = -3
_LARGE = 128 * 1024
# The maximum seconds for which a heavy body waits. The conversion before it takes less time.
_HEAVY_PATIENCE = 4 * PATIENCE
_light_turns, _heavy_turns = FairLock(), FairLock()
_T = TypeVar("_T")


async def run(convert: Callable[[Step], _T], network: str = "", *, light: bool = False) -> _T:
    """Call a function in a thread, which cancellation stops; raises FaultError if others take long.

    The function must call its argument between its steps. `light` is for short ones.
    """
    turns, patience = (_light_turns, PATIENCE) if light else (_heavy_turns, _HEAVY_PATIENCE)
    try:
        async with asyncio.timeout(patience):
            await turns.take(network)
    except TimeoutError:
        raise overloaded() from None
    abandoned = Event()
    future = None
    try:
        pace = GilThrottle(asyncio.get_running_loop().call_soon_threadsafe, abandoned)
        future = _thread(light).submit(copy_context().run, _paced, convert, pace.step)
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        abandoned.set()
        raise
    finally:
        turns.end()
        # The traceback of an error of the future refers to this frame. This reference cycle would
        # keep the body in memory until the next garbage collection.
        del future


def _paced(convert: Callable[[Step], _T], step: Step) -> _T:
    converted = convert(step)
    step()  # some functions have no separate step
    return converted


@cache
def _thread(light: bool) -> ThreadPoolExecutor:
    _give_memory_back()
    return ThreadPoolExecutor(1, "light-conversion" if light else "conversion")


def _give_memory_back() -> None:
    """Make the C library return the memory of each freed large body to the system.

    The GNU C library returns freed blocks above a size threshold to the system. It raises the
    threshold to the size of freed blocks (mallopt(3), M_MMAP_THRESHOLD), and small objects then
    keep the memory of large bodies allocated. In the siege test, a worker used 212 to 284 MB, and
    137 to 224 MB with a fixed threshold. Other C libraries have neither the function nor the
    problem.
    """
    import ctypes  # takes 0.1 MB in each worker, so import it only for large bodies

    with suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)
