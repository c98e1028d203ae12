"""Wrap: a single value in the newer version, a list in the older one. Its inverse is `unwrap`.

An absent field stays absent, both ways.
"""

from dataclasses import dataclass

from gateway.core.conversion.document import ConversionError, JsonForm, JsonObject, reach, refuse
from gateway.core.conversion.field_path import Keys, Scope, pointer


@dataclass(frozen=True, slots=True)
class Wrap:
    """The older version has a list where the newer one has a single value.

    Downwards, the value becomes the only element, and null the empty list. Upwards, the first
    element becomes the value, and null where there is none; null stays null. A list of several
    elements is refused if `strict`, else the others are lost.
    """

    scopes: tuple[Scope, ...]
    field: Keys
    strict: bool = False

    @property
    def touches(self) -> tuple[Keys, ...]:
        """The field."""
        return (self.field,)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Take the value out of the list."""
        holder = fields if len(self.field) == 1 else reach(fields, self.field, form)
        key = self.field[-1]
        if holder is None or key not in holder:
            return
        values = form.open(holder[key])
        if values is None:
            return
        if not isinstance(values, list):
            refuse("an array", values, *self.field)
        if len(values) > 1 and self.strict:
            raise ConversionError("an array of several elements", pointer(*self.field))
        holder[key] = values[0] if values else None

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Put the value into a list."""
        holder = fields if len(self.field) == 1 else reach(fields, self.field, form)
        key = self.field[-1]
        if holder is None or key not in holder:
            return
        value = holder[key]
        holder[key] = [] if form.open(value) is None else [value]

    def for_patch(self) -> "Wrap":
        """Return the same change: what a PATCH request leaves out is not wrapped."""
        return self
