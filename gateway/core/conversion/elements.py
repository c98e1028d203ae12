"""Elements: a change of one scalar, applied to every element of an array of scalars."""

from dataclasses import dataclass

from gateway.core.conversion.change import Change
from gateway.core.conversion.document import (
    ConversionError,
    Document,
    JsonForm,
    JsonObject,
    reach,
    refuse,
)
from gateway.core.conversion.field_path import Keys, Scope
from gateway.core.conversion.steps import ConversionStep

_KEY = "element"
ELEMENT: Keys = (_KEY,)
"""The keys of the field that holds an element, in an object made for the change of that element."""


@dataclass(frozen=True, slots=True)
class Elements:
    """A change of every element of an array; an array that is absent or null has no elements.

    Attributes:
        scopes: The scopes that lead to the object with the array.
        array: The keys that lead from that object to the array.
        depth: The number of nested arrays around the scalars; 1 is an array of scalars.
        change: The change of the field ELEMENT, whose value it replaces; it neither moves nor
            removes the field.
    """

    scopes: tuple[Scope, ...]
    array: Keys
    depth: int
    change: Change

    @property
    def touches(self) -> tuple[Keys, ...]:
        """The field that holds the array."""
        return (self.array,)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Convert every element to the newer version."""
        self._change(fields, self.change.up, form)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Convert every element to the older version."""
        self._change(fields, self.change.down, form)

    def for_patch(self) -> "Elements":
        """Return the same change, since a PATCH request holds an array as a whole (RFC 7396)."""
        return self

    def _change(self, fields: JsonObject, step: ConversionStep, form: JsonForm) -> None:
        holder = reach(fields, self.array, form)
        key = self.array[-1]
        if holder is None or key not in holder:
            return
        try:
            holder[key] = _changed(holder[key], self.depth, step, form)
        except ConversionError as error:
            raise error.under(*self.array) from None


def _changed(value: Document, depth: int, step: ConversionStep, form: JsonForm) -> Document:
    array = form.open(value)
    if array is None:
        return None
    if not isinstance(array, list):
        refuse("an array", array)
    index = 0
    try:
        for index, element in enumerate(array):
            if depth > 1:
                array[index] = _changed(element, depth - 1, step, form)
            else:
                fields: JsonObject = {_KEY: element}
                step(fields, form)
                array[index] = fields[_KEY]
    except ConversionError as error:
        # The field of the change is the element itself, and no part of its place.
        place = error.pointer if depth > 1 else error.pointer.removeprefix(f"/{_KEY}")
        raise ConversionError(error.reason, place, error.cause).under(index) from None
    return array
