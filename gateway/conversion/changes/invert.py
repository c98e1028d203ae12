"""Invert: true in the newer version is false in the older one.

An absent field stays absent, and null stays null, both ways.
"""

from dataclasses import dataclass

from gateway.conversion.change import FieldChange
from gateway.conversion.document import JsonForm, JsonObject
from gateway.conversion.scalars import BOOLEAN, replace_scalar


@dataclass(frozen=True, slots=True)
class Invert(FieldChange):
    """The older version has the opposite of a boolean."""

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Make it the opposite."""
        replace_scalar(fields, self.field, form, BOOLEAN, BOOLEAN, _is_false)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Make it the opposite."""
        self.up(fields, form)


def inverted(text: str) -> str:
    """Return false for true, and true for false; raises ValueError for another text."""
    if text not in ("true", "false"):
        raise ValueError("expected true or false, found something else")
    return "true" if _is_false(text) else "false"


def _is_false(text: str) -> bool:
    return text == "false"
