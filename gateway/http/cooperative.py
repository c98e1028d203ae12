"""Cooperative scheduling: expensive work pauses so that the event loop can serve other requests.

Python runs one thread at a time and gives each of two busy threads half of the time. A thread that
converts one large body after another would take that half from all requests, so `GilThrottle` makes
the thread wait for the event loop. `CooperativeRunner` limits the work on the event loop in each of
its iterations. `turn` and `turns` split reports into pieces.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from threading import Event, Lock
from time import perf_counter
from typing import TypeVar
from weakref import WeakKeyDictionary

from gateway.base.errors import FaultError
from gateway.http.bounds import FairLock

# The seconds that a thread computes before it waits for an iteration of the event loop. With 2 ms,
# requests beside large conversions took a fifth longer on a machine with other load.
_PART = 0.0005
# The maximum wait, as a multiple of the computing time: if the loop is never idle, its iteration
# may take arbitrarily long.
_MOST = 4

Step = Callable[[], None]
"""Called regularly by a computing thread; may raise AbandonedError."""


def no_step() -> None:
    """Do nothing: the step of a computation outside a thread."""


class AbandonedError(Exception):
    """The result of a thread's computation is no longer needed."""


class GilThrottle:
    """Makes a thread wait regularly for the event loop, and stops it if its result is abandoned.

    An idle loop lets the thread continue at once. If the loop is never idle, the thread gets a
    fifth of the time, and two threads get a third.

    Args:
        abandoned: set when the result of the thread is no longer needed.
    """

    def __init__(self, in_a_turn: Callable[[Step], object], abandoned: Event) -> None:
        self._in_a_turn = in_a_turn
        self._abandoned = abandoned
        self._began = perf_counter()
        self._until = self._began + _PART

    def step(self) -> None:
        """Wait if the time slice is used up; raises AbandonedError if the result is abandoned."""
        now = perf_counter()
        if now < self._until:
            return
        if self._abandoned.is_set():
            raise AbandonedError
        turn = Lock()
        turn.acquire()
        self._in_a_turn(turn.release)
        turn.acquire(timeout=(now - self._began) * _MOST)
        self._began = perf_counter()
        self._until = self._began + _PART


def until(abandoned: Event) -> Step:
    """Return a step that only checks for abandonment, for work that has its own time limit."""

    def step() -> None:
        if abandoned.is_set():
            raise AbandonedError

    return step


# The seconds of calls in one iteration of the event loop; further calls wait for the next one.
_A_TURN = 0.001
_T = TypeVar("_T")


class CooperativeRunner:
    """Makes calls on the event loop, for a limited time per iteration; client networks take turns.

    `patience` is the maximum wait in seconds, and `impatient` returns the error after it.
    """

    def __init__(self, patience: float, impatient: Callable[[], FaultError]) -> None:
        self._patience = patience
        self._impatient = impatient
        self._turns = FairLock()
        self._spent = 0.0

    async def run(self, call: Callable[[], _T], network: Callable[[], str]) -> _T:
        """Make a call when its turn comes; raises FaultError if it waits too long.

        `network` is called only if the call has to wait.
        """
        if not self._turns.took():
            try:
                async with asyncio.timeout(self._patience):
                    await self._turns.take(network())
            except TimeoutError:
                raise self._impatient() from None
        if not self._spent:
            asyncio.get_running_loop().call_soon(self._turn_over)
        began = perf_counter()
        try:
            return call()
        finally:
            self._spent += perf_counter() - began
            if self._spent < _A_TURN:
                self._turns.end()

    def _turn_over(self) -> None:
        if self._spent >= _A_TURN:
            self._turns.end()
        self._spent = 0.0


# The maximum seconds per piece.
_PIECE = 0.001


_fair = WeakKeyDictionary[asyncio.AbstractEventLoop, FairLock]()


async def turn(address: str) -> None:
    """Wait until a piece may be computed: one per loop iteration; the addresses take turns."""
    loop = asyncio.get_running_loop()
    fair = _fair.setdefault(loop, FairLock())
    await fair.take(address)
    loop.call_soon(fair.end)


async def turns(items: Iterable[_T]) -> AsyncIterator[_T]:
    """Yield items; let the event loop continue before the first and after each millisecond."""
    await turn("")
    until = perf_counter() + _PIECE
    for item in items:
        yield item
        if perf_counter() >= until:
            await turn("")
            until = perf_counter() + _PIECE
