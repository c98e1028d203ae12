"""Retype: a scalar has another type in the older version; its digits stay as they are written.

An absent field stays absent, and null stays null, both ways.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gateway.conversion.change import FieldChange
from gateway.conversion.document import JsonForm, JsonObject
from gateway.conversion.scalars import NUMBER_TEXT, WORDS, Type, replace_scalar


@dataclass(frozen=True, slots=True)
class Retype(FieldChange):
    """A scalar has one type in the newer version, and another in the older one.

    The text 12.50 is the number 12.50; the text true is the boolean, and so is the number 1.
    """

    newer: Type
    older: Type

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


def retyping(source: Type, target: Type) -> Callable[[str], str]:
    """Return what writes the text of one type as that of another; it raises ValueError."""
    convert = _RETYPED[source, target]

    def written(text: str) -> str:
        made = convert(text)
        return made if isinstance(made, str) else WORDS[made]

    return written


def _number(text: str) -> str:
    if not NUMBER_TEXT.match(text):
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
