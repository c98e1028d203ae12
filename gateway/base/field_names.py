"""The names of header fields, each examined once."""

from collections.abc import Set

# The maximum number of names in a cache, and the maximum length of each.
_MOST_NAMES = 1024
_LONGEST_NAME = 64


class FieldNames:
    """Which header fields have one of some names, with a cache by the name as received.

    Clients and services send the same few names again and again, so each is examined once; the
    cache is bounded.

    Args:
        names: The names, in lower case.

    Attributes:
        names: The names.
        known: The cache, which hot code reads itself: the name in lower case, or None for a field
            of another name.
    """

    def __init__(self, names: Set[bytes]) -> None:
        self.known: dict[bytes, bytes | None] = {}
        self.names = frozenset(names)

    def examine(self, name: bytes) -> bytes | None:
        """Return what the cache has to hold for a name, and keep it there if there is room."""
        value = self._value(name.lower())
        if len(self.known) < _MOST_NAMES and len(name) <= _LONGEST_NAME:
            self.known[name] = value
        return value

    def _value(self, lower: bytes) -> bytes | None:
        return lower if lower in self.names else None
