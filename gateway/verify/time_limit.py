"""The time limit of a verification."""

import time
from dataclasses import dataclass


class OutOfTimeError(BaseException):
    """The time limit has passed. As an Exception, Hypothesis would take it for a failed example."""


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """The time after which nothing more is tried.

    Attributes:
        end: in seconds of the monotonic clock.
    """

    end: float = float("inf")

    @classmethod
    def of(cls, seconds: float | None) -> "TimeLimit":
        """Return the limit that ends in a number of seconds; None sets none."""
        return cls() if seconds is None else cls(time.monotonic() + seconds)

    def check(self) -> None:
        """Raise OutOfTimeError once the time has passed."""
        if time.monotonic() > self.end:
            raise OutOfTimeError


NO_LIMIT = TimeLimit()
