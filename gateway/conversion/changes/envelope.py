"""`envelope` and `extract`: a value in one version, an object that holds it in the other."""

from collections.abc import Iterable
from functools import partial
from typing import Literal

from gateway.conversion.change import (
    Change,
    ValueRewrite,
    keep_unfit,
    rewrite_opened,
    value_change,
    whole_body,
)
from gateway.conversion.changes.change_section import BodySection, BuildContext, Loss
from gateway.conversion.conversion_error import (
    ConversionError,
    ErrorPlace,
    Origin,
    is_within,
    moved_back,
)
from gateway.conversion.document import (
    MISSING,
    Document,
    JsonForm,
    JsonObject,
    holder_of,
    put,
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
from gateway.conversion.steps import BODY, ConversionStep


class _EnvelopeSection(BodySection):
    field: str | None = None
    """The field with the value in both versions, or the elements of an array, as in `tags[]`; the
    default is the whole body."""
    count: str | None = None
    """The field of the envelope with the number of elements of an array; without it, the envelope
    has no such field."""
    others: Literal["drop", "refuse"] = "drop"
    """Whether other fields of the envelope are dropped (the default) or refused."""

    def own_losses(self) -> Iterable[Loss]:
        if self.others == "drop":
            of = "the envelope" if self.field is None else f"'{self.field}'"
            yield Loss(True, f"the other fields of {of} are left out")

    def _in_envelope(self, into: str, key: str, context: BuildContext) -> Change | None:
        inner = context.keys(into, key)
        count = None if self.count is None else context.keys(self.count, "count")
        if inner is None:
            return None
        if self.count is not None and (count is None or not context.apart((inner, count))):
            return None
        make = partial(envelope, into=inner, count=count, strict=self.others == "refuse")
        if self.field is None:
            change = make((), BODY)
            return whole_body(change, keep_unfit(change))
        return context.value_change(self.field, make, "field")


class Envelope(_EnvelopeSection):
    """Put a value into an envelope: the older version has an object that contains the value."""

    keyword = "envelope"

    into: str
    """The field of the envelope that holds the value, such as data."""

    def compile_body(self, context: BuildContext) -> Change | None:
        return self._in_envelope(self.into, "into", context)


class Extract(_EnvelopeSection):
    """Take a value out of an envelope: the older version has only the value, such as an array."""

    keyword = "extract"
    inverse = True

    key: str
    """The field of the envelope that holds the value, such as data or id."""

    def compile_body(self, context: BuildContext) -> Change | None:
        return self._in_envelope(self.key, "key", context)


def envelope(
    scopes: tuple[Scope, ...],
    field: Keys,
    into: Keys,
    count: Keys | None = None,
    *,
    strict: bool = False,
) -> Change:
    """Return a change that puts a value into an object, its envelope, for the older version.

    An upgrade takes the value out of the envelope. In both directions, null stays null, and an
    absent field stays absent.

    Args:
        strict: Whether an upgrade refuses other fields of the envelope. If false, they are dropped.
    """

    def origin_of_bare(field: Keys) -> Origin:
        return partial(moved_back, target=field, source=(*field, *into))

    def origin_in_envelope(field: Keys) -> Origin:
        inner = (*field, *into)

        def origin(place: ErrorPlace) -> ErrorPlace:
            if is_within(place, inner):
                return moved_back(place, inner, field)
            return field if is_within(place, field) else place

        return origin

    return value_change(
        scopes,
        field,
        rewrite_opened(
            partial(_bare, into, count, strict),
            partial(_bare_effect, into, count, strict),
            origin_of_bare,
        ),
        ValueRewrite(
            lambda keys: _enclosing(keys, into, count),
            partial(_enclosed_effect, into, count),
            origin_in_envelope,
        ),
    )


def _bare(
    into: Keys, count: Keys | None, strict: bool, form: JsonForm, envelope: Document
) -> Document:
    if not isinstance(envelope, dict):
        refuse("an object", envelope)
    value = take(envelope, into, form)
    if value is MISSING:
        raise ConversionError("is missing", into, is_missing=True)
    if count is not None:
        take(envelope, count, form)
    if strict and envelope:
        raise ConversionError("a field that the other version cannot hold", (next(iter(envelope)),))
    return value


def _bare_effect(
    into: Keys, count: Keys | None, strict: bool, flat: Flat, image: SchemaImage
) -> object:
    if flat["type"] != "object":
        return image.refused(flat, f"expected an object, found {flat['type']}")
    rest, value, required = image.take(flat, into)
    left = rest if count is None else image.take(rest, count).rest
    made = value if required else image.refused(flat, "the value may be missing", value)
    if strict and (properties_of(left) or rest_of(left) is not False):
        return image.refused(flat, "the envelope may have other fields", made)
    return made


def _enclosing(field: Keys, into: Keys, count: Keys | None) -> ConversionStep:
    def step(fields: JsonObject, form: JsonForm) -> None:
        holder = holder_of(fields, field, form)
        if holder is None:
            return
        key = field[-1]
        value = form.open(holder[key])
        if value is None:
            return
        envelope: JsonObject = {}
        # An opened object or array is closed together with the object that holds it.
        put(envelope, into, value if isinstance(value, dict | list) else holder[key], form)
        if count is not None:
            if not isinstance(value, list):
                refuse("an array", value, *field)
            put(envelope, count, form.number(str(len(value))), form)
        holder[key] = envelope

    return step


def _enclosed_effect(into: Keys, count: Keys | None, flat: Flat, image: SchemaImage) -> object:
    made = image.put(an_object({}), into, flat, required=True)
    if count is None:
        return made
    least, most = counts_of(flat)
    number: Flat = {"type": "integer", "minimum": least}
    if most is not None:
        number["maximum"] = most
    made = image.put(made, count, number, required=True)
    if flat["type"] == "array":
        return made
    return image.refused(flat, f"expected an array, found {flat['type']}", made)
