"""`wrap` and `unwrap`: a single value in one version, a list in the other.

For a query parameter or header field, a list is a repeated parameter.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from gateway.conversion.change import Change, DirectedChange, in_arrays, keep_unfit, whole_body
from gateway.conversion.changes.change_section import (
    BodySection,
    BuildContext,
    Loss,
    ParameterSection,
    opposite,
)
from gateway.conversion.conversion_error import Beside, ConversionError, ErrorPlace, moved_back
from gateway.conversion.document import JsonForm, JsonObject, holder_of, reach, refuse
from gateway.conversion.field_path import Keys, Scope
from gateway.conversion.parameter_change import (
    ParameterChange,
    ParameterLines,
    Spelling,
    same_name,
)
from gateway.conversion.schema import (
    Flat,
    SchemaImage,
    an_array,
    counts_of,
    elements_of,
    requires,
    union,
    with_field,
)
from gateway.conversion.steps import BODY

Several = Literal["first", "refuse", "keep"]
Nothing = Literal["null", "absent", "list"]


def _cut(field: str) -> Loss:
    return Loss(True, f"of several elements, {field} keeps the first", True)


class Wrap(BodySection):
    """Wrap a value: the older version has a list, and the newer version a single value."""

    keyword = "wrap"

    field: str | None = None
    """The field, which has the same name in both versions, or the elements of an array, such as
    `rows[]`; the default is the whole body."""
    many: Several = "first"
    """The result for a list of several elements: its first element (first), a refusal (refuse), or
    the unchanged list (keep). The default is first."""
    empty: Nothing = "null"
    """The result for an empty list: null, no field (absent), or the unchanged list (list). The
    default is null."""

    def own_losses(self) -> Iterator[Loss]:
        named = "the body" if self.field is None else f"'{self.field}'"
        if self.many == "first":
            yield _cut(named)
        if self.empty == "absent":
            lost = f"where {named} is absent, it comes back as an empty list"
            yield Loss(True, lost, overwrites=False)

    def compile_body(self, context: BuildContext) -> Change | None:
        if self.empty == "absent" and (self.field is None or self.field.endswith(("[]", "*"))):
            context.mistakes.add("is only valid for a field; write null or list", "empty")
        if self.field is None:
            change = wrap((), BODY, self.many, self.empty)
            return whole_body(change, keep_unfit(change))
        return context.value_change(
            self.field, lambda scopes, keys: wrap(scopes, keys, self.many, self.empty), "field"
        )


Unwrap = opposite(
    Wrap, "unwrap", "Unwrap a list: the older version has a single value, the newer one a list."
)


class WrapParameter(ParameterSection):
    """Repeat a parameter: the older version may have several values, the newer version one."""

    keyword = "wrap"

    field: str
    """The parameter, which has the same name in both versions."""
    many: Literal["first", "refuse"] = "first"
    """The result for several values: the first value, or a refusal. The default is first."""

    def own_losses(self) -> Iterator[Loss]:
        if self.many == "first":
            yield _cut(f"'{self.field}'")

    def compile_parameter(self, context: BuildContext) -> ParameterChange:
        return wrap_parameter(context.name(self.field, "field"), strict=self.many == "refuse")


UnwrapParameter = opposite(
    WrapParameter,
    "unwrap",
    "Keep one of several values: the older version does not repeat the parameter.",
)


def wrap(
    scopes: tuple[Scope, ...], field: Keys, many: Several = "first", empty: Nothing = "null"
) -> Change:
    """Return a change that puts a value into a list for the older version.

    A downgrade makes the value the only element of a list, and an upgrade takes the only element
    out of the list. Null stays null, unless `empty` is null.

    Args:
        many: The result for a list of several elements: its first element, a refusal, or the
            unchanged list (keep). With keep, an only element that is null or a list is refused,
            because a downgrade could not restore it.
        empty: The equivalent of an empty list in the newer version.
    """
    patch = None
    if empty == "absent" and not in_arrays(scopes):
        # In a PATCH request, an absent field is not changed, and null removes a field (RFC 7396).
        patch = wrap(scopes, field, many, "null")
    steps = _Wrap(field, many, empty)
    up = DirectedChange(steps.up, steps.unwrapped, steps.origin_in_list)
    down = DirectedChange(steps.down, steps.wrapped, steps.origin_of_element, lists=field)
    return Change(scopes, (field,), up, down, of_value=True, patch=patch)


@dataclass(frozen=True, slots=True)
class _Wrap:
    field: Keys
    many: Several
    empty: Nothing

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        holder = holder_of(fields, self.field, form)
        if holder is None:
            return
        key = self.field[-1]
        values = form.open(holder[key])
        if values is None:
            return
        if not isinstance(values, list):
            refuse("an array", values, *self.field)
        if len(values) > 1 and self.many == "refuse":
            raise ConversionError("an array of several elements", self.field)
        if len(values) > 1 and self.many == "keep":
            return
        if values:
            if self.many == "keep" and isinstance(form.open(values[0]), list | None):
                reason = "is the only element, and would come back as the whole array"
                raise ConversionError(reason, (*self.field, 0))
            holder[key] = values[0]
        elif self.empty == "null":
            holder[key] = None
        elif self.empty == "absent":
            del holder[key]

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        holder = fields if len(self.field) == 1 else reach(fields, self.field, form)
        if holder is None:
            return
        key = self.field[-1]
        if key not in holder:
            # A form has no empty list.
            if self.empty == "absent" and form.typed:
                holder[key] = []
            return
        value = form.open(holder[key])
        if value is None:
            if self.empty == "null" and not form.of_places:
                holder[key] = []
        elif not isinstance(value, list) or (
            self.many != "keep" and (value or self.empty != "list")
        ):
            holder[key] = [holder[key]]

    def wrapped(self, flat: Flat, image: SchemaImage) -> object:
        made = image.value(flat, self.field, self._list_of, nulls=True)
        if self.empty != "absent":
            return made

        def filled(holder: Flat) -> object:
            key = self.field[-1]
            schema = union((image.field(holder, key), an_array(False, 0, 0)))
            if requires(holder, key):
                return holder
            return with_field(holder, key, schema, required=True)

        return image.each(made, lambda one: image.reach(one, self.field[:-1], filled))

    def _list_of(self, flat: Flat) -> object:
        if flat["type"] == "null":
            return an_array(False, 0, 0) if self.empty == "null" else flat
        if flat["type"] == "array":
            if self.many == "keep":
                return flat
            if self.empty == "list":
                least, most = counts_of(flat)
                empty = [] if least else [an_array(False, 0, 0)]
                return union((*empty, *([] if most == 0 else [an_array(flat, 1, 1)])))
        return an_array(flat, 1, 1)

    def unwrapped(self, flat: Flat, image: SchemaImage) -> object:
        return image.reach(flat, self.field[:-1], lambda one: self._unwrapped(image, one))

    def _unwrapped(self, image: SchemaImage, holder: Flat) -> object:
        key = self.field[-1]
        required = requires(holder, key)
        found: list[object] = []
        for flat in image.alternatives(image.field(holder, key)):
            if flat["type"] == "null":
                found.append(flat)
                continue
            if flat["type"] != "array":
                found.append(image.refused(flat, f"expected an array, found {flat['type']}"))
                continue
            least, most = counts_of(flat)
            if least == 0:
                required = required and self.empty != "absent"
                found += [{"type": "null"}] if self.empty == "null" else []
                found += [an_array(False, 0, 0)] if self.empty == "list" else []
            only: object = False
            if most != 0 and (least < 2 or self.many == "first"):
                only = self._only(flat, image)
                found.append(only)
            if (most is None or most > 1) and self.many != "first":
                several = {**flat, "minItems": max(2, least)}
                keeps = self.many == "keep"
                found.append(
                    several
                    if keeps
                    else image.refused(flat, "an array may have several elements", only)
                )
        if not found:
            return holder
        return with_field(holder, key, union(found), required=required)

    def _only(self, flat: Flat, image: SchemaImage) -> object:
        items = elements_of(flat)
        if self.many != "keep":
            return items
        listed = [one for one in image.alternatives(items) if one["type"] in ("array", "null")]
        if not listed:
            return items
        others = [one for one in image.alternatives(items) if one not in listed]
        return image.refused(flat, "a single element may be a list or null", union(others))

    def origin_in_list(self, place: ErrorPlace) -> ErrorPlace:
        if self._stays(place):
            return place
        return moved_back(place, self.field, (*self.field, 0))

    def origin_of_element(self, place: ErrorPlace) -> ErrorPlace:
        if self._stays(place):
            return place
        return moved_back(place, (*self.field, 0), self.field)

    def _stays(self, place: ErrorPlace) -> bool:
        depth = len(self.field)
        if self.many != "keep" or isinstance(place, Beside) or place[:depth] != self.field:
            return False
        return isinstance(next(iter(place[depth:]), None), int)


def wrap_parameter(name: str, *, strict: bool = False) -> ParameterChange:
    """Return a change whose upgrade keeps only the first value, or refuses several if `strict`."""

    def up(lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        key = spelling.key(name)
        places = [index for index, line in enumerate(lines) if line.key == key]
        if len(places) < 2:
            return lines
        if strict:
            raise ConversionError("occurs twice", Beside(spelling.what, (name,)))
        return [line for at, line in enumerate(lines) if at == places[0] or line.key != key]

    return ParameterChange(same_name(name), up, lambda lines, _: lines)
