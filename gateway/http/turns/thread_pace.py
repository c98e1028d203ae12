"""ThreadPace: what a thread computes beside the event loop leaves it its turns.

Python runs one thread at a time, and gives each of two half of the time. A thread that converts one
large body after another would take that from all requests.
"""

from collections.abc import Callable
from threading import Event, Lock
from time import perf_counter

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


class ThreadPace:
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
