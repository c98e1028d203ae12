"""FailedTries: bounds how often wrong tokens are tried."""

from math import ceil

_TRIES = 20
_SECONDS = 60.0
# As a token has 16 characters or more, guessing is hopeless; the bound is on work and log lines.
_MOST_ADDRESSES = 1024


class FailedTries:
    """The failed tries of each address: 20 at once, and one more every three seconds.

    At the bound, wrong tokens from that address are refused without a line in the log. Of more than
    1,024 addresses, the one with the oldest failure is forgotten.
    """

    def __init__(self) -> None:
        # When all tries of an address are there again (GCRA), the oldest failure first.
        self._full: dict[str, float] = {}

    def wait(self, address: str, now: float) -> int:
        """Return for how many seconds the address has to wait; 0 if it may try."""
        over = self._full.get(address, now) - now - _SECONDS + _SECONDS / _TRIES
        return ceil(over) if over > 1e-9 else 0

    def add(self, address: str, now: float) -> None:
        """Count a failed try."""
        full = max(self._full.pop(address, now), now)
        self._full[address] = full + _SECONDS / _TRIES
        if len(self._full) > _MOST_ADDRESSES:
            del self._full[next(iter(self._full))]
