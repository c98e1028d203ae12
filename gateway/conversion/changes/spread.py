"""`spread` and `collect`: one version has a value in every element, the other once beside them.

Instead of elements of an array, the value may also be in a single nested object.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pydantic import JsonValue

from gateway.base.model import Name
from gateway.conversion.change import UNCHANGED, Change, DirectedChange, keep_unfit, sequence
from gateway.conversion.changes.change_section import BodySection, BuildContext, Loss
from gateway.conversion.changes.default import default, is_blocked
from gateway.conversion.conversion_error import Beside, ConversionError, ErrorPlace
from gateway.conversion.document import (
    MISSING,
    Document,
    JsonForm,
    JsonObject,
    get,
    put,
    reach,
    take,
)
from gateway.conversion.field_path import (
    Inside,
    Keys,
    Scope,
    depth_of,
    keys_of,
)
from gateway.conversion.message import message_of
from gateway.conversion.scalars import NUMBER_TEXT, TEXT, Type
from gateway.conversion.schema import Flat, SchemaImage, union, wide
from gateway.conversion.steps import ConversionStep, ConversionTask, fuse
from gateway.versions.version import Version


class _SpreadSection(BodySection):
    keep: bool = True
    """Whether the version with the value in the elements also has it once beside them. The default
    is true."""

    field: str
    into: str
    default: JsonValue = None
    """The JSON value of the field beside the elements if no element has the value, such as for an
    empty list. Without it, the field is then absent."""
    capture: Name | None = None
    """The capture in the path of the operation or the endpoint, such as id of
    `/customers/{id}/cards`, that has the value if no element has it. It has precedence over
    `default`. In `examples`, the value is 1. By default, the path has no value."""
    type: Literal["text", "number"] = "text"
    """The type of the value of `capture`. The default is text."""

    @property
    def needs_message(self) -> bool:
        return self.capture is not None

    @property
    def read_capture(self) -> str | None:
        return self.capture

    def own_losses(self) -> Iterator[Loss]:
        beside, inside = (self.into, self.field) if self.inverse else (self.field, self.into)
        text = f"in the reverse direction, every '{inside}' gets the value of '{beside}'"
        yield Loss(True, text, overwrites=False)
        if "default" in self.model_fields_set:
            yield Loss(
                True, f"where no '{inside}' is there, '{beside}' is the default", overwrites=False
            )
        if not self.keep:
            yield Loss(False, f"'{beside}' is left out where no object can hold '{inside}'")

    def compile_body(self, context: BuildContext) -> Change | None:
        beside, inside = context.path(self.field, "field"), context.path(self.into, "into")
        key = "into"
        if self.inverse:
            beside, inside, key = inside, beside, "field"
        if beside is None or inside is None:
            return None
        depth = len(beside.scopes)
        inner, (*outer, last) = inside.scopes[depth:], inside.keys
        is_beside = inside.scopes[:depth] == beside.scopes and (inner or outer)
        if not is_beside or (not inner and inside.keys == beside.keys):
            context.mistakes.add(
                "is not in elements or an object beside the field; write one such as"
                " lines[].currency or price.currency",
                key,
            )
            return None
        if inner:
            change = spread(beside.scopes, beside.keys, inner, inside.keys, keep=self.keep)
        else:
            way = (Inside(tuple(outer)),)
            change = spread(beside.scopes, beside.keys, way, (last,), keep=self.keep)
        if self.capture is not None:
            if context.between is None:
                context.mistakes.add("a group has no path; write the change in changes", "capture")
                return None
            path = PathValue(self.capture, context.between, Type(self.type))
            change = sequence(change, from_path(beside.scopes, beside.keys, path))
        if "default" not in self.model_fields_set:
            return change
        return sequence(change, default(beside.scopes, beside.keys, self.default, keep=True))


class Spread(_SpreadSection):
    """Spread a value over elements or into an object: the older version has it in each of them."""

    keyword = "spread"

    field: str
    """The field of the newer version that holds the value, such as currency."""
    into: str
    """The field of each element in the older version, such as `lines[].currency`, or of a nested
    object, such as `price.currency`."""


class Collect(_SpreadSection):
    """Collect a value from elements: the older version has it once, beside them."""

    keyword = "collect"
    inverse = True

    field: str
    """The field of each element in the newer version, such as `lines[].currency`, or of a nested
    object, such as `price.currency`."""
    into: str
    """The field of the older version that holds the value, such as currency."""


def spread(
    scopes: tuple[Scope, ...],
    field: Keys,
    inner: tuple[Scope, ...],
    target: Keys,
    *,
    keep: bool = True,
    keeps: bool = False,
) -> Change:
    """Return a change that copies the value of a field into each element for the older version.

    A downgrade writes the value to each element, and refuses an element that already has the target
    field. An upgrade removes the values from the elements, and sets the absent field to their
    value. It refuses elements with different values. If neither the field nor any element has a
    value, the field stays absent.

    Args:
        keeps: Whether a value is left unchanged if it is not an array or object, although the path
            to the elements leads through it.
    """
    steps = _Spread(field, inner, target, keep, keeps)

    def lenient() -> Change:
        kept = spread(scopes, field, inner, target, keep=keep, keeps=True)
        return keep_unfit(kept, of_value=False)

    return Change(
        scopes,
        (field[:1], keys_of(inner[0])),
        # If the older version lacks the field, errors name the object that contains the elements.
        DirectedChange(steps.up, steps.collected_effect),
        DirectedChange(steps.down, steps.spread_effect, steps.origin_in_element),
        lenient=lenient,
    )


class PathValue(NamedTuple):
    """A value in the path of a request; `between` are the versions whose operation has it."""

    capture: str
    between: tuple[Version, Version]
    kind: Type

    def read(self, form: JsonForm) -> Document:
        """Return the value or MISSING; raises ConversionError if it is not a number as declared."""
        message = message_of(form)
        text = None if message is None else message.capture(self.capture, self.between)
        if text is None:
            return MISSING
        if self.kind is TEXT or not form.typed:
            return text
        if not NUMBER_TEXT.match(text):
            raise ConversionError(f"'{self.capture}' is not a number", Beside("path"))
        return form.number(text)


def from_path(scopes: tuple[Scope, ...], field: Keys, path: PathValue) -> Change:
    """Return a change whose upgrade adds an absent field with a value from the request's path.

    A PATCH request gets no value, because it does not change the fields that it lacks.
    """

    def up(fields: JsonObject, form: JsonForm) -> None:
        if get(fields, field, form) is MISSING and not is_blocked(fields, field, form):
            value = path.read(form)
            if value is not MISSING:
                put(fields, field, value, form)

    def effect(flat: Flat, image: SchemaImage) -> object:
        image.record_write(field, True)
        made = wide({"type": "string" if path.kind is TEXT else "number"})
        return image.put(flat, field, made, required=False)

    touches = (field[:1],)
    patch = Change(scopes, touches, UNCHANGED, UNCHANGED)
    return Change(scopes, touches, DirectedChange(up, effect, adds=field), UNCHANGED, patch=patch)


@dataclass(frozen=True, slots=True)
class _Spread:
    field: Keys
    inner: tuple[Scope, ...]
    target: Keys
    keep: bool
    keeps: bool

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        is_there = get(fields, self.field, form) is not MISSING
        known = self._value(fields, form) if is_there else MISSING
        for value in self._taken(fields, form):
            if known is MISSING:
                known = value
                put(fields, self.field, value, form, is_on_way=True)
            elif form.parse(value) != form.parse(known):
                raise ConversionError(
                    "differs between elements, or from the field beside them",
                    self.field if is_there else keys_of(self.inner[0]),
                )

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        if get(fields, self.field, form) is MISSING:
            return
        value = self._value(fields, form)
        if not self.keep:
            take(fields, self.field, form)

        def write(element: JsonObject, form: JsonForm) -> None:
            if get(element, self.target, form) is not MISSING:
                raise ConversionError("already exists", self.target)
            put(element, self.target, value, form)

        self._each(fields, form, write)

    def spread_effect(self, flat: Flat, image: SchemaImage) -> object:
        rest, value, required = image.take(flat, self.field, keep=self.keep)

        def write(element: Flat) -> object:
            if image.may_have(element, self.target):
                image.refusals.append(f"'{self.target[-1]}' may already exist")
            return image.put(element, self.target, value, required=required)

        if value is False:
            return flat
        with image.keeping(values=False) if self.keeps else nullcontext():
            return image.inside(rest, self.inner, write)

    def collected_effect(self, flat: Flat, image: SchemaImage) -> object:
        found: list[object] = []

        def read(element: Flat) -> object:
            taken = image.take(element, self.target)
            found.append(taken.value)
            return taken.rest

        with image.keeping(values=False) if self.keeps else nullcontext():
            made = image.inside(flat, self.inner, read)
        inner = union(found)
        if inner is False:
            return made
        image.misfit("the values may differ")
        return image.put(made, self.field, inner, required=False)

    def origin_in_element(self, place: ErrorPlace) -> ErrorPlace:
        if isinstance(place, Beside):
            return place
        depth = depth_of(self.inner, place)
        if depth is None or place[depth : depth + len(self.target)] != self.target:
            return place
        return (*self.field, *place[depth + len(self.target) :])

    def _value(self, fields: JsonObject, form: JsonForm) -> Document:
        holder = reach(fields, self.field, form)
        assert holder is not None  # the callers have checked that the field exists
        return form.close(holder[self.field[-1]])

    def _taken(self, fields: JsonObject, form: JsonForm) -> Iterator[Document]:
        found: list[Document] = []

        def read(element: JsonObject, form: JsonForm) -> None:
            value = take(element, self.target, form)
            if value is not MISSING:
                found.append(form.close(value))

        self._each(fields, form, read)
        yield from found

    def _each(self, fields: JsonObject, form: JsonForm, step: ConversionStep) -> None:
        task = ConversionTask(self.inner, (self.target[:1],), step, keeps=self.keeps)
        for fused in fuse([task]).calls:
            fused(fields, form)
