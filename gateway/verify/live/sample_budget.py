"""A token bucket that limits the number of samples per second."""


class SampleBudget:
    """A token bucket that holds at most the tokens of one second."""

    __slots__ = ("_at", "_left", "_rate")

    def __init__(self, rate: float) -> None:
        self._rate = self._left = rate
        self._at: float | None = None

    def has(self, size: float, now: float) -> bool:
        """Return whether enough tokens are available; `now` is in monotonic seconds."""
        if self._at is not None:
            self._left = min(self._left + (now - self._at) * self._rate, self._rate)
        self._at = now
        return size <= self._left

    def take(self, size: float) -> None:
        self._left -= size
