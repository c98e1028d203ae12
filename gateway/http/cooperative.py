"""Cooperative scheduling: expensive work lets the event loop serve other requests in between.

Python runs one thread at a time and gives each of two threads half of the time. A thread that
converts one large body after another would take that half from all requests, so `GilThrottle`
makes it wait for the event loop. `CooperativeRunner` bounds the calls of one iteration of the event
loop, and `turn` and `turns` split reports into pieces.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from threading import Event, Lock
from time import perf_counter
from typing import TypeVar
from weakref import WeakKeyDictionary

from gateway.base.errors import FaultError
from gateway.http.bounds import FairLock

# How long a thread computes, in seconds, until it waits for a turn of the event loop. With 2 ms,
# requests beside large conversions took a fifth longer on a machine that others load as well.
_PART = 0.0005
# It waits for this many times as long at most: a loop that is never idle has turns without an end.
_MOST = 4

Step = Callable[[], None]
"""What a thread calls between the steps of what it computes; it may raise AbandonedError."""


def no_step() -> None:
    """Go on: the step of what is not computed in a thread."""


class AbandonedError(Exception):
    """Nobody waits any more for what a thread computes."""


class GilThrottle:
    """Has a thread wait now and then for a turn of the event loop, and stop if nobody waits for it.

    A loop that has nothing to do has its turn at once. Beside one that is never idle, the thread
    takes a fifth of the time, and two of them a third.

    Args:
        in_a_turn: has the event loop call a function in its next turn.
        abandoned: is set when nobody waits any more for what the thread computes.
    """

    def __init__(self, in_a_turn: Callable[[Step], object], abandoned: Event) -> None:
        self._in_a_turn = in_a_turn
        self._abandoned = abandoned
        self._began = perf_counter()
        self._until = self._began + _PART

    def step(self) -> None:
        """Wait, if it is time to; raises AbandonedError if nobody waits for the result any more."""
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
    """Return a step that never waits, as for what has a time limit."""

    def step() -> None:
        if abandoned.is_set():
            raise AbandonedError

    return step


# The seconds of calls in one turn of the event loop; further calls wait for the next turn.
_A_TURN = 0.001
_T = TypeVar("_T")


class CooperativeRunner:
    """Makes calls on the event loop: few in a turn of it, and for networks of clients in turn.

    Args:
        patience: for how many seconds a call waits for others.
        impatient: returns the fault of a call that has waited for so long.
    """

    def __init__(self, patience: float, impatient: Callable[[], FaultError]) -> None:
        self._patience = patience
        self._impatient = impatient
        self._turns = FairLock()
        self._spent = 0.0

    async def run(self, call: Callable[[], _T], network: Callable[[], str]) -> _T:
        """Make a call when it is its turn, and return what it returns.

        Args:
            call: the function that is called.
            network: returns the network of the client; it is asked for if the call has to wait.

        Raises:
            FaultError: others took too long, or the call has raised it.
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


# How long a piece may take, in seconds.
_PIECE = 0.001


_fair = WeakKeyDictionary[asyncio.AbstractEventLoop, FairLock]()


async def turn(address: str) -> None:
    """Return when a piece may be made: one in a turn of the event loop, of all responses together.

    Args:
        address: of the client; each address has a share.
    """
    loop = asyncio.get_running_loop()
    fair = _fair.setdefault(loop, FairLock())
    await fair.take(address)
    loop.call_soon(fair.end)


async def turns(items: Iterable[_T]) -> AsyncIterator[_T]:
    """Yield items; the event loop has turns before, and after each millisecond.

    Args:
        items: what each of them needs to be made has to be short.
    """
    await turn("")
    until = perf_counter() + _PIECE
    for item in items:
        yield item
        if perf_counter() >= until:
            await turn("")
            until = perf_counter() + _PIECE
