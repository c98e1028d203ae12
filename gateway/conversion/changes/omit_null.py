"""`omit_null` and `fill_null`: null, or another value, in one version, no field in the other."""

import json
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from pydantic import JsonValue

from gateway.conversion.change import Change, Inverse
from gateway.conversion.changes.build_context import BodyContext
from gateway.conversion.changes.change_section import BodySection, Loss
from gateway.conversion.conversion_error import ErrorPlace
from gateway.conversion.document import (
    PLAIN,
    Document,
    JsonForm,
    JsonObject,
    Number,
    get,
    reach,
    take,
)
from gateway.conversion.field_path import Keys, Scope, is_array
from gateway.conversion.scalars import is_same_number
from gateway.conversion.schema import (
    Flat,
    SchemaImage,
    listed,
    requires,
    same,
    type_of,
    union,
    with_field,
    words_of,
)


@dataclass(frozen=True, slots=True)
class OmitNull:
    """The newer version has null where the older one leaves the field out.

    Downwards, a field that is null is removed, and with it a container that this empties. Upwards,
    a field that is absent becomes null, if the object is there that it belongs to. Other values
    stay, and so does a null of the older version. A form has no null, and stays as it is.

    Attributes:
        value: what stands for no field in place of null: a scalar, an empty array or object.
        in_patch: whether it is for a PATCH request, where it has no effect: null removes a field
            there, and one that is absent stays as it is (RFC 7396).
    """

    scopes: tuple[Scope, ...]
    field: Keys
    value: Document = None
    in_patch: bool = False

    @property
    def touches(self) -> tuple[Keys, ...]:
        return (self.field[:1],)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        stays = self._stays(form) or not (form.typed or isinstance(self.value, str))
        holder = None if stays else reach(fields, self.field, form)
        if holder is not None:
            holder.setdefault(self.field[-1], copy(self.value))

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        if self._stays(form):
            return
        if _same(get(fields, self.field, form), PLAIN.open(self.value)):
            take(fields, self.field, form)

    def effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        if self.in_patch:
            return flat
        if upwards:
            return image.reach(flat, self.field[:-1], partial(self._filled, image))
        taken = image.take(flat, self.field)
        values = image.alternatives(taken.value)
        if not any(map(self._may_be, values)):
            return flat
        if len(self.field) == 1:
            others = union(map(self._others, values))
            return with_field(flat, self.field[0], others, required=False)
        return union((image.value(flat, self.field, self._others, nulls=True), taken.rest))

    def _filled(self, image: SchemaImage, holder: Flat) -> object:
        key = self.field[-1]
        before = image.field(holder, key)
        if requires(holder, key):
            return holder
        schema = union((before, listed([self.value])))
        return with_field(holder, key, schema, required=True)

    def _may_be(self, flat: Flat) -> bool:
        """Whether a value of a schema may be the one that stands for no field."""
        words = words_of(flat)
        if words is not None:
            return any(same(word, self.value) for word in words)
        kind = type_of(self.value)
        return flat["type"] == kind or (kind == "integer" and flat["type"] == "number")

    def _others(self, flat: Flat) -> object:
        """Return the schema of all other values."""
        if flat["type"] == "null" and self.value is None:
            return False
        words = words_of(flat)
        if words is None or not self._may_be(flat):
            return flat
        return listed(word for word in words if not same(word, self.value))

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:  # as others ask it
        return place

    def for_patch(self) -> "OmitNull":
        return replace(self, in_patch=not any(map(is_array, self.scopes)))

    def _stays(self, form: JsonForm) -> bool:
        return self.in_patch or form.of_places


def _same(one: Document, other: Document) -> bool:
    if isinstance(one, Number) and isinstance(other, Number):
        return is_same_number(one.digits, other.digits)
    return type(one) is type(other) and one == other


class _NullSection(BodySection):
    """What the two changes have in common.

    Attributes:
        inverse: whether the newer version omits the field, else the older one.
    """

    field: str
    """The field, which has the same name in both versions."""
    value: JsonValue = None
    """The value in place of null: a text, number or boolean, `[]` or `{}`."""

    inverse: ClassVar[bool] = False

    def losses(self) -> Iterator[Loss]:
        value = json.dumps(self.value, ensure_ascii=False)
        absent = f"where '{self.field}' is absent, it comes back as {value}"
        yield Loss(self.inverse, absent, overwrites=False)
        omitted = f"where '{self.field}' is {value}, it comes back as absent"
        yield Loss(not self.inverse, omitted, overwrites=self.value not in (None, [], {}))

    def body_change(self, context: BodyContext) -> Change | None:
        path = context.path(self.field, "field")
        if isinstance(self.value, list | dict) and self.value:
            context.complain("write a text, number or boolean, [] or {}", "value")
        if path is None:
            return None
        change = OmitNull(path.scopes, path.keys, self.value)
        return Inverse(change) if self.inverse else change


class OmitNullConfig(_NullSection):
    """Omit null: the older version has no field if the newer one has null."""

    keyword = "omit_null"


class FillNullConfig(_NullSection):
    """Fill in null: the older version has null if the newer one has no field."""

    keyword = "fill_null"

    inverse = True
