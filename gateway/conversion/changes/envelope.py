"""`envelope` and `extract`: a bare value in one version, in an object in the other."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from gateway.conversion.change import Change, FieldChange, Inverse, Whole
from gateway.conversion.changes.build_context import BodyContext
from gateway.conversion.changes.change_section import BodySection, Loss
from gateway.conversion.conversion_error import (
    ConversionError,
    ErrorPlace,
    is_within,
    moved_back,
)
from gateway.conversion.document import (
    MISSING,
    Document,
    JsonForm,
    JsonObject,
    change_value,
    put,
    reach,
    refuse,
    take,
)
from gateway.conversion.field_path import Keys, Scope
from gateway.conversion.schema import (
    Flat,
    SchemaImage,
    an_object,
    counts_of,
    properties_of,
    rest_of,
)
from gateway.conversion.steps import BODY


@dataclass(frozen=True, slots=True)
class Envelope(FieldChange):
    """The older version has a value inside an object, the newer version without that object.

    Downwards, the object is made. Upwards, the value is taken out of it; its other fields are
    refused if `strict`, else lost. Null stays null, and an absent field stays absent, both ways.

    Attributes:
        field: where the value is, in both versions.
        into: where it is in the envelope.
        count: where the envelope has the number of elements, of a value that is an array.
        strict: whether other fields of the envelope are refused.
    """

    into: Keys
    count: Keys | None = None
    strict: bool = False

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        change_value(fields, self.field, form, partial(self._bare, form))

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        holder = reach(fields, self.field, form)
        key = self.field[-1]
        if holder is None or key not in holder:
            return
        value = form.open(holder[key])
        if value is None:
            return
        envelope: JsonObject = {}
        # What was opened for a look at it is closed by its holder.
        put(envelope, self.into, value if isinstance(value, dict | list) else holder[key], form)
        if self.count is not None:
            if not isinstance(value, list):
                refuse("an array", value, *self.field)
            put(envelope, self.count, form.number(str(len(value))), form)
        holder[key] = envelope

    def value_effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        if upwards:
            return self._value_of(flat, image)
        made = image.put(an_object({}), self.into, flat, required=True)
        if self.count is None:
            return made
        least, most = counts_of(flat)
        count: Flat = {"type": "integer", "minimum": least}
        if most is not None:
            count["maximum"] = most
        made = image.put(made, self.count, count, required=True)
        if flat["type"] == "array":
            return made
        return image.refused(flat, f"expected an array, found {flat['type']}", made)

    def _value_of(self, flat: Flat, image: SchemaImage) -> object:
        if flat["type"] != "object":
            return image.refused(flat, f"expected an object, found {flat['type']}")
        rest, value, required = image.take(flat, self.into)
        left = rest if self.count is None else image.take(rest, self.count).rest
        made = value if required else image.refused(flat, "the value may be missing", value)
        if not self.strict:
            return made
        if properties_of(left) or rest_of(left) is not False:
            return image.refused(flat, "the envelope may have other fields", made)
        return made

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:
        inner = (*self.field, *self.into)
        if upwards:
            return moved_back(place, self.field, inner)
        if is_within(place, inner):
            return moved_back(place, inner, self.field)
        return self.field if is_within(place, self.field) else place

    def _bare(self, form: JsonForm, envelope: Document) -> Document:
        if not isinstance(envelope, dict):
            refuse("an object", envelope)
        value = take(envelope, self.into, form)
        if value is MISSING:
            raise ConversionError("is missing", self.into, is_missing=True)
        if self.count is not None:
            take(envelope, self.count, form)
        if self.strict and envelope:
            raise ConversionError(
                "a field for which the other version has no place", (next(iter(envelope)),)
            )
        return value


class _EnvelopeSection(BodySection):
    """What `envelope` and `extract` have in common."""

    field: str | None = None
    """The field that has the value in both versions, or the elements of an array: `tags[]`; the
    default is the whole body."""
    count: str | None = None
    """The field of the envelope that has the number of elements; without it, there is none."""
    others: Literal["drop", "refuse"] = "drop"
    """Whether other fields of the envelope are dropped (the default) or refused."""

    def _loss(self, *, newer: bool) -> Iterable[Loss]:
        if self.others == "drop":
            of = "the envelope" if self.field is None else f"'{self.field}'"
            yield Loss(newer, f"the other fields of {of} are left out")

    def _change(
        self, into: str, key: str, context: BodyContext, way: Callable[[Envelope], Change]
    ) -> Change | None:
        inner = context.keys(into, key)
        count = None if self.count is None else context.keys(self.count, "count")
        if inner is None:
            return None
        if self.count is not None and (count is None or not context.apart((inner, count))):
            return None

        def change(scopes: tuple[Scope, ...], keys: Keys) -> Change:
            return way(Envelope(scopes, keys, inner, count, self.others == "refuse"))

        if self.field is None:
            return Whole(change((), BODY))
        return context.value_change(self.field, change, "field")


class EnvelopeConfig(_EnvelopeSection):
    """Put a value into an envelope: the older version has an object that holds the bare value."""

    keyword = "envelope"

    into: str
    """The field of the envelope that holds the value, such as data."""

    def losses(self) -> Iterable[Loss]:
        return self._loss(newer=True)

    def body_change(self, context: BodyContext) -> Change | None:
        return self._change(self.into, "into", context, lambda envelope: envelope)


class ExtractConfig(_EnvelopeSection):
    """Take a value out of an envelope: the older version has it bare, as an array or an id."""

    keyword = "extract"

    key: str
    """The field of the envelope that holds the value, such as data, or id."""

    def losses(self) -> Iterable[Loss]:
        return self._loss(newer=False)

    def body_change(self, context: BodyContext) -> Change | None:
        return self._change(self.key, "key", context, Inverse)
