"""FormTypes: what the texts of a form are, where it becomes JSON for a version without forms."""

from collections.abc import Collection
from dataclasses import dataclass

from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import PLAIN, Document, JsonObject
from gateway.conversion.scalars import NUMBER_TEXT

# A form has no types. Browsers send `on` for a checked box (WHATWG HTML, section 4.10.5.4).
_BOOLEANS = {"true": True, "1": True, "on": True, "false": False, "0": False}
# Python refuses to read whole numbers of many more digits.
_MOST_DIGITS = 400


@dataclass(frozen=True, slots=True)
class FormTypes:
    """The fields of a form that are no texts; a field that is in none of the three is one text.

    Attributes:
        in_newer: Whether the newer version takes forms, or the older one.
        numbers: The names of numbers, and of lists of numbers.
        booleans: The names of booleans, and of lists of booleans.
        lists: The names of lists, also where they occur once.
    """

    in_newer: bool
    numbers: Collection[str] = ()
    booleans: Collection[str] = ()
    lists: Collection[str] = ()

    def typed(self, fields: JsonObject, *, keeps: bool = False) -> JsonObject:
        """Return the fields of a form with their types.

        Args:
            fields: the fields, which are texts and lists of texts.
            keeps: whether a text that is not one of its type stays.

        Raises:
            ConversionError: a text is not one of its type.
        """
        return {name: self._value(name, value, keeps) for name, value in fields.items()}

    def _value(self, name: str, value: Document, keeps: bool) -> Document:
        if isinstance(value, list):
            return [self._scalar(name, one, keeps) for one in value]
        scalar = self._scalar(name, value, keeps)
        return [scalar] if name in self.lists else scalar

    def _scalar(self, name: str, value: Document, keeps: bool) -> Document:
        if not isinstance(value, str):
            return value
        if name in self.numbers:
            if NUMBER_TEXT.match(value) and len(value) <= _MOST_DIGITS:
                return PLAIN.number(value)
            expected = "a number"
        elif name in self.booleans:
            if value in _BOOLEANS:
                return _BOOLEANS[value]
            expected = "a boolean"
        else:
            return value
        if keeps:
            return value
        raise ConversionError(f"expected {expected}, found another text", (name,))
