"""Affix: the same text or number with another prefix and suffix, such as E12 for 12.

An absent field stays absent, and null stays null, both ways.
"""

from collections.abc import Callable
from dataclasses import dataclass

from gateway.core.conversion.change import FieldChange
from gateway.core.conversion.document import JsonForm, JsonObject
from gateway.core.conversion.scalars import NUMBER_TEXT, Type, replace_scalar


@dataclass(frozen=True, slots=True)
class AffixForm:
    """How one version writes the value.

    Attributes:
        prefix: the text before it.
        suffix: the text behind it.
        type: TEXT or NUMBER; a number has neither prefix nor suffix.
    """

    prefix: str = ""
    suffix: str = ""
    type: Type = Type.TEXT

    def bare(self, text: str) -> str:
        """Return the value within a text; raises ValueError where it is not written so."""
        end = len(text) - len(self.suffix)
        whole = len(self.prefix) <= end
        if not (whole and text.startswith(self.prefix) and text.endswith(self.suffix)):
            raise ValueError(f"expected a text such as {self.prefix}12{self.suffix}, found another")
        return text[len(self.prefix) : end]

    def written(self, bare: str) -> str:
        """Return the text for a value; raises ValueError where it is to be a number and is none."""
        if self.type is Type.NUMBER and not NUMBER_TEXT.match(bare):
            raise ValueError("expected a number within the prefix and suffix, found a text")
        return f"{self.prefix}{bare}{self.suffix}"


@dataclass(frozen=True, slots=True)
class Affix(FieldChange):
    """The two versions write the same value with different prefixes and suffixes."""

    newer: AffixForm
    older: AffixForm

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Write it as the newer version does."""
        older, newer = self.older, self.newer
        replace_scalar(fields, self.field, form, older.type, newer.type, affixing(older, newer))

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Write it as the older version does."""
        older, newer = self.older, self.newer
        replace_scalar(fields, self.field, form, newer.type, older.type, affixing(newer, older))


def affixing(source: AffixForm, target: AffixForm) -> Callable[[str], str]:
    """Return what writes the text of one form as that of another; it raises ValueError."""
    return lambda text: target.written(source.bare(text))
