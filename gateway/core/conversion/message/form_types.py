"""FormTypes: what the texts of a form are, where it becomes JSON for a version without forms."""

from collections.abc import Collection
from dataclasses import dataclass

from gateway.core.conversion.conversion_error import ConversionError
from gateway.core.conversion.document import PLAIN, Document, JsonObject
from gateway.core.conversion.scalars import NUMBER_TEXT

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

    def typed(self, fields: JsonObject) -> JsonObject:
        """Return the fields of a form with their types; raises ConversionError for other texts."""
        return {name: self._value(name, value) for name, value in fields.items()}

    def _value(self, name: str, value: Document) -> Document:
        if isinstance(value, list):
            return [self._scalar(name, one) for one in value]
        scalar = self._scalar(name, value)
        return [scalar] if name in self.lists else scalar

    def _scalar(self, name: str, value: Document) -> Document:
        if name in self.numbers and isinstance(value, str):
            if not NUMBER_TEXT.match(value) or len(value) > _MOST_DIGITS:
                raise ConversionError("expected a number, found another text", (name,))
            return PLAIN.number(value)
        if name in self.booleans and isinstance(value, str):
            if value not in _BOOLEANS:
                raise ConversionError("expected a boolean, found another text", (name,))
            return _BOOLEANS[value]
        return value
