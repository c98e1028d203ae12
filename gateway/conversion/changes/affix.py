"""`affix`: the older version writes the same value with another prefix and suffix."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from gateway.base.model import SectionModel
from gateway.conversion.changes.build_context import BuildContext, ParameterContext
from gateway.conversion.changes.change_section import Loss
from gateway.conversion.changes.value_rewrite import (
    FormWays,
    RewriteSection,
    ways_between,
)
from gateway.conversion.parameter_change import ParameterChange
from gateway.conversion.scalars import NUMBER_TEXT, Type


@dataclass(frozen=True, slots=True)
class AffixForm:
    """How one version writes the value.

    Attributes:
        prefix: the text before it.
        suffix: the text behind it.
        type: Type.TEXT or Type.NUMBER; a number has neither prefix nor suffix.
    """

    prefix: str = ""
    suffix: str = ""
    type: Type = Type.TEXT

    def read(self, text: str) -> str:
        end = len(text) - len(self.suffix)
        whole = len(self.prefix) <= end
        if not (whole and text.startswith(self.prefix) and text.endswith(self.suffix)):
            raise ValueError(f"expected a text such as {self.prefix}12{self.suffix}, found another")
        return text[len(self.prefix) : end]

    def write(self, bare: str) -> str:
        if self.type is Type.NUMBER and not NUMBER_TEXT.match(bare):
            raise ValueError("expected a number within the prefix and suffix, found a text")
        return f"{self.prefix}{bare}{self.suffix}"


class AffixFormConfig(SectionModel):
    """How one version writes the value: a text with a prefix and a suffix, or a number."""

    prefix: str = ""
    """The text before the value. The default is the empty text."""
    suffix: str = ""
    """The text after the value. The default is the empty text."""
    type: Literal["text", "number"] = "text"
    """The type of the value; a number has no prefix and no suffix. The default is text."""


class AffixConfig(RewriteSection):
    """Write a value with another prefix and suffix, such as E12 for the number 12."""

    keyword = "affix"

    newer: AffixFormConfig = AffixFormConfig()
    """The newer version's form of the value; the default is a text without prefix and suffix."""
    older: AffixFormConfig = AffixFormConfig()
    """The older version's form of the value; the default is a text without prefix and suffix."""

    def losses(self) -> Iterable[Loss]:
        return ()

    def ways(self, context: BuildContext) -> FormWays | None:
        if self.newer == self.older:
            context.complain("both versions write it alike; give one a prefix or a suffix")
            return None
        forms = []
        for key, form in (("newer", self.newer), ("older", self.older)):
            if form.type == "number" and form.prefix + form.suffix:
                context.complain("a number has no prefix and no suffix; remove them", key)
                return None
            forms.append(AffixForm(form.prefix, form.suffix, Type(form.type)))
        return ways_between(*forms)

    def parameter_change(self, context: ParameterContext) -> ParameterChange | None:
        for key, form in (("newer", self.newer), ("older", self.older)):
            context.text(form.prefix + form.suffix, key)
        return super().parameter_change(context)
