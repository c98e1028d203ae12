"""Entries: the older version has a list of objects where the newer has a map. Its inverse: `index`.

One field of each object is the key that it has in the map.
"""

from dataclasses import dataclass
from functools import partial

from gateway.conversion.change import FieldChange
from gateway.conversion.conversion_error import ConversionError, ErrorPlace, is_within
from gateway.conversion.document import Document, JsonForm, JsonObject, change_value, refuse


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
        """Make a map of the list."""
        change_value(fields, self.field, form, partial(self._map, form))

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Make a list of the map."""
        change_value(fields, self.field, form, partial(self._list, form))

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:  # as others ask it
        """Return the whole list, or the whole map."""
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
