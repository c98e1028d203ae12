"""`when`: the condition of a change, in gateway.yaml."""

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from gateway.base.model import NonEmptyText, OneOrSome, SectionModel
from gateway.conversion.change import Change
from gateway.conversion.changes.change_section import BuildContext
from gateway.conversion.changes.map import MapWord, as_scalar
from gateway.conversion.condition import (
    Condition,
    Conditions,
    conditional,
    conditional_parameter,
)
from gateway.conversion.field_path import Scope
from gateway.conversion.parameter_change import ParameterChange
from gateway.conversion.scalars import spelt

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
            context.complain("parameters and header fields are texts; write text", "type")
        return None if made is None else replace(made, keys=(name,))

    def _condition(self, context: BuildContext) -> Condition | None:
        given = [key for key in ("is_", "is_not", "type") if key in self.model_fields_set]
        if len(given) != 1:
            context.complain("needs exactly one of is, is_not and type")
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
            older = self.older.compile(context.inside("older"))
        if newer is None or older is None:
            return None
        scopes = newer[0]
        if older[0] != scopes:
            context.complain(
                "belongs to other objects than the field of the newer version", "older"
            )
        elif change.carried is not None:
            text = "a change that moves values out of the body has no condition; remove it"
            context.complain(text)
        elif change.scopes[: len(scopes)] != scopes or (change.whole and scopes):
            text = (
                f"'{self.field}' is in an array, and the change is not; name a field"
                " outside the array"
            )
            context.complain(text, "field")
        else:
            return conditional(change, Conditions(newer[1], older[1], scopes))
        return None

    def applied_to_parameter(
        self, change: ParameterChange, context: BuildContext
    ) -> ParameterChange | None:
        newer = self.compile_parameter(context)
        older = newer
        if self.older is not None:
            older = self.older.compile_parameter(context.inside("older"))
        if newer is None or older is None:
            return None
        return conditional_parameter(change, newer, older)
