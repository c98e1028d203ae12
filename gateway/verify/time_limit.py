"""The time limit of a verification."""

import time
from dataclasses import dataclass


class OutOfTimeError(BaseException):
    """The time limit has passed.

    Not an Exception: Hypothesis would count it as a failed example.
    """


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """The end of a verification.

    Attributes:
        end: the time in monotonic seconds.
    """

    end: float = float("inf")

    @classmethod
    def of(cls, seconds: float | None) -> "TimeLimit":
        """Return the limit in a number of seconds from now; None for no limit."""
        return cls() if seconds is None else cls(time.monotonic() + seconds)

    def check(self) -> None:
        """Raise OutOfTimeError if the time has passed."""
        if time.monotonic() > self.end:
            raise OutOfTimeError


NO_LIMIT = TimeLimit()
