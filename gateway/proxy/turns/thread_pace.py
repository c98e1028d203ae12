"""ThreadPace: what a thread computes beside the event loop leaves most of the time to others.

Python runs one thread at a time, and gives each of two half of the time. A thread that converts one
large body after another would take that from all requests.
"""

from collections.abc import Callable
from threading import Event
from time import perf_counter, sleep, thread_time

# How long a thread computes, in seconds, until it looks whether others want to.
_LOOK = 0.0005
# Others did if this much more time has gone by than the thread has computed. Then it rests for
# several times as long as it has computed: it takes a fifth of the time.
_HINDERED = 1.25
_REST = 4

Step = Callable[[], None]
"""What a thread calls between the steps of what it computes; it may raise AbandonedError."""


def no_step() -> None:
    """Go on: the step of what is not computed in a thread."""


class AbandonedError(Exception):
    """Nobody waits any more for what a thread computes."""


class ThreadPace:
    """Has a thread rest while others want to compute, and stop when nobody waits for it.

    It is made in the thread.

    Args:
        abandoned: is set when nobody waits any more.
    """

    def __init__(self, abandoned: Event) -> None:
        self._abandoned = abandoned
        self._begin()

    def step(self) -> None:
        """Rest, if it is time to; raises AbandonedError if nobody waits any more."""
        now = perf_counter()
        if now < self._until:
            return
        if self._abandoned.is_set():
            raise AbandonedError
        computed = thread_time() - self._computed
        if now - self._began > computed * _HINDERED:
            sleep(computed * _REST)
        self._begin()

    def _begin(self) -> None:
        self._computed = thread_time()
        self._began = perf_counter()
        self._until = self._began + _LOOK


def until(abandoned: Event) -> Step:
    """Return a step that never rests, as for what has a time limit."""

    def step() -> None:
        if abandoned.is_set():
            raise AbandonedError

    return step
