"""SampleBudget: how much may be sampled a second, as a token bucket."""


class SampleBudget:
    """A bucket that fills up with the time, and holds what comes in one second.

    Args:
        rate: what comes a second.
    """

    __slots__ = ("_at", "_left", "_rate")

    def __init__(self, rate: float) -> None:
        self._rate = self._left = rate
        self._at: float | None = None

    def has(self, size: float, now: float) -> bool:
        """Return whether so much is left.

        Args:
            size: how much is wanted.
            now: the time, in monotonic seconds.
        """
        if self._at is not None:
            self._left = min(self._left + (now - self._at) * self._rate, self._rate)
        self._at = now
        return size <= self._left

    def take(self, size: float) -> None:
        """Take what is left; see `has`."""
        self._left -= size
