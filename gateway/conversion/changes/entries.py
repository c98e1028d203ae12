"""`entries` and `index`: a map in one version, a list of objects in the other."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from gateway.base.model import NonEmptyText
from gateway.conversion.change import Change, FieldChange, Inverse
from gateway.conversion.changes.build_context import BodyContext
from gateway.conversion.changes.change_section import BodySection, Loss
from gateway.conversion.conversion_error import ConversionError, ErrorPlace, is_within
from gateway.conversion.document import Document, JsonForm, JsonObject, change_value, refuse
from gateway.conversion.schema import (
    Flat,
    SchemaImage,
    an_array,
    an_object,
    field_of,
    properties_of,
    rest_of,
    union,
    wide,
    with_field,
)


@dataclass(frozen=True, slots=True)
class Entries(FieldChange):
    """The newer version has a map, the older one a list of objects that hold the keys.

    The order stays. Null stays null, and an absent field stays absent, both ways.

    Attributes:
        key: The field of each object that holds the key.
        value: The field of each object that holds the value; None where the value is the object
            itself, without its key.
    """

    key: str
    value: str | None = None

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        change_value(fields, self.field, form, partial(self._map, form))

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        change_value(fields, self.field, form, partial(self._list, form))

    def value_effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        if upwards:
            return self._map_of(flat, image)
        if flat["type"] != "object":
            return image.refused(flat, f"expected an object, found {flat['type']}")
        least, most = len(flat.get("required", ())), None
        key: Flat = {"type": "string"}
        values = [*properties_of(flat).values()]
        if rest_of(flat) is False:
            most, key = len(values), {"enum": [*properties_of(flat)]}
        else:
            values.append(rest_of(flat))
        if not values:
            return an_array(False, 0, 0)
        value = union(values)
        if self.value is not None:
            return wide(an_array(an_object({self.key: key, self.value: value}), least, most))

        def of(member: Flat) -> object:
            if member["type"] != "object":
                return image.refused(member, "expected an object")
            if field_of(member, self.key) is not False:
                image.refusals.append(f"'{self.key}' may be there already")
            return with_field(member, self.key, key, required=True)

        return wide(an_array(image.each(value, of), least, most))

    def _map_of(self, flat: Flat, image: SchemaImage) -> object:
        if flat["type"] != "array":
            return image.refused(flat, f"expected an array, found {flat['type']}")
        values: list[object] = []

        def read(element: Flat) -> object:
            if element["type"] == "object":
                rest, _, _ = image.take(element, (self.key,))
                value = rest if self.value is None else image.take(element, (self.value,)).value
                values.append(value)
            return element

        image.elements(flat, lambda elements: image.each(elements, read))
        made: Flat = {"type": "object", "additionalProperties": union(values)}
        return image.refused(
            flat, "an element may lack its key, or have that of another", wide(made)
        )

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:  # as others ask it
        return self.field if is_within(place, self.field) else place

    def _map(self, form: JsonForm, elements: Document) -> Document:
        if not isinstance(elements, list):
            refuse("an array", elements)
        made: JsonObject = {}
        for index, sealed in enumerate(elements):
            element = form.open(sealed)
            if not isinstance(element, dict):
                refuse("an object", element, index)
            for name in (self.key, self.value):
                if name is not None and name not in element:
                    raise ConversionError("is missing", (index, name), is_missing=True)
            key = form.open(element.pop(self.key))
            if not isinstance(key, str):
                refuse("a string", key, index, self.key)
            if key in made:
                raise ConversionError("is the key of another element too", (index, self.key))
            if self.value is None:
                made[key] = form.close(element)
                continue
            made[key] = element.pop(self.value)
            if element:
                reason = "a field for which the other version has no place"
                raise ConversionError(reason, (index, next(iter(element))))
        return form.close(made)

    def _list(self, form: JsonForm, members: Document) -> Document:
        if not isinstance(members, dict):
            refuse("an object", members)
        return form.close([self._element(form, key, one) for key, one in members.items()])

    def _element(self, form: JsonForm, key: str, sealed: Document) -> Document:
        written: JsonObject = {self.key: key}
        if self.value is not None:
            return form.close(written | {self.value: sealed})
        member = form.open(sealed)
        if not isinstance(member, dict):
            refuse("an object", member, key)
        if self.key in member:
            raise ConversionError("is there already, for the key", (key, self.key))
        return form.close(written | member)


class _EntriesSection(BodySection):
    """What the two changes have in common.

    Attributes:
        inverse: whether the newer version has the list, else the older one.
    """

    field: str
    """The field, which has the same name in both versions."""
    key: NonEmptyText
    """The field of each object of the list that holds its key in the map."""
    value: NonEmptyText | None = None
    """The field of each object of the list that holds the value in the map. The default is the
    object itself, without its key."""

    inverse: ClassVar[bool] = False

    def losses(self) -> Iterable[Loss]:
        return ()

    def body_change(self, context: BodyContext) -> Change | None:
        if self.key == self.value:
            context.complain("is the field that holds the key; name another", "value")
        path = context.path(self.field, "field")
        if path is None:
            return None
        change = Entries(path.scopes, path.keys, self.key, self.value)
        return Inverse(change) if self.inverse else change


class EntriesConfig(_EntriesSection):
    """List the members of a map: the older version has a list of objects with the keys in them."""

    keyword = "entries"


class IndexConfig(_EntriesSection):
    """Index a list: the older version has a map of its objects, by one of their fields."""

    keyword = "index"

    inverse = True
