"""The time limit of a verification: its end in monotonic seconds."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf


class OutOfTimeError(BaseException):
    """The time limit has passed.

    The class is not an Exception: Hypothesis would treat an Exception as a failed example.
    """


def end_after(seconds: float | None, started: float | None = None) -> float:
    """Return the end of a limit, in monotonic seconds; infinity without a limit.

    Args:
        started: the start in monotonic seconds; by default now.
    """
    if seconds is None:
        return inf
    return seconds + (time.monotonic() if started is None else started)


def check_time(end: float) -> None:
    if time.monotonic() > end:
        raise OutOfTimeError


@contextmanager
def interrupted_at(end: float) -> Iterator[None]:
    """Raise OutOfTimeError in the block at the end, also while a library runs.

    Python interrupts only the main thread.
    """
    check_time(end)
    if end == inf or threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise OutOfTimeError

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(end - time.monotonic(), 1e-6))
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
