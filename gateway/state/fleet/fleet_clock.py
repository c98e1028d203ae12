"""FleetClock: the time of the database, so that replicas with wrong clocks agree."""

import time


class FleetClock:
    """Goes on from the last time that the database gave; until then, by this machine's clock."""

    def __init__(self) -> None:
        self._ahead = time.time() - time.monotonic()

    def set(self, date: float, asked: float) -> None:
        """Set the clock.

        Args:
            date: the time of the database, in seconds since 1970.
            asked: when it was asked for, in monotonic seconds.
        """
        self._ahead = date - (asked + time.monotonic()) / 2

    def now(self) -> float:
        """Return the time, in seconds since 1970."""
        return time.monotonic() + self._ahead
