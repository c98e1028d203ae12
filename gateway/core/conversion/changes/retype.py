"""Retype: the same scalar is a text, a number or a boolean; every digit stays as it is written.

An absent field stays absent, and null stays null, both ways.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gateway.core.conversion.document import JsonForm, JsonObject
from gateway.core.conversion.field_path import Keys, Scope
from gateway.core.conversion.scalars import WORDS, Type, replace_scalar

# RFC 8259, section 6.
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Retype:
    """The newer version holds as one type what the older one holds as another.

    The text 12.50 is the number 12.50; the text true is the boolean, and so is the number 1.
    """

    scopes: tuple[Scope, ...]
    field: Keys
    newer: Type
    older: Type

    @property
    def touches(self) -> tuple[Keys, ...]:
        """The field."""
        return (self.field,)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Make it what the newer version has."""
        replace_scalar(
            fields, self.field, form, self.older, self.newer, _RETYPED[self.older, self.newer]
        )

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Make it what the older version has."""
        replace_scalar(
            fields, self.field, form, self.newer, self.older, _RETYPED[self.newer, self.older]
        )

    def for_patch(self) -> "Retype":
        """Return the same change: what a PATCH request leaves out has no type."""
        return self


def retyping(source: Type, target: Type) -> Callable[[str], str]:
    """Return what writes the text of one type as that of another; it raises ValueError."""
    convert = _RETYPED[source, target]

    def written(text: str) -> str:
        made = convert(text)
        return made if isinstance(made, str) else WORDS[made]

    return written


def _number(text: str) -> str:
    if not _NUMBER.match(text):
        raise ValueError("expected a string that is a number, found another one")
    return text


def _one_of(words: Mapping[str, bool]) -> Callable[[str], bool]:
    def boolean(text: str) -> bool:
        if text not in words:
            raise ValueError(f"expected {' or '.join(words)}, found something else")
        return words[text]

    return boolean


_RETYPED: Mapping[tuple[Type, Type], Callable[[str], str | bool]] = {
    (Type.TEXT, Type.NUMBER): _number,
    (Type.TEXT, Type.BOOLEAN): _one_of({"true": True, "false": False}),
    (Type.NUMBER, Type.TEXT): str,
    (Type.NUMBER, Type.BOOLEAN): _one_of({"1": True, "0": False}),
    (Type.BOOLEAN, Type.TEXT): str,
    (Type.BOOLEAN, Type.NUMBER): lambda text: "1" if text == "true" else "0",
}
