"""`pick`: one element of a list in the newer version is a field of the older version."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from gateway.conversion.change import Change, DirectedChange, in_arrays
from gateway.conversion.changes.change_section import BodySection, BuildContext, Loss
from gateway.conversion.changes.map import MapWord, as_scalar
from gateway.conversion.changes.when import Condition
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import (
    MISSING,
    Document,
    JsonForm,
    JsonObject,
    Number,
    holder_of,
    put,
    refuse,
    take,
)
from gateway.conversion.field_path import Keys, Scope
from gateway.conversion.scalars import Scalar
from gateway.conversion.schema import (
    Flat,
    SchemaImage,
    an_array,
    counts_of,
    elements_of,
    listed,
    union,
    wide,
)

Others = Literal["keep", "drop"]


class Pick(BodySection):
    """Pick an element of a list: the older version has it as a field."""

    keyword = "pick"

    field: str
    """The list in the newer version, such as emails."""
    to: str
    """The field of the older version that holds the element, such as email."""
    where: dict[str, MapWord] | None = None
    """The fields of the element and their values, such as `{ type: primary }`. The first element
    with these values is picked, and the older version has it without these fields. The default is
    the first element."""
    others: Others = "keep"
    """Whether the older version has a list of the other elements (keep), or no list (drop). The
    default is keep."""

    def own_losses(self) -> Iterator[Loss]:
        field, to = f"'{self.field}'", f"'{self.to}'"
        if self.others == "drop":
            yield Loss(False, f"{field} loses all elements except {to}", True)
        else:
            yield Loss(False, f"a PATCH of {to} alone replaces all elements of {field}", True)
            text = f"an element of {field} in the place of {to} comes back as {to}"
            yield Loss(True, text, overwrites=False)
        if self.where:
            text = f"the element that is {to} comes back as the first of {field}"
            yield Loss(False, text, overwrites=self.others == "keep")

    def compile_body(self, context: BuildContext) -> Change | None:
        paths = context.paths((self.field, ("field",)), (self.to, ("to",)))
        if paths is None or not context.apart((paths[0].keys, paths[1].keys)):
            return None
        where: dict[Keys, Scalar] = {}
        for name, word in (self.where or {}).items():
            keys = context.keys(name, "where", name)
            if keys is None:
                return None
            where[keys] = as_scalar(word)
        if not context.apart(tuple(where)):
            return None
        return pick(paths[0].scopes, paths[0].keys, paths[1].keys, where, self.others)


def pick(
    scopes: tuple[Scope, ...],
    field: Keys,
    to: Keys,
    where: Mapping[Keys, Scalar],
    others: Others = "keep",
) -> Change:
    """Return the change of a list whose picked element is a field of the older version.

    A downgrade removes the element from the list, and an upgrade makes it the first element. If no
    element is picked, the field is absent. A JSON Patch of the list or the field is refused,
    because it names elements by their positions.

    Args:
        where: The values of fields that the picked element has; empty for the first element.
        others: Whether the older version has a list of the other elements. With `drop`, null stays
            null.
    """
    steps = _Pick(field, to, where, others == "keep")
    touches, down = (field[:1], to[:1]), DirectedChange(steps.down, steps.picked)
    change = Change(scopes, touches, DirectedChange(steps.up, steps.put_back), down)
    if others == "drop" or in_arrays(scopes):
        return change
    in_patch = replace(steps, in_patch=True)
    patch = Change(scopes, touches, DirectedChange(in_patch.up, in_patch.put_back), down)
    return replace(change, patch=patch)


@dataclass(frozen=True, slots=True)
class _Pick:
    field: Keys
    to: Keys
    where: Mapping[Keys, Scalar]
    keeps: bool
    in_patch: bool = False

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        holder = holder_of(fields, self.field, form)
        if holder is None:
            return
        self._refuse_places(self.field, form)
        elements = form.open(holder[self.field[-1]])
        found: Document = MISSING
        if elements is None:
            found = MISSING if self.keeps else None
        elif not isinstance(elements, list):
            refuse("an array", elements, *self.field)
        else:
            found = self._taken(elements, form)
        if not self.keeps or (found is not MISSING and not elements):
            take(fields, self.field, form)
        elif found is not MISSING:
            holder[self.field[-1]] = form.close(elements)
        if found is MISSING:
            return
        if holder_of(fields, self.to, form) is not None:
            raise ConversionError("already exists", self.to, rival=self.field)
        put(fields, self.to, found, form)

    def _taken(self, elements: list[Document], form: JsonForm) -> Document:
        if not self.where:
            is_there = bool(elements) and form.open(elements[0]) is not None
            return elements.pop(0) if is_there else MISSING
        conditions = [_condition(keys, value) for keys, value in self.where.items()]
        for index, sealed in enumerate(elements):
            element = form.open(sealed)
            if isinstance(element, dict) and all(one.holds(element, form) for one in conditions):
                for keys in self.where:
                    take(element, keys, form)
                del elements[index]
                return form.close(element)
        return MISSING

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        found = take(fields, self.to, form)
        holder = holder_of(fields, self.field, form)
        given = holder is not None
        if found is MISSING:
            if given:
                self._refuse_places(self.field, form)
            if given and self.in_patch:
                reason = "also replaces the element that is a field of its own; send both, or a PUT"
                raise ConversionError(reason, self.field)
            return
        self._refuse_places(self.to, form)
        opened = form.open(found)
        if opened is None:
            if self.in_patch and not given:
                reason = "null would remove an element of a list that the patch lacks; send a PUT"
                raise ConversionError(reason, self.to)
            if not (given or self.keeps):
                put(fields, self.field, None, form)
            return
        if self.where:
            if not isinstance(opened, dict):
                refuse("an object", opened, *self.to)
            for keys, value in self.where.items():
                if holder_of(opened, keys, form) is not None:
                    raise ConversionError("already exists", (*self.to, *keys))
                made = form.number(value.digits) if isinstance(value, Number) else value
                put(opened, keys, made, form)
            found = form.close(opened)
        others = None if holder is None else form.open(holder[self.field[-1]])
        if not isinstance(others, list | None):
            refuse("an array", others, *self.field)
        put(fields, self.field, form.close([found, *(others or ())]), form)

    def _refuse_places(self, place: Keys, form: JsonForm) -> None:
        if form.of_places:
            reason = "has elements whose positions differ between the versions; send a merge patch"
            raise ConversionError(reason, place)

    def picked(self, flat: Flat, image: SchemaImage) -> object:
        rest, value, _ = image.take(flat, self.field)
        found, left = list[object](), list[object]()
        for one in image.alternatives(value):
            if one["type"] == "null":
                (left if self.keeps else found).append(one)
            elif one["type"] != "array":
                image.misfit(f"expected an array, found {one['type']}")
            else:
                least, most = counts_of(one)
                items = elements_of(one)
                left.append(wide(an_array(items, max(0, least - 1), most)))
                if most != 0:
                    found.append(image.each(items, lambda each: self._stripped(each, image)))
        if image.may_have(rest, self.to):
            image.refusals.append(f"'{self.to[-1]}' may already exist")
        made: object = rest
        if self.keeps:
            made = image.put(rest, self.field, _new(left), required=False)
        return image.put(made, self.to, _new(found), required=False) if found else made

    def _stripped(self, flat: Flat, image: SchemaImage) -> object:
        if not self.where:
            return False if flat["type"] == "null" else flat
        if flat["type"] != "object":
            return False
        made: object = flat
        for keys in self.where:
            made = image.each(made, partial(_without, keys, image))
        return made

    def put_back(self, flat: Flat, image: SchemaImage) -> object:
        rest, value, _ = image.take(flat, self.to)
        if self.in_patch and image.may_have(rest, self.field):
            image.refusals.append(f"a patch may have '{self.field[-1]}' without '{self.to[-1]}'")
        found: list[object] = []
        for one in image.alternatives(value):
            if one["type"] == "null":
                if self.in_patch:
                    image.refusals.append(f"'{self.to[-1]}' of a patch may be null")
                continue
            made: object = one
            if self.where and one["type"] != "object":
                image.misfit("expected an object")
                continue
            for keys, word in self.where.items():
                constant = listed([_plain(word)])
                image.refusals.append(f"'{keys[-1]}' may already exist")
                made = image.put(made, keys, constant, required=True)
            found.append(made)
        before = image.take(rest, self.field).value
        lists = [one for one in image.alternatives(before) if one["type"] == "array"]
        if any(one["type"] not in ("array", "null") for one in image.alternatives(before)):
            image.misfit("the other elements may not be an array")
        items = union((*(elements_of(one) for one in lists), *found))
        element = wide(an_array(items, 0, None))
        nothing: list[object] = [] if self.keeps else [{"type": "null"}]
        made = _new((before, element, *nothing))
        return image.put(rest, self.field, made, required=False) if found else rest


def _new(schemas: Iterable[object]) -> object:
    """Return a union of schemas as that of a new value, which no change has moved."""
    return {"allOf": [union(schemas)]}


def _condition(keys: Keys, value: Scalar) -> Condition:
    return Condition(keys, (value,), frozenset(), negated=False, text="")


def _without(keys: Keys, image: SchemaImage, flat: Flat) -> object:
    return image.take(flat, keys).rest


def _plain(value: Scalar) -> object:
    if isinstance(value, Number):
        return int(value.digits) if value.digits.lstrip("-").isdigit() else float(value.digits)
    return value
