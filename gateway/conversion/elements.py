"""Elements: a change of one value, applied to every element of an array, or member of an object."""

from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

from gateway.conversion.change import Change, held_effect
from gateway.conversion.conversion_error import Beside, ConversionError, ErrorPlace, inside
from gateway.conversion.document import (
    Document,
    JsonForm,
    JsonObject,
    change_elements,
    change_members,
    change_value,
)
from gateway.conversion.field_path import Keys, Members, Scope
from gateway.conversion.schema import Flat, SchemaImage
from gateway.conversion.steps import ConversionStep

_KEY = "element"
ELEMENT: Keys = (_KEY,)
"""The keys of the field that holds an element, in an object made for the change of that element."""


@dataclass(frozen=True, slots=True)
class Elements:
    """A change of every element of an array, or of every member of an object with free keys.

    An array or object that is absent or null has none.

    Attributes:
        scopes: The scopes that lead to the object with the array.
        array: The keys that lead from that object to the array, or to the object with free keys;
            without any, that is the object itself.
        depth: The number of nested arrays around the elements; 1 is an array of them, 0 an object
            of members.
        change: The change of the field ELEMENT, whose value it replaces; it neither moves nor
            removes the field.
        keeps: Whether what is no array, or no object, where there is to be one, stays as it is.
    """

    scopes: tuple[Scope, ...]
    array: Keys
    depth: int
    change: Change
    keeps: bool = False

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

    def effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        """Return the object with another schema for the elements or members."""

        def one(schema: object) -> object:
            return held_effect(self.change, _KEY, schema, image, upwards=upwards)

        def every(value: Flat) -> object:
            return (
                image.members(value, one)
                if value["type"] == "object"
                else image.refused(value, "expected an object")
            )

        def nested(value: Flat, depth: int) -> object:
            if value["type"] == "null":
                return value
            if value["type"] != "array":
                return image.refused(value, "expected an array")
            if depth == 1:
                return image.elements(value, one)
            return image.elements(
                value, lambda inner: image.each(inner, lambda each: nested(each, depth - 1))
            )

        with image.keeping(values=True) if self.keeps else nullcontext():
            if not self.array:
                return every(flat)
            change = partial(nested, depth=self.depth) if self.depth else every
            return image.value(flat, self.array, change)

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:
        """Return the origin by the change, for a place in an element."""

        def of_element(inner: ErrorPlace) -> ErrorPlace:
            held = inner if isinstance(inner, Beside) else (*ELEMENT, *inner)
            return _in_element(self.change.origin(held, upwards=upwards))

        if not self.depth:
            return inside((Members(self.array),), place, of_element)
        return inside((self.array, *((),) * (self.depth - 1)), place, of_element)

    def for_patch(self) -> "Elements":
        """Return the same change: a PATCH request holds an array as a whole (RFC 7396).

        Of an object, it holds the members to change, and null removes one, which stays null.
        """
        return self

    def _change(self, fields: JsonObject, step: ConversionStep, form: JsonForm) -> None:
        def changed(element: Document) -> Document:
            holder: JsonObject = {_KEY: element}
            try:
                step(holder, form)
            except ConversionError as error:
                # The field of the change is the element itself, and no part of its place.
                raise error.moved(_in_element) from None
            return holder[_KEY]

        def all_changed(value: Document) -> Document:
            if self.depth:
                return change_elements(value, self.depth - 1, form, changed, keeps=self.keeps)
            return change_members(value, changed, keeps=self.keeps)

        if self.array:
            change_value(fields, self.array, form, all_changed, keeps=self.keeps)
        else:
            change_members(fields, changed)


def _in_element(place: ErrorPlace) -> ErrorPlace:
    return place if isinstance(place, Beside) else place[1:]
