"""The bytes that wait for those who do not take them, bounded for all of them together."""

from collections.abc import Callable


class WaitingBytes:
    """Counts bytes that wait. If those of all are too many, who has waited longest gives way.

    Args:
        most: the maximum number of bytes that wait; those of one alone may be more.
    """

    def __init__(self, most: int) -> None:
        self._left = most
        self._waiting: dict[Callable[[], None], int] = {}

    def hold(self, give_way: Callable[[], None], size: int) -> None:
        """Count bytes that begin to wait, in place of those that were counted before.

        Args:
            give_way: a function that ends the wait.
            size: how many they are.
        """
        self.release(give_way)
        self._waiting[give_way] = size
        self._left -= size
        while self._left < 0 and len(self._waiting) > 1:
            longest = next(iter(self._waiting))
            self.release(longest)
            longest()

    def release(self, give_way: Callable[[], None]) -> None:
        """Count bytes no more: they are taken, or given up."""
        self._left += self._waiting.pop(give_way, 0)
