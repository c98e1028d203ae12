"""Spread: the older version has the value of a field in every element of an array, too.

Or in an object that is there.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.conversion.conversion_error import Beside, ConversionError, ErrorPlace
from gateway.conversion.document import (
    MISSING,
    Document,
    JsonForm,
    JsonObject,
    get,
    put,
    reach,
    take,
)
from gateway.conversion.field_path import (
    Keys,
    Scope,
    depth_of,
    keys_of,
)
from gateway.conversion.steps import ConversionStep, ConversionTask, fuse


@dataclass(frozen=True, slots=True)
class Spread:
    """The older version has the value of a field in each of the objects in some arrays, too.

    Downwards, it is put into each of them; one that has such a field already is refused. Upwards,
    it is taken out of them, and becomes the field where that is absent; values that differ are
    refused. A field that is absent stays absent where no element has it.

    Attributes:
        field: Where the value is, from the object that holds it.
        inner: What leads from that object to the elements.
        target: Where the value is in an element of the older version.
        keep: Whether the older version has the field itself as well.
        keeps: Whether what is no array or no object on the way to the elements stays as it is.
    """

    scopes: tuple[Scope, ...]
    field: Keys
    inner: tuple[Scope, ...]
    target: Keys
    keep: bool = True
    keeps: bool = False

    @property
    def touches(self) -> tuple[Keys, ...]:
        """The outermost container of the field, and the array that leads to the elements."""
        return (self.field[:1], keys_of(self.inner[0]))

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Take the value out of the elements."""
        is_there = get(fields, self.field, form) is not MISSING
        known = self._value(fields, form) if is_there else MISSING
        for value in self._taken(fields, form):
            if known is MISSING:
                known = value
                put(fields, self.field, value, form)
            elif form.parse(value) != form.parse(known):
                raise ConversionError(
                    "differs between elements, or from the field beside them",
                    self.field if is_there else keys_of(self.inner[0]),
                )

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Put the value into the elements."""
        if get(fields, self.field, form) is MISSING:
            return
        value = self._value(fields, form)
        if not self.keep:
            take(fields, self.field, form)

        def write(element: JsonObject, form: JsonForm) -> None:
            if get(element, self.target, form) is not MISSING:
                raise ConversionError("is there already", self.target)
            put(element, self.target, value, form)

        self._each(fields, form, write)

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:
        """Return the field for that of each element."""
        if upwards or isinstance(place, Beside):
            return place  # where the older version lacked the field, the object has its elements
        depth = depth_of(self.inner, place)
        if depth is None or place[depth : depth + len(self.target)] != self.target:
            return place
        return (*self.field, *place[depth + len(self.target) :])

    def for_patch(self) -> "Spread":
        """Return the same change: a PATCH request gives the elements of arrays as a whole."""
        return self

    def _value(self, fields: JsonObject, form: JsonForm) -> Document:
        holder = reach(fields, self.field, form)
        assert holder is not None  # as the field is there
        return form.close(holder[self.field[-1]])

    def _taken(self, fields: JsonObject, form: JsonForm) -> Iterator[Document]:
        found: list[Document] = []

        def read(element: JsonObject, form: JsonForm) -> None:
            value = take(element, self.target, form)
            if value is not MISSING:
                found.append(form.close(value))

        self._each(fields, form, read)
        yield from found

    def _each(self, fields: JsonObject, form: JsonForm, step: ConversionStep) -> None:
        task = ConversionTask(self.inner, (self.target[:1],), step, keeps=self.keeps)
        for fused in fuse([task]).calls:
            fused(fields, form)
