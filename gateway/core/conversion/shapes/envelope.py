"""Envelope: a bare value in the newer version, in an object in the older. Its inverse: `extract`.

So an array becomes an object that holds it, and an id an object that has it.
"""

from dataclasses import dataclass

from gateway.core.conversion.document import (
    MISSING,
    ConversionError,
    Document,
    JsonForm,
    JsonObject,
    put,
    reach,
    refuse,
    take,
)
from gateway.core.conversion.field_path import Keys, Scope, pointer


@dataclass(frozen=True, slots=True)
class Envelope:
    """The older version has an object that holds what the newer version has bare.

    Downwards, the object is made. Upwards, the value is taken out of it; its other fields are
    refused if `strict`, else lost. Null stays null, and an absent field stays absent, both ways.

    Attributes:
        field: where the value is in both versions.
        into: where it is in the envelope.
        count: where the envelope has the number of elements, of a value that is an array.
        strict: whether other fields of the envelope are refused.
    """

    scopes: tuple[Scope, ...]
    field: Keys
    into: Keys
    count: Keys | None = None
    strict: bool = False

    @property
    def touches(self) -> tuple[Keys, ...]:
        """The field."""
        return (self.field,)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Take the value out of the envelope."""
        holder = reach(fields, self.field, form)
        key = self.field[-1]
        if holder is None or key not in holder:
            return
        envelope = form.open(holder[key])
        if envelope is None:
            return
        if not isinstance(envelope, dict):
            refuse("an object", envelope, *self.field)
        try:
            holder[key] = self._bare(envelope, form)
        except ConversionError as error:
            raise error.under(*self.field) from None

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

    def for_patch(self) -> "Envelope":
        """Return the same change: what a PATCH request leaves out has no envelope."""
        return self

    def _bare(self, envelope: JsonObject, form: JsonForm) -> Document:
        value = take(envelope, self.into, form)
        if value is MISSING:
            raise ConversionError("is missing", pointer(*self.into))
        if self.count is not None:
            take(envelope, self.count, form)
        if self.strict and envelope:
            raise ConversionError(
                "a field for which the other version has no place", pointer(next(iter(envelope)))
            )
        return value
