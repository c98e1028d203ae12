"""The time limit of a verification: its end in monotonic seconds."""

import time
from math import inf


class OutOfTimeError(BaseException):
    """The time limit has passed.

    The class is not an Exception: Hypothesis would treat an Exception as a failed example.
    """


def end_after(seconds: float | None) -> float:
    """Return the end of a limit that starts now, in monotonic seconds; infinity without a limit."""
    return inf if seconds is None else time.monotonic() + seconds


def check_time(end: float) -> None:
    if time.monotonic() > end:
        raise OutOfTimeError
