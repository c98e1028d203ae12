"""Members of a JSON object that have the same key, for which JSON has no rule.

JSON leaves open which of them counts (RFC 8259, section 4), so a change that names such a key is
refused. All others keep every member at its place.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import Document, JsonObject


class RepeatedKey(str):
    """The key of a member behind another one with the same key; it is equal to itself alone."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


class RepeatedValue(NamedTuple):
    """The value of one of several members with the same key; it cannot be opened.

    Attributes:
        value: The value.
        members: The number of members with the key.
    """

    value: Document
    members: int


def repeated() -> ConversionError:
    """Return the error of an object that has a key more than once."""
    return ConversionError("an object has the same key twice (RFC 8259, section 4)")


def object_of(given: Iterable[tuple[str, Document]]) -> JsonObject:
    """Return the open object of members, some of which may have the same key."""
    members = [*given]
    counts = Counter(key for key, _ in members)
    made: JsonObject = {}
    for key, value in members:
        if counts[key] == 1:
            made[key] = value
        else:
            made[RepeatedKey(key) if key in made else key] = RepeatedValue(value, counts[key])
    return made


def check_repeated(fields: JsonObject) -> None:
    """Raise ConversionError if a change has moved or removed some members with the same key."""
    counts = Counter(str(key) for key in fields)
    for key, value in fields.items():
        if counts[str(key)] != (value.members if isinstance(value, RepeatedValue) else 1):
            raise repeated()
