"""`flatten` and `nest`: an object in one version, prefixed fields instead of it in the other."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from pydantic import JsonValue

from gateway.conversion.change import Change, DirectedChange, in_arrays
from gateway.conversion.changes.change_section import BodySection, BuildContext, Loss, opposite
from gateway.conversion.conversion_error import Beside, ConversionError, ErrorPlace
from gateway.conversion.document import MISSING, Document, JsonForm, JsonObject, reach, refuse
from gateway.conversion.field_path import Keys, Scope
from gateway.conversion.schema import (
    Flat,
    SchemaImage,
    an_object,
    field_of,
    listed,
    properties_of,
    requires,
    rest_of,
    union,
    wide,
    with_field,
)


class Flatten(BodySection):
    """Flatten an object: the older version has its members as fields with a prefix instead."""

    keyword = "flatten"

    field: str
    """The field with the object, such as attributes."""
    prefix: str
    """The prefix of the fields in the other version, such as attr_."""
    but: tuple[str, ...] = ()
    """The other version's fields with this prefix that are not members of the object."""
    default: JsonValue = None
    """The value of the field if the other version has no field with the prefix: `{}` or null.
    Without it, the field is absent."""

    def own_losses(self) -> Iterator[Loss]:
        back = "absent" if self._default is MISSING else json.dumps(self.default)
        empty = f"where '{self.field}' is absent, null or empty, it comes back as {back}"
        yield Loss(False, empty, overwrites=False)

    def compile_body(self, context: BuildContext) -> Change | None:
        if self.default not in (None, {}):
            context.mistakes.add("write {} or null", "default")
        if not self.prefix and not self.but:
            context.mistakes.add(
                "is empty, so it applies to all fields; list the exceptions in but", "prefix"
            )
        for index, name in enumerate(self.but):
            if not name.startswith(self.prefix):
                context.mistakes.add(
                    f"does not begin with '{self.prefix}'; remove it", "but", index
                )
        path = context.path(self.field, "field")
        if path is None:
            return None
        but = frozenset(self.but)
        return flatten(path.scopes, path.keys, self.prefix, but, self._default)

    @property
    def _default(self) -> object:
        return self.default if "default" in self.model_fields_set else MISSING


Nest = opposite(
    Flatten,
    "nest",
    "Nest fields: the older version has an object of those with a prefix, without it.",
)


def flatten(
    scopes: tuple[Scope, ...],
    field: Keys,
    prefix: str,
    but: frozenset[str] = frozenset(),
    empty: Document = MISSING,
    *,
    in_patch: bool = False,
) -> Change:
    """Return a change that replaces an object by fields with a prefix for the older version.

    A downgrade drops an object without members, and null. It refuses a document with another field
    that has the prefix, because the upgrade would move this field into the object.

    Args:
        empty: The value of the object if the older version has no field with the prefix: an empty
            object, null, or MISSING for an absent object.
        in_patch: Whether the change is for PATCH requests (RFC 7396). There, null removes the
            object, which the older version cannot express, and absent fields are not changed.
    """
    patch = None
    if not in_patch and not in_arrays(scopes):
        patch = flatten(scopes, field, prefix, but, in_patch=True)
    steps = _Flatten(field, prefix, but, empty, in_patch)
    up = DirectedChange(steps.up, steps.gathered, steps.origin_beside)
    down = DirectedChange(steps.down, steps.scattered, steps.origin_inside)
    return Change(scopes, (field[:-1],), up, down, of_value=True, patch=patch)


@dataclass(frozen=True, slots=True)
class _Flatten:
    field: Keys
    prefix: str
    but: frozenset[str]
    empty: Document
    in_patch: bool

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        holder = reach(fields, self.field, form)
        if holder is None:
            return
        length = len(self.prefix)
        names = [name for name in holder if self._is_flat(name)]
        members = {name[length:]: holder.pop(name) for name in names}
        if self.field[-1] in holder:
            raise ConversionError("already exists", self.field)
        if members:
            holder[self.field[-1]] = form.close(members)
        elif self.empty is not MISSING and not form.of_places:
            holder[self.field[-1]] = self.empty

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        holder = reach(fields, self.field, form)
        if holder is None:
            return
        members = form.open(holder.pop(self.field[-1], {}))
        for name in holder:
            if self._is_flat(name):
                reason = "would become a member of another field in the reverse direction"
                raise ConversionError(reason, (*self.field[:-1], name))
        if members is None and not self.in_patch:
            return
        if not isinstance(members, dict):
            refuse("an object", members, *self.field)
        for key, value in members.items():
            name = f"{self.prefix}{key}"
            if name in self.but:
                reason = f"becomes '{name}', which is another field"
                raise ConversionError(reason, (*self.field, key))
            holder[name] = value

    def gathered(self, flat: Flat, image: SchemaImage) -> object:
        image.record_reads(())
        return image.reach(flat, self.field[:-1], partial(self._gathered, image))

    def scattered(self, flat: Flat, image: SchemaImage) -> object:
        image.record_reads(())
        return image.reach(flat, self.field[:-1], partial(self._scattered, image))

    def _gathered(self, image: SchemaImage, holder: Flat) -> object:
        length, members, made = len(self.prefix), dict[str, object](), holder
        required: list[str] = []
        image.record_optional_read(f"{self.prefix}*", prefix=self.prefix, but=self.but)
        for name in sorted(self.but):
            image.record_optional_read(name)
        image.record_write(self.field[-1:], {"type": "object"})
        for name, member in properties_of(holder).items():
            if self._is_flat(name):
                members[name[length:]] = member
                required += [name[length:]] if requires(holder, name) else []
                made = image.take(made, (name,)).rest
        rest, key = rest_of(holder), self.field[-1]
        if field_of(made, key) is not False:
            image.refusals.append(f"'{key}' may already exist")
        found: list[object] = []
        if len(members) == 1 and rest is False:
            found.append(an_object(members))
        elif required:
            found.append({**an_object(members, required), "additionalProperties": rest})
        elif members or rest is not False:
            one = {**an_object(members, ()), "additionalProperties": rest, "minProperties": 1}
            found.append(wide(one))
        fills = not required and self.empty is not MISSING
        if fills:
            found.append(listed([self.empty]))
        if not found:
            return made
        return with_field(made, key, union(found), required=fills or bool(required))

    def _scattered(self, image: SchemaImage, holder: Flat) -> object:
        key = self.field[-1]
        rest, schema, _ = image.take(holder, (key,))
        free = rest_of(rest) is not False
        if free or any(map(self._is_flat, properties_of(rest))):
            image.refusals.append("a field may become a member in the reverse direction")
        found: list[object] = [] if requires(holder, key) else [rest]
        for one in image.alternatives(schema):
            if one["type"] == "null" and not self.in_patch:
                found.append(rest)
            elif one["type"] != "object":
                image.refused(one, f"expected an object, found {one['type']}")
            else:
                found.append(self._beside(image, rest, one))
        return union(found)

    def _beside(self, image: SchemaImage, holder: Flat, members: Flat) -> object:
        made = holder
        for name, schema in properties_of(members).items():
            beside = f"{self.prefix}{name}"
            if beside in self.but:
                image.refusals.append(f"'{beside}' is another field")
            made = with_field(made, beside, schema, required=requires(members, name))
        more = rest_of(members)
        if more is not False:
            if self.but:
                image.refusals.append("a member may become another field")
            made = wide({**made, "additionalProperties": union((rest_of(made), more))})
        return made

    def origin_beside(self, place: ErrorPlace) -> ErrorPlace:
        depth, outer = len(self.field), self.field[:-1]
        if isinstance(place, Beside) or place[:depth] != self.field:
            return place
        # The object was created from fields of the outer object.
        inner = place[depth:]
        return (*outer, f"{self.prefix}{inner[0]}", *inner[1:]) if inner else outer

    def origin_inside(self, place: ErrorPlace) -> ErrorPlace:
        depth, outer = len(self.field), self.field[:-1]
        if isinstance(place, Beside) or place[: depth - 1] != outer or not place[depth - 1 :]:
            return place
        name = str(place[depth - 1])
        if not self._is_flat(name):
            return place
        return (*self.field, name[len(self.prefix) :], *place[depth:])

    def _is_flat(self, name: str) -> bool:
        return name.startswith(self.prefix) and name not in self.but
