"""Kinds of values: what a field may hold between two changes, and what a change can read."""

from collections.abc import Iterable
from dataclasses import dataclass

from gateway.conversion.document import Number, kind
from gateway.conversion.scalars import Scalar


@dataclass(frozen=True, slots=True)
class ValueKinds:
    """The values that a field may have besides null, which is always possible.

    Attributes:
        types: what JSON calls their types.
        words: all of the values, where they are known.
    """

    types: frozenset[str]
    words: frozenset[Scalar] | None = None

    def meets(self, other: "ValueKinds") -> bool:
        """Whether some value is among both."""
        if self.words is not None and other.words is not None:
            return bool(self.words & other.words)
        return bool(self.types & other.types)

    def __str__(self) -> str:
        """Return the values, or else their types, for a message."""
        return " or ".join(sorted(map(spelt, self.words) if self.words else self.types))


TEXT = ValueKinds(frozenset({"a string"}))
NUMBER = ValueKinds(frozenset({"a number"}))
BOOLEAN = ValueKinds(frozenset({"a boolean"}))
ARRAY = ValueKinds(frozenset({"an array"}))
OBJECT = ValueKinds(frozenset({"an object"}))


def one_of(words: Iterable[Scalar]) -> ValueKinds | None:
    """Return the kinds of values that are these alone; None where they are only null."""
    found = frozenset(word for word in words if word is not None)
    return ValueKinds(frozenset(map(kind, found)), found) if found else None


def spelt(word: Scalar) -> str:
    """Return a scalar as a text."""
    if word is None:
        return "null"
    if isinstance(word, bool):
        return "true" if word else "false"
    return word.digits if isinstance(word, Number) else word
