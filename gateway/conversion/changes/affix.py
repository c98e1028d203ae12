"""Affixes: the prefix and suffix that a version writes around a value, such as E12 for 12."""

from dataclasses import dataclass

from gateway.conversion.scalars import NUMBER, NUMBER_TEXT, TEXT, Type


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
    type: Type = TEXT

    def read(self, text: str) -> str:
        """Return the value within a text; raises ValueError where it is not written so."""
        end = len(text) - len(self.suffix)
        whole = len(self.prefix) <= end
        if not (whole and text.startswith(self.prefix) and text.endswith(self.suffix)):
            raise ValueError(f"expected a text such as {self.prefix}12{self.suffix}, found another")
        return text[len(self.prefix) : end]

    def write(self, bare: str) -> str:
        """Return the text for a value; raises ValueError where it is to be a number and is none."""
        if self.type is NUMBER and not NUMBER_TEXT.match(bare):
            raise ValueError("expected a number within the prefix and suffix, found a text")
        return f"{self.prefix}{bare}{self.suffix}"
