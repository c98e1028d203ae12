"""`entries` and `index`: a map in one version, a list of objects in the other."""

from collections.abc import Iterator
from functools import partial
from typing import Literal

from gateway.base.model import NonEmptyText
from gateway.conversion.change import Change, rewrite_opened, value_change
from gateway.conversion.changes.change_section import (
    BodySection,
    BuildContext,
    Loss,
    opposite,
)
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import Document, JsonForm, JsonObject, refuse
from gateway.conversion.field_path import Keys, Scope
from gateway.conversion.schema import (
    Flat,
    SchemaImage,
    an_array,
    an_object,
    elements_of,
    field_of,
    properties_of,
    rest_of,
    union,
    wide,
    with_field,
)


class Entries(BodySection):
    """List the members of a map: the older version has a list of objects that contain the keys."""

    keyword = "entries"

    field: str
    """The field, which has the same name in both versions."""
    key: NonEmptyText
    """The field of each listed object that holds its key from the map."""
    value: NonEmptyText | None = None
    """The field of each listed object that holds the value from the map. The default is the object
    itself, without its key."""
    repeated: Literal["refuse", "list"] = "refuse"
    """Whether a key that occurs twice in the list is refused, or each member of the map is a
    list of all values with its key. The default is refuse."""

    def own_losses(self) -> Iterator[Loss]:
        if self.repeated == "list":
            yield Loss(True, f"elements of '{self.field}' with the same key come back together")
            text = f"a key of '{self.field}' with an empty list does not come back"
            yield Loss(False, text, overwrites=False)

    def compile_body(self, context: BuildContext) -> Change | None:
        if self.key == self.value:
            context.mistakes.add("is the field that holds the key; name another field", "value")
        path = context.path(self.field, "field")
        return path and list_entries(
            path.scopes, path.keys, self.key, self.value, in_lists=self.repeated == "list"
        )


Index = opposite(
    Entries,
    "index",
    "Index a list: the older version has a map of its objects, by one of their fields.",
)


def list_entries(
    scopes: tuple[Scope, ...],
    field: Keys,
    key: str,
    value: str | None = None,
    *,
    in_lists: bool = False,
) -> Change:
    """Return a change that converts a map to a list of objects for the older version.

    The order is kept. In both directions, null stays null, and an absent field stays absent.

    Args:
        in_lists: Whether each member of the map is a list of all values with its key. If false, a
            key that occurs twice is refused.
    """
    given = key, value, in_lists
    return value_change(
        scopes,
        field,
        rewrite_opened(partial(_map_of, *given), partial(_map_effect, *given)),
        rewrite_opened(partial(_list_of, *given), partial(_list_effect, *given)),
    )


def _list_effect(
    key: str, value: str | None, in_lists: bool, flat: Flat, image: SchemaImage
) -> object:
    if flat["type"] != "object":
        return image.refused(flat, f"expected an object, found {flat['type']}")
    least, most = len(flat.get("required", ())), None
    keys: Flat = {"type": "string"}
    values = [*properties_of(flat).values()]
    if rest_of(flat) is False:
        most, keys = len(values), {"enum": [*properties_of(flat)]}
    else:
        values.append(rest_of(flat))
    if not values:
        return an_array(False, 0, 0)
    members = union(values)
    if in_lists:
        lists = [one for one in image.alternatives(members) if one["type"] == "array"]
        image.misfit("a member may not be an array")
        # A schema in `allOf` is not recorded as moved, since its location is in another list.
        members, least, most = {"allOf": [union(map(elements_of, lists))]}, 0, None
    if value is not None:
        return wide(an_array(an_object({key: keys, value: members}), least, most))

    def of(member: Flat) -> object:
        if member["type"] != "object":
            return image.refused(member, "expected an object")
        if field_of(member, key) is not False:
            image.refusals.append(f"'{key}' may already exist")
        return with_field(member, key, keys, required=True)

    return wide(an_array(image.each(members, of), least, most))


def _map_effect(
    key: str, value: str | None, in_lists: bool, flat: Flat, image: SchemaImage
) -> object:
    if flat["type"] != "array":
        return image.refused(flat, f"expected an array, found {flat['type']}")
    values: list[object] = []

    def read(element: Flat) -> object:
        if element["type"] == "object":
            rest, _, _ = image.take(element, (key,))
            values.append(rest if value is None else image.take(element, (value,)).value)
        return element

    image.elements(flat, lambda elements: image.each(elements, read))
    members = union(values)
    if in_lists:
        members = wide(an_array({"allOf": [members]}, 1, None))
    made: Flat = {"type": "object", "additionalProperties": members}
    return image.refused(
        flat, "an element may lack its key, or have the key of another element", wide(made)
    )


def _map_of(
    key: str, value: str | None, in_lists: bool, form: JsonForm, elements: Document
) -> Document:
    if not isinstance(elements, list):
        refuse("an array", elements)
    made: JsonObject = {}
    lists: dict[str, list[Document]] = {}
    for index, sealed in enumerate(elements):
        element = form.open(sealed)
        if not isinstance(element, dict):
            refuse("an object", element, index)
        for name in (key, value):
            if name is not None and name not in element:
                raise ConversionError("is missing", (index, name), is_missing=True)
        known = form.open(element.pop(key))
        if not isinstance(known, str):
            refuse("a string", known, index, key)
        if known in made and not in_lists:
            raise ConversionError("is the key of another element too", (index, key))
        member = form.close(element) if value is None else element.pop(value)
        if value is not None and element:
            reason = "a field that the other version cannot hold"
            raise ConversionError(reason, (index, next(iter(element))))
        if in_lists:
            lists.setdefault(known, []).append(member)
        else:
            made[known] = member
    return form.close(lists if in_lists else made)


def _members(
    members: JsonObject, form: JsonForm, *, in_lists: bool
) -> Iterator[tuple[str, Document]]:
    for known, sealed in members.items():
        if not in_lists:
            yield known, sealed
            continue
        several = form.open(sealed)
        if not isinstance(several, list):
            refuse("an array", several, known)
        for one in several:
            yield known, one


def _list_of(
    key: str, value: str | None, in_lists: bool, form: JsonForm, members: Document
) -> Document:
    if not isinstance(members, dict):
        refuse("an object", members)
    made: list[Document] = []
    for known, sealed in _members(members, form, in_lists=in_lists):
        written: JsonObject = {key: known}
        if value is not None:
            made.append(form.close(written | {value: sealed}))
            continue
        member = form.open(sealed)
        if not isinstance(member, dict):
            refuse("an object", member, known)
        if key in member:
            raise ConversionError("already exists, and would become the key", (known, key))
        made.append(form.close(written | member))
    return form.close(made)
