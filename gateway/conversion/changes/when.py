"""`when`: a change applies only where a field has a certain value or type."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import Field

from gateway.base.model import NonEmptyText, OneOrSome, SectionModel
from gateway.conversion.change import Change, DirectedChange, in_arrays, keeping_unfit
from gateway.conversion.changes.change_section import BuildContext
from gateway.conversion.changes.map import MapWord, as_scalar
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import (
    PLAIN,
    Document,
    JsonForm,
    JsonObject,
    Number,
    holder_of,
)
from gateway.conversion.field_path import Keys, Scope, keys_of
from gateway.conversion.parameter_change import (
    LineStep,
    ParameterChange,
    ParameterLines,
    Spelling,
)
from gateway.conversion.scalars import NUMBER_TEXT, Scalar, exact, spelt
from gateway.conversion.schema import (
    Flat,
    SchemaImage,
    field_of,
    listed,
    requires,
    type_of,
    union,
    with_field,
    words_of,
)
from gateway.conversion.steps import BODY, ConversionStep, ConversionTask, fuse

_TYPES = {"string": "text", "integer": "number"}
# The index of a value in a list of parameters: `expand[0]` belongs to `expand[]`.
_INDEX = re.compile(r"\[[0-9]+\]\Z")


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on one field of an object.

    `values` is None if the type decides. With `negated`, all other values fulfil the condition, and
    so does a missing field.
    """

    keys: Keys
    values: tuple[Scalar, ...] | None
    types: frozenset[str]
    negated: bool
    text: str

    def holds(self, fields: JsonObject, form: JsonForm) -> bool | None:
        """Return whether an object fulfils the condition; None if the field is absent or unknown.

        A JSON Patch shows only the locations of scalars, so their values are unknown.
        """
        holder = holder_of(fields, self.keys, form, keeps=True)
        if holder is None:
            return None
        value = form.open(holder[self.keys[-1]])
        if form.of_places and not isinstance(value, dict | list):
            return None
        return self._accepts(value, typed=form.typed) != self.negated

    def holds_in(self, lines: ParameterLines, spelling: Spelling) -> bool:
        """Return whether one of the values of a parameter fulfils the condition."""
        key = spelling.key(self.keys[0])
        found = (
            spelling.read(line.value or "")
            for line in lines
            if line.key == key or (key.endswith("[]") and _INDEX.sub("[]", line.key) == key)
        )
        return any(self._accepts(value, typed=False) for value in found) != self.negated

    def split(self, flat: Flat, image: SchemaImage) -> tuple[object, object]:
        """Divide the schema of objects into those that fulfil the condition and all others.

        Either part is False if there are no such objects. The parts overlap where the schema does
        not decide.
        """
        key, *inner = self.keys
        schema = field_of(flat, key) if flat["type"] == "object" else False
        if schema is False:
            return (flat, False) if self.negated else (False, flat)
        yes, no = list[object](), list[object]()
        for one in image.alternatives(schema):
            if inner:
                fulfilled, other = replace(self, keys=tuple(inner)).split(one, image)
            else:
                fulfilled, other = self._split_value(one)
            yes.append(fulfilled)
            no.append(other)
        parts: list[object] = [
            False if made is False else with_field(flat, key, made, required=True)
            for made in (union(yes), union(no))
        ]
        if not requires(flat, key):
            lacking = with_field(flat, key, False, required=False)
            # Without the field, the condition is fulfilled if negated.
            parts[not self.negated] = union((parts[not self.negated], lacking))
        return parts[0], parts[1]

    def _split_value(self, flat: Flat) -> tuple[object, object]:
        words = words_of(flat)
        if words is not None:
            found = [self._accepts(PLAIN.open(word), typed=True) != self.negated for word in words]
            yes = [word for word, is_one in zip(words, found, strict=True) if is_one]
            no = [word for word, is_one in zip(words, found, strict=True) if not is_one]
            return listed(yes), listed(no)
        name = _TYPES.get(flat["type"], flat["type"])
        if self.values is None:
            known: bool | None = name in self.types
        elif name == "null":
            known = None in self.values
        else:
            possible = any(_kind(value) == name for value in self.values)
            known = None if possible else False
        if known is None:
            return flat, flat
        return (flat, False) if known != self.negated else (False, flat)

    def _accepts(self, value: Document, *, typed: bool) -> bool:
        if self.values is None:
            if isinstance(value, str) and not typed:
                return bool(self.types & {"text", "number", "boolean"})
            return _kind(value) in self.types
        if isinstance(value, Number):
            number = exact(value.digits)
            return any(
                isinstance(one, Number) and exact(one.digits) == number for one in self.values
            )
        if isinstance(value, str) and not typed:
            if NUMBER_TEXT.match(value) and self._accepts(Number(value), typed=True):
                return True
            return any(spelt(one) == value for one in self.values if one is not None)
        return any(type(one) is type(value) and one == value for one in self.values)


def _kind(value: Document) -> str:
    if isinstance(value, Number):
        return "number"
    name = type_of(value)
    return _TYPES.get(name, name)


def conditional(
    change: Change,
    newer: Condition,
    older: Condition,
    scopes: tuple[Scope, ...],
    *,
    in_patch: bool = False,
) -> Change:
    """Return a change that applies only to the objects that fulfil a condition.

    Args:
        newer: The condition that a downgrade checks.
        older: The condition that an upgrade checks.
        scopes: The scopes that select the objects.
        in_patch: Whether documents are merge patches, which may lack the field of the condition.
    """
    inner = change.scopes[len(scopes) :]
    touches = (keys_of(inner[0]),) if inner else change.touches

    def directed(one: DirectedChange, condition: Condition) -> DirectedChange:
        steps = fuse([ConversionTask(inner, change.touches, one.step, origin=one.origin)])
        call, origin = steps.calls[0], steps.origins[0]
        checked = replace(condition, keys=(*BODY, *condition.keys)) if change.whole else condition

        def step(fields: JsonObject, form: JsonForm) -> None:
            holds = checked.holds(fields, form)
            if holds is None:
                if (in_patch or form.of_places) and _alters(call, fields, form):
                    place = _first_of(fields, touches, form)
                    raise ConversionError(f"expected {condition.text} beside it", place)
                holds = condition.negated
            if holds:
                call(fields, form)

        def effect(flat: Flat, image: SchemaImage) -> object:
            fulfilled, other = condition.split(flat, image)
            made = image.each(
                fulfilled, lambda each: image.inside(each, inner, one.effect_in(image))
            )
            if in_patch and not (condition.keys[1:] == () and requires(flat, condition.keys[0])):
                made = image.refused(fulfilled, "a patch may lack the field of the condition", made)
            return union((made, other))

        return DirectedChange(step, effect, origin)

    patch, documents = None, change.of_documents
    if not in_patch and not in_arrays(scopes):
        patch = conditional(change.for_patch(), newer, older, scopes, in_patch=True)
    return Change(
        scopes,
        (*touches, newer.keys, older.keys),
        directed(change.up, older),
        directed(change.down, newer),
        change.whole,
        patch=patch,
        lenient=lambda: conditional(keeping_unfit(change), newer, older, scopes, in_patch=in_patch),
        of_documents=None if documents is None else conditional(documents, newer, older, scopes),
    )


def conditional_parameter(
    change: ParameterChange, newer: Condition, older: Condition
) -> ParameterChange:
    def directed(step: LineStep, condition: Condition) -> LineStep:
        def rewrite(lines: ParameterLines, spelling: Spelling) -> ParameterLines:
            return step(lines, spelling) if condition.holds_in(lines, spelling) else lines

        return rewrite

    lenient = change.lenient
    return replace(
        change,
        up=directed(change.up, older),
        down=directed(change.down, newer),
        lenient=None if lenient is None else conditional_parameter(lenient, newer, older),
    )


def _first_of(fields: JsonObject, touches: Sequence[Keys], form: JsonForm) -> Keys:
    present = (keys for keys in touches if keys and holder_of(fields, keys, form, keeps=True))
    return next(present, touches[0])


def _alters(call: ConversionStep, fields: JsonObject, form: JsonForm) -> bool:
    """Return whether a step would alter or refuse an object, which itself stays unchanged."""
    plain = form.parse(fields)
    assert isinstance(plain, dict)
    made = dict(plain)
    try:
        call(made, replace(PLAIN, typed=form.typed, of_places=form.of_places))
    except ConversionError:
        return True
    return repr(made) != repr(plain)  # true and 1 are equal in Python


_Type = Literal["object", "array", "text", "number", "boolean", "null"]


class FieldCondition(SectionModel):
    """A condition on the value or the type of a field."""

    field: NonEmptyText
    """The field, which is relative to the same object as the fields of the change. In `query` and
    `headers`, it is a parameter or header field; `expand[]` also stands for `expand[0]`."""
    is_: Annotated[OneOrSome[MapWord, MapWord] | None, Field(alias="is")] = None
    """The value of the field, or a list of values: texts, numbers, true, false or null. At least
    one value of a repeated parameter has to match."""
    is_not: OneOrSome[MapWord, MapWord] | None = None
    """The value that the field does not have, or a list of values. A missing field has none of
    them."""
    type: OneOrSome[_Type, _Type] | None = None
    """The type of the value, or a list of types: object, array, text, number, boolean or null. For
    a parameter or header field, `text` means that it is present."""

    def compile(self, context: BuildContext) -> tuple[tuple[Scope, ...], Condition] | None:
        path, made = context.path(self.field, "field"), self._condition(context)
        if path is None or made is None:
            return None
        return path.scopes, replace(made, keys=path.keys)

    def compile_parameter(self, context: BuildContext) -> Condition | None:
        name, made = context.name(self.field, "field"), self._condition(context)
        if made is not None and made.types - {"text"}:
            context.mistakes.add("parameters and header fields are texts; write text", "type")
        return None if made is None else replace(made, keys=(name,))

    def _condition(self, context: BuildContext) -> Condition | None:
        given = [key for key in ("is_", "is_not", "type") if key in self.model_fields_set]
        if len(given) != 1:
            context.mistakes.add("needs exactly one of is, is_not and type")
            return None
        several = getattr(self, given[0])
        words = several if isinstance(several, tuple) else (several,)
        negated = given[0] == "is_not"
        if self.type is not None:
            text = f"'{self.field}' of type {' or '.join(map(str, words))}"
            return Condition((), None, frozenset(words), negated, text)
        values = tuple(map(as_scalar, words))
        text = f"'{self.field}' that is {'not ' * negated}{' or '.join(map(spelt, values))}"
        return Condition((), values, frozenset(), negated, text)


class When(FieldCondition):
    """A condition on a field. The change applies only where the condition is fulfilled."""

    older: FieldCondition | None = None
    """The condition in the older version. The default is the same condition as in the newer
    version."""

    def applied(self, change: Change, context: BuildContext) -> Change | None:
        newer = self.compile(context)
        older = newer
        if self.older is not None:
            older = self.older.compile(context.below("older"))
        if newer is None or older is None:
            return None
        scopes = newer[0]
        if older[0] != scopes:
            context.mistakes.add(
                "belongs to other objects than the field of the newer version", "older"
            )
        elif change.carried is not None:
            text = "a change that moves values out of the body has no condition; remove it"
            context.mistakes.add(text)
        elif change.scopes[: len(scopes)] != scopes or (change.whole and scopes):
            text = (
                f"'{self.field}' is in an array, and the change is not; name a field"
                " outside the array"
            )
            context.mistakes.add(text, "field")
        else:
            return conditional(change, newer[1], older[1], scopes)
        return None

    def applied_to_parameter(
        self, change: ParameterChange, context: BuildContext
    ) -> ParameterChange | None:
        newer = self.compile_parameter(context)
        older = newer
        if self.older is not None:
            older = self.older.compile_parameter(context.below("older"))
        if newer is None or older is None:
            return None
        return conditional_parameter(change, newer, older)
