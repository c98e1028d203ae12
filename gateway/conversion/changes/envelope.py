"""Envelope: the older version has a value inside an object of its own. Its inverse is `extract`.

An array becomes an object with the array as a field, and an id an object with the id.
"""

from dataclasses import dataclass
from functools import partial

from gateway.conversion.change import FieldChange
from gateway.conversion.conversion_error import (
    ConversionError,
    ErrorPlace,
    is_within,
    moved_back,
)
from gateway.conversion.document import (
    MISSING,
    Document,
    JsonForm,
    JsonObject,
    change_value,
    put,
    reach,
    refuse,
    take,
)
from gateway.conversion.field_path import Keys


@dataclass(frozen=True, slots=True)
class Envelope(FieldChange):
    """The older version has a value inside an object, the newer version without that object.

    Downwards, the object is made. Upwards, the value is taken out of it; its other fields are
    refused if `strict`, else lost. Null stays null, and an absent field stays absent, both ways.

    Attributes:
        field: where the value is, in both versions.
        into: where it is in the envelope.
        count: where the envelope has the number of elements, of a value that is an array.
        strict: whether other fields of the envelope are refused.
    """

    into: Keys
    count: Keys | None = None
    strict: bool = False

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Take the value out of the envelope."""
        change_value(fields, self.field, form, partial(self._bare, form))

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Put the value into an envelope."""
        holder = reach(fields, self.field, form)
        key = self.field[-1]
        if holder is None or key not in holder:
            return
        value = form.open(holder[key])
        if value is None:
            return
        envelope: JsonObject = {}
        # What was opened for a look at it is closed by its holder.
        put(envelope, self.into, value if isinstance(value, dict | list) else holder[key], form)
        if self.count is not None:
            if not isinstance(value, list):
                refuse("an array", value, *self.field)
            put(envelope, self.count, form.number(str(len(value))), form)
        holder[key] = envelope

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:
        """Return the value in the envelope for the value, and the value for all of the envelope."""
        inner = (*self.field, *self.into)
        if upwards:
            return moved_back(place, self.field, inner)
        if is_within(place, inner):
            return moved_back(place, inner, self.field)
        return self.field if is_within(place, self.field) else place

    def _bare(self, form: JsonForm, envelope: Document) -> Document:
        if not isinstance(envelope, dict):
            refuse("an object", envelope)
        value = take(envelope, self.into, form)
        if value is MISSING:
            raise ConversionError("is missing", self.into, is_missing=True)
        if self.count is not None:
            take(envelope, self.count, form)
        if self.strict and envelope:
            raise ConversionError(
                "a field for which the other version has no place", (next(iter(envelope)),)
            )
        return value
