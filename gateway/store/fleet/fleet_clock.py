"""FleetClock: the time of the database, so that replicas with wrong clocks agree."""

import time

from gateway.base.steady_clock import WAS_SET, passed
from gateway.observe import log
from gateway.store.state_access import SetAhead

# A clock of this machine that differs by more seconds is reported.
_SKEW = 5.0
# Dates of requests go by this machine's clock while it differs by less, in seconds, so that they do
# not follow each wait for an answer.
_APART = 0.5


class FleetClock:
    """Goes on from the last time that the database gave; until then, by this machine's clock.

    Attributes:
        was_set: whether the clock of the database was set to another time since this asked for it
            first. What was counted before has times of the former one.
    """

    def __init__(self) -> None:
        self._ahead = time.time() - passed()
        self._known = False
        self._skewed = False
        self._told = 0.0
        self._set_ahead: SetAhead | None = None
        self.was_set = False

    def follow(self, set_ahead: SetAhead) -> None:
        """Set the function that takes by how many seconds this machine's clock is behind."""
        self._set_ahead = set_ahead
        set_ahead(self._told)
        self.tell()

    def tell(self) -> None:
        """Have it take that anew, if it has changed: also a clock of this machine that was set."""
        ahead = self.ahead
        if self._set_ahead is not None and abs(ahead - self._told) > _APART:
            self._told = ahead
            self._set_ahead(ahead)

    def set(self, date: float, asked: float) -> float:
        """Set the clock; return by how many seconds it was behind.

        Args:
            date: the time of the database, in seconds since 1970.
            asked: when it was asked for, as `passed` has it.
        """
        former, self._ahead = self._ahead, date - (asked + passed()) / 2
        skew = self.ahead
        if abs(skew) > _SKEW and not self._skewed:
            log.event("clock_skewed", "warning", seconds=round(skew, 1))
        self._skewed = abs(skew) > _SKEW
        behind = self._ahead - former
        self.was_set |= self._known and abs(behind) > WAS_SET
        self._known = True
        return behind

    def differs(self, date: float) -> bool:
        """Return whether the clock of the database, at this time, was set since it was asked."""
        return abs(date - self.now()) > WAS_SET

    @property
    def ahead(self) -> float:
        """By how many seconds the clock of this machine is behind."""
        return self.now() - time.time()

    def now(self) -> float:
        """Return the time, in seconds since 1970."""
        return passed() + self._ahead
