"""FleetClock: the time of the database, so that replicas with wrong clocks agree."""

import time

from gateway.telemetry import log

# A clock of this machine that differs by more seconds is reported: dates of the rules go by it.
_SKEW = 5.0


class FleetClock:
    """Goes on from the last time that the database gave; until then, by this machine's clock."""

    def __init__(self) -> None:
        self._ahead = time.time() - time.monotonic()
        self._skewed = False

    def set(self, date: float, asked: float) -> float:
        """Set the clock; return by how many seconds it was behind.

        Args:
            date: the time of the database, in seconds since 1970.
            asked: when it was asked for, in monotonic seconds.
        """
        former, self._ahead = self._ahead, date - (asked + time.monotonic()) / 2
        skew = self.now() - time.time()
        if abs(skew) > _SKEW and not self._skewed:
            log.event("clock_skewed", "warning", seconds=round(skew, 1))
        self._skewed = abs(skew) > _SKEW
        return self._ahead - former

    def now(self) -> float:
        """Return the time, in seconds since 1970."""
        return time.monotonic() + self._ahead
