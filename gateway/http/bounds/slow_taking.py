"""SlowTaking: whether a client takes its answer so slowly that it gives way to those who wait."""

from gateway.http.bounds.slow_holders import SLOW_BYTES, SLOW_SECONDS

LOOK_SECONDS = 1.0
"""How often is looked at what a client has not taken yet. Any link that is not interrupted carries
something in that time: its round trips take a fraction of it."""
_LOOKS = SLOW_SECONDS // LOOK_SECONDS


class SlowTaking:
    """What a client takes of its answer, looked at every `LOOK_SECONDS`.

    It is slow as soon as it has taken nothing between two looks, or too little in `SLOW_SECONDS`,
    until it takes enough.

    Args:
        left: the bytes that it has not taken yet.
    """

    def __init__(self, left: int) -> None:
        self.slow = False
        self._begun = self._last = left
        self._looks = 0

    def look(self, left: int) -> None:
        """Note how many bytes it has not taken by now."""
        self._looks += 1
        enough = self._begun - left >= SLOW_BYTES
        late = self._looks >= _LOOKS
        if enough:
            self.slow = False
        elif late or left >= self._last:
            self.slow = True
        if enough or late:
            self._begun, self._looks = left, 0
        self._last = left
