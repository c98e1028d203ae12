"""Value rewrite: the older version writes the same value in another form, such as E12 for 12.

An absent field stays absent, and null stays null, both ways.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from gateway.conversion.change import FieldChange
from gateway.conversion.document import JsonForm, JsonObject
from gateway.conversion.scalars import Type, replace_scalar

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
        """Write it as the newer version does."""
        replace_scalar(fields, self.field, form, self.older, self.newer, self.to_newer)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Write it as the older version does."""
        replace_scalar(fields, self.field, form, self.newer, self.older, self.to_older)


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
        """Return the text of the target; raises ValueError."""
        return self.target.write(self.source.read(text))
