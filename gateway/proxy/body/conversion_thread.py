"""The thread for conversions: large bodies are converted beside the event loop, one at a time.

They would gain nothing from more threads, since Python runs one thread at a time; and each would
hold the elements of its body in memory.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from threading import Event
from typing import TYPE_CHECKING

from gateway.proxy.bounds.conversion_room import overloaded

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

# For how many seconds a conversion waits for those before it.
_PATIENCE = 5.0
# What mallopt(3) calls the size from which memory is returned, and the size at a start, in bytes.
_M_MMAP_THRESHOLD = -3
_LARGE = 128 * 1024


async def run(convert: Callable[[Event], bytes]) -> bytes:
    """Return what a function returns that is called in the thread; it stops if this is cancelled.

    Args:
        convert: the function; its argument is set when nobody waits for the result any more.

    Raises:
        FaultError: the conversions before this one took too long.
    """
    abandoned = Event()
    future = _thread().submit(convert, abandoned)
    late = False

    def give_up(waiting: "Future[bytes]") -> None:
        nonlocal late
        late = waiting.cancel()  # has no effect once it runs

    patience = asyncio.get_running_loop().call_later(_PATIENCE, give_up, future)
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        abandoned.set()
        if late:
            raise overloaded() from None
        raise
    finally:
        patience.cancel()
        # An error of the future has this frame in its traceback. Together they would hold the body
        # until the garbage collector comes by.
        del future


@cache
def _thread() -> "ThreadPoolExecutor":
    # Imported when first needed, since many gateways convert no large bodies.
    from concurrent.futures import ThreadPoolExecutor

    _give_memory_back()
    return ThreadPoolExecutor(1, "conversion")


def _give_memory_back() -> None:
    """Have the C library return the memory of each large body to the system when it is freed.

    The GNU C library raises the size from which it does so to that of what was freed last
    (mallopt(3), M_MMAP_THRESHOLD). Then small objects hold on to the memory of large bodies: the
    siege found 212 to 284 MB in a worker, and 137 to 224 MB with the size kept. Other C libraries
    lack both the function and the fault.
    """
    import ctypes  # costs memory that idle gateways save

    with suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)
