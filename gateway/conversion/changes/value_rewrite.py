"""What the changes of one value have in common that the older version writes in another form."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

from gateway.conversion.change import Change, FieldChange
from gateway.conversion.changes.build_context import BodyContext, BuildContext, ParameterContext
from gateway.conversion.changes.change_section import BodySection, ParameterSection
from gateway.conversion.document import JsonForm, JsonObject
from gateway.conversion.parameter_change import ParameterChange, Rewritten
from gateway.conversion.scalars import Type, replace_scalar
from gateway.conversion.schema import JSON_TYPES, Flat, SchemaImage, wide

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class ValueRewrite(FieldChange):
    """The two versions write the same value in different forms.

    Attributes:
        to_newer: writes a text, or the digits of a number, as the newer version does; it may raise
            ValueError.
        to_older: writes it as the older version does.
        newer: the type of the value in the newer version.
        older: the type of the value in the older version.
    """

    to_newer: Callable[[str], str]
    to_older: Callable[[str], str]
    newer: Type = Type.TEXT
    older: Type = Type.TEXT

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        replace_scalar(fields, self.field, form, self.older, self.newer, self.to_newer)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        replace_scalar(fields, self.field, form, self.newer, self.older, self.to_older)

    def value_effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        source, target = (self.older, self.newer) if upwards else (self.newer, self.older)
        if flat["type"] not in JSON_TYPES[source]:
            return image.refused(flat, f"expected a {source}, found {flat['type']}")
        made = wide({"type": "string" if target is Type.TEXT else "number"})
        return image.refused(flat, "a value may have another form", made)


class ValueForm(Protocol[V]):
    """How one version writes values of a kind, such as moments."""

    @property
    def type(self) -> Type:
        """The type that they are written as: TEXT or NUMBER."""
        ...

    def read(self, text: str) -> V:
        """Return the value that a text stands for; raises ValueError."""
        ...

    def write(self, value: V) -> str:
        """Return the text of a value; raises ValueError."""
        ...


@dataclass(frozen=True, slots=True)
class FormRewriting(Generic[V]):
    """A function that writes the text of one form as that of another."""

    source: ValueForm[V]
    target: ValueForm[V]

    def __call__(self, text: str) -> str:
        return self.target.write(self.source.read(text))


class FormWays(NamedTuple):
    """What writes a value as each version does, and its types there; see `ValueRewrite`."""

    to_newer: Callable[[str], str]
    to_older: Callable[[str], str]
    newer: Type = Type.TEXT
    older: Type = Type.TEXT


def ways_between(newer: ValueForm[V], older: ValueForm[V]) -> FormWays:
    """Return the ways between two forms of the same values."""
    to_newer, to_older = FormRewriting(older, newer), FormRewriting(newer, older)
    return FormWays(to_newer, to_older, newer.type, older.type)


class RewriteSection(BodySection, ParameterSection):
    """A change of the form of one value."""

    field: str
    """The field, query parameter or header field, which has the same name in both versions."""

    @abstractmethod
    def ways(self, context: BuildContext) -> FormWays | None:
        """Return what writes the value, or None after recording a mistake."""

    def body_change(self, context: BodyContext) -> Change | None:
        ways = self.ways(context)
        if ways is None:
            return None
        return context.value_change(
            self.field, lambda scopes, keys: ValueRewrite(scopes, keys, *ways), "field"
        )

    def parameter_change(self, context: ParameterContext) -> ParameterChange | None:
        ways = self.ways(context)
        if ways is None:
            return None
        return Rewritten(context.name(self.field, "field"), ways.to_newer, ways.to_older)
