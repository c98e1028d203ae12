"""`omit_null` and `fill_null`: one version has null (or another value), the other no field."""

import json
from collections.abc import Iterator
from copy import copy
from functools import partial

from pydantic import JsonValue

from gateway.conversion.change import UNCHANGED, Change, DirectedChange, in_arrays
from gateway.conversion.changes.change_section import BodySection, BuildContext, Loss, opposite
from gateway.conversion.document import (
    PLAIN,
    Document,
    JsonForm,
    JsonObject,
    Number,
    get,
    reach,
    same,
    take,
)
from gateway.conversion.field_path import Keys, Scope
from gateway.conversion.scalars import is_same_number
from gateway.conversion.schema import (
    Flat,
    SchemaImage,
    listed,
    requires,
    type_of,
    union,
    with_field,
    words_of,
)


class OmitNull(BodySection):
    """Omit null: the older version has no field if the newer one has null."""

    keyword = "omit_null"

    field: str
    """The field, which has the same name in both versions."""
    value: JsonValue = None
    """The value instead of null: a string, number or boolean, `[]` or `{}`."""

    def own_losses(self) -> Iterator[Loss]:
        value = json.dumps(self.value, ensure_ascii=False)
        absent = f"where '{self.field}' is absent, it comes back as {value}"
        yield Loss(False, absent, overwrites=False)
        omitted = f"where '{self.field}' is {value}, it comes back as absent"
        yield Loss(True, omitted, overwrites=self.value not in (None, [], {}))

    def compile_body(self, context: BuildContext) -> Change | None:
        path = context.path(self.field, "field")
        if isinstance(self.value, list | dict) and self.value:
            context.mistakes.add("write a string, number or boolean, [] or {}", "value")
        return path and omit_null(path.scopes, path.keys, self.value)


FillNull = opposite(
    OmitNull, "fill_null", "Fill in null: the older version has null if the newer one has no field."
)


def omit_null(scopes: tuple[Scope, ...], field: Keys, value: Document = None) -> Change:
    """Return the change of a field that the older version omits if it is null.

    A downgrade removes a null field, and the objects on the path that become empty. An upgrade adds
    the absent field with the value null if the object around it exists. Other values are unchanged,
    as is null in the older version. HTML forms are unchanged, because they cannot contain null.
    PATCH requests are unchanged, because null and absent fields have another meaning there (RFC
    7396).
    """
    touches = (field[:1],)

    def up(fields: JsonObject, form: JsonForm) -> None:
        if not form.of_places and (form.typed or isinstance(value, str)):
            holder = reach(fields, field, form)
            if holder is not None:
                holder.setdefault(field[-1], copy(value))

    def down(fields: JsonObject, form: JsonForm) -> None:
        if not form.of_places and _same(get(fields, field, form), PLAIN.open(value)):
            take(fields, field, form)

    def filled(flat: Flat, image: SchemaImage) -> object:
        def of(holder: Flat) -> object:
            key = field[-1]
            before = image.field(holder, key)
            if requires(holder, key):
                return holder
            return with_field(holder, key, union((before, listed([value]))), required=True)

        return image.reach(flat, field[:-1], of)

    def omitted(flat: Flat, image: SchemaImage) -> object:
        taken = image.take(flat, field)
        values = image.alternatives(taken.value)
        if not any(_may_be(value, one) for one in values):
            return flat
        others = partial(_others, value)
        if len(field) == 1:
            return with_field(flat, field[0], union(map(others, values)), required=False)
        return union((image.value(flat, field, others, nulls=True), taken.rest))

    patch = None if in_arrays(scopes) else Change(scopes, touches, UNCHANGED, UNCHANGED)
    return Change(
        scopes, touches, DirectedChange(up, filled), DirectedChange(down, omitted), patch=patch
    )


def _may_be(value: Document, flat: Flat) -> bool:
    words = words_of(flat)
    if words is not None:
        return any(same(word, value) for word in words)
    kind = type_of(value)
    return bool(flat["type"] == kind or (kind == "integer" and flat["type"] == "number"))


def _others(value: Document, flat: Flat) -> object:
    if flat["type"] == "null" and value is None:
        return False
    words = words_of(flat)
    if words is None or not _may_be(value, flat):
        return flat
    return listed(word for word in words if not same(word, value))


def _same(one: Document, other: Document) -> bool:
    if isinstance(one, Number) and isinstance(other, Number):
        return is_same_number(one.digits, other.digits)
    return type(one) is type(other) and one == other
