"""Wrap: a single value in the newer version, a list in the older one. Its inverse is `unwrap`.

An absent field stays absent, both ways.
"""

from dataclasses import dataclass

from gateway.core.conversion.change import FieldChange
from gateway.core.conversion.conversion_error import ConversionError, ErrorPlace, moved_back
from gateway.core.conversion.document import (
    Document,
    JsonForm,
    JsonObject,
    change_value,
    reach,
    refuse,
)
from gateway.core.conversion.field_path import Tokens


@dataclass(frozen=True, slots=True)
class Wrap(FieldChange):
    """The older version has a list where the newer one has a single value.

    Downwards, the value becomes the only element, and null the empty list. Upwards, the first
    element becomes the value, and null where there is none; null stays null. A list of several
    elements is refused if `strict`, else the others are lost.
    """

    strict: bool = False

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Take the value out of the list."""
        change_value(fields, self.field, form, self._unwrapped)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Put the value into a list."""
        holder = fields if len(self.field) == 1 else reach(fields, self.field, form)
        key = self.field[-1]
        if holder is None or key not in holder:
            return
        value = holder[key]
        holder[key] = [] if form.open(value) is None else [value]

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:
        """Return the first element of the list for the value, and the value for the element."""
        first: Tokens = (*self.field, 0)
        if upwards:
            return moved_back(place, self.field, first)
        return moved_back(place, first, self.field)

    def _unwrapped(self, values: Document) -> Document:
        if not isinstance(values, list):
            refuse("an array", values)
        if len(values) > 1 and self.strict:
            raise ConversionError("an array of several elements")
        return values[0] if values else None
