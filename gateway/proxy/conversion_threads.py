"""The threads for conversions: large bodies are converted beside the event loop.

One thread is for light bodies, so that none of them waits for a heavy one, which takes seconds
beside a busy loop; one is for heavy ones. Clients have turns at each, so that one that sends many
keeps no other waiting for more than one of them. And the event loop has its turns meanwhile (see
`GilThrottle`).

They would gain nothing from more threads, since Python runs one thread at a time; and each would
hold the elements of its body in memory.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from threading import Event
from typing import TypeVar

from gateway.http.bounds import FairLock
from gateway.http.cooperative import GilThrottle, Step
from gateway.proxy.conversion_budget import PATIENCE, overloaded

# What mallopt(3) calls the size from which memory is returned, and the size at a start, in bytes.
_M_MMAP_THRESHOLD = -3
_LARGE = 128 * 1024
# For how many seconds a heavy body waits: for longer than the one before it takes.
_HEAVY_PATIENCE = 4 * PATIENCE
_light_turns, _heavy_turns = FairLock(), FairLock()
_T = TypeVar("_T")


async def run(convert: Callable[[Step], _T], network: str = "", *, light: bool = False) -> _T:
    """Return what a function returns that is called in a thread; it stops if this is cancelled.

    Args:
        convert: the function; it calls its argument between its steps.
        network: the network of the client.
        light: whether it takes little time and memory.

    Raises:
        FaultError: the conversions before this one took too long.
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
        future = _thread(light).submit(_paced, convert, pace.step)
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        abandoned.set()
        raise
    finally:
        turns.end()
        # An error of the future has this frame in its traceback. Together they would hold the body
        # until the garbage collector comes by.
        del future


def _paced(convert: Callable[[Step], _T], step: Step) -> _T:
    converted = convert(step)
    step()  # the only one of some functions
    return converted


@cache
def _thread(light: bool) -> ThreadPoolExecutor:
    _give_memory_back()
    return ThreadPoolExecutor(1, "light-conversion" if light else "conversion")


def _give_memory_back() -> None:
    """Have the C library return the memory of each large body to the system when it is freed.

    The GNU C library raises the size from which it does so to that of what was freed last
    (mallopt(3), M_MMAP_THRESHOLD). Then small objects hold on to the memory of large bodies: the
    siege found 212 to 284 MB in a worker, and 137 to 224 MB with the size kept. Other C libraries
    lack both the function and the fault.
    """
    import ctypes  # 0.1 MB in each worker, which only large bodies need

    with suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)
