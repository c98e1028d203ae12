"""Slow holders: whose slow clients hold what others wait for.

A client that sends or takes next to nothing costs its sender nothing, and holds a place at a
service or memory for a conversion as long as it likes. So while others wait for these, the one that
has been slow for the longest loses them.
"""

from collections.abc import Callable, Sized

SLOW_SECONDS = 5.0
"""A client is slow if less than `SLOW_BYTES` bytes passed in so many seconds."""
SLOW_BYTES = 64 * 1024
"""The bytes that pass to or from a client that is not slow, in `SLOW_SECONDS`."""


class SlowHolders:
    """Who is slow at the moment, the longest first.

    Args:
        spared: so many may be slow, whoever waits.
        waiting: those who wait for what they hold.
    """

    def __init__(self, spared: int, waiting: Callable[[], Sized]) -> None:
        self._spared = spared
        self._waiting = waiting
        self._slow: dict[Callable[[], None], None] = {}
        self._ending: set[Callable[[], None]] = set()

    def add(self, give_way: Callable[[], None]) -> None:
        """Count a holder as slow; `give_way` is called at most once, to have it end."""
        if give_way not in self._ending:
            self._slow.setdefault(give_way)
            self.make_way()

    def remove(self, give_way: Callable[[], None]) -> None:
        """Count a holder as slow no more; it may have ended."""
        self._slow.pop(give_way, None)
        self._ending.discard(give_way)

    def make_way(self) -> None:
        """Have a holder give way to each who waits, as long as more than those spared are slow."""
        while len(self._ending) < len(self._waiting()) and len(self._slow) > self._spared:
            give_way = next(iter(self._slow))
            del self._slow[give_way]
            self._ending.add(give_way)
            give_way()
