"""Elements: a change of one value, made to every element of an array of scalars."""

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
"""The field of the change: each element is given to it as the only field of an object."""


@dataclass(frozen=True, slots=True)
class Elements:
    """Every element of an array is changed; an array that is absent or null has none.

    Attributes:
        scopes: the arrays of objects that lead to the array.
        array: leads to the array.
        depth: how many arrays lie in one another there; 1 is an array of scalars.
        change: of the field ELEMENT, which it replaces and neither moves nor removes.
    """

    scopes: tuple[Scope, ...]
    array: Keys
    depth: int
    change: Change

    @property
    def touches(self) -> tuple[Keys, ...]:
        """The array."""
        return (self.array,)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Make every element what the newer version has."""
        self._change(fields, self.change.up, form)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Make every element what the older version has."""
        self._change(fields, self.change.down, form)

    def for_patch(self) -> "Elements":
        """Return the same change: a PATCH request gives an array as a whole (RFC 7396)."""
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
        # What the change calls its field is the element itself.
        place = error.pointer if depth > 1 else error.pointer.removeprefix(f"/{_KEY}")
        raise ConversionError(error.reason, place, error.cause).under(index) from None
    return array
