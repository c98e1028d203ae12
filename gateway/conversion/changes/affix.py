"""`affix`: the older version writes the same value with another prefix and suffix."""

from collections.abc import Callable
from typing import Literal

from gateway.base.model import SectionModel
from gateway.conversion.changes.change_section import BuildContext, FormWays, RewriteSection
from gateway.conversion.parameter_change import ParameterChange
from gateway.conversion.scalars import NUMBER_TEXT, Type


class AffixForm(SectionModel):
    """The form of the value in one version: a string with a prefix and a suffix, or a number."""

    prefix: str = ""
    """The string before the value. The default is an empty string."""
    suffix: str = ""
    """The string after the value. The default is an empty string."""
    type: Literal["text", "number"] = "text"
    """The type of the value. A number cannot have a prefix or suffix. The default is text."""


class Affix(RewriteSection):
    """Write a value with another prefix and suffix, such as the string E12 for the number 12."""

    keyword = "affix"

    newer: AffixForm = AffixForm()
    """The newer version's form of the value; the default is a text without prefix and suffix."""
    older: AffixForm = AffixForm()
    """The older version's form of the value; the default is a text without prefix and suffix."""

    def ways(self, context: BuildContext) -> FormWays | None:
        newer, older = self.newer, self.older
        if newer == older:
            context.mistakes.add(
                "both versions write it identically; add a prefix or suffix to one of them"
            )
            return None
        for key, form in (("newer", newer), ("older", older)):
            if form.type == "number" and form.prefix + form.suffix:
                context.mistakes.add("a number cannot have a prefix or suffix; remove them", key)
                return None
        types = Type(newer.type), Type(older.type)
        return FormWays(
            rewrite_affixes(older.prefix, older.suffix, newer.prefix, newer.suffix, types[0]),
            rewrite_affixes(newer.prefix, newer.suffix, older.prefix, older.suffix, types[1]),
            *types,
        )

    def compile_parameter(self, context: BuildContext) -> ParameterChange | None:
        for key, form in (("newer", self.newer), ("older", self.older)):
            context.text(form.prefix + form.suffix, key)
        return super().compile_parameter(context)


def rewrite_affixes(
    prefix: str, suffix: str, new_prefix: str, new_suffix: str, target: Type = Type.TEXT
) -> Callable[[str], str]:
    """Return a function that raises ValueError for a string without the old prefix and suffix."""

    def rewrite(text: str) -> str:
        end = len(text) - len(suffix)
        if not (len(prefix) <= end and text.startswith(prefix) and text.endswith(suffix)):
            raise ValueError(f"expected a string such as {prefix}12{suffix}, found another")
        bare = text[len(prefix) : end]
        if target is Type.NUMBER and not NUMBER_TEXT.match(bare):
            raise ValueError("expected a number between the prefix and suffix, found a string")
        return f"{new_prefix}{bare}{new_suffix}"

    return rewrite
