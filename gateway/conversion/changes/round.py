"""`round`: the older version has fewer digits after the decimal point."""

import re
from collections.abc import Callable, Iterable
from typing import Annotated

from pydantic import Field

from gateway.base.model import NumberText
from gateway.conversion.change import Change, rewrite_numbers, value_change
from gateway.conversion.changes.change_section import (
    BodySection,
    BuildContext,
    Loss,
    ParameterSection,
)
from gateway.conversion.field_path import Keys, Scope
from gateway.conversion.parameter_change import ParameterChange, rewritten
from gateway.conversion.schema import Flat, SchemaImage, wide

# A JSON number (RFC 8259, section 6). No realistic amount has an exponent with more digits.
_NUMBER = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]{1,18}))?\Z", re.ASCII)


class Round(BodySection, ParameterSection):
    """Round a number or numeric string to the number of digits in the older version."""

    keyword = "round"

    field: str
    """The field, query parameter or header field, which has the same name in both versions."""
    digits: Annotated[int, Field(ge=0, le=18), NumberText]
    """The number of digits after the decimal point in the older version. Numbers are rounded half
    away from zero."""

    def own_losses(self) -> Iterable[Loss]:
        places = "1 digit" if self.digits == 1 else f"{self.digits} digits"
        text = f"'{self.field}' is rounded to {places} after the decimal point"
        return (
            Loss(False, f"{text}, and the reverse direction cannot restore the other digits", True),
        )

    def compile_body(self, context: BuildContext) -> Change | None:
        return context.value_change(
            self.field, lambda scopes, keys: round_down(scopes, keys, self.digits), "field"
        )

    def compile_parameter(self, context: BuildContext) -> ParameterChange:
        return rewritten(context.name(self.field, "field"), str, rounded(self.digits))


def round_down(scopes: tuple[Scope, ...], field: Keys, digits: int) -> Change:
    """Return the change of a number that a downgrade rounds.

    Numbers are rounded half away from zero, as in SQL databases. A number without more digits keeps
    its spelling. An upgrade does not change numbers, because lost digits cannot be restored.
    """
    return value_change(scopes, field, None, rewrite_numbers(rounded(digits), _effect))


def _effect(flat: Flat, image: SchemaImage) -> object:
    if flat["type"] == "integer":
        return flat
    if flat["type"] == "number":
        return wide({"type": "number"})
    made = wide({"type": "string"}) if flat["type"] == "string" else False
    return image.refused(flat, "not every string is a number", made)


def rounded(places: int) -> Callable[[str], str]:
    """Return a function that rounds decimal digits; it raises ValueError for other strings."""

    def convert(text: str) -> str:
        match = _NUMBER.match(text)
        if match is None:
            raise ValueError("expected a number such as 12.345, found something else")
        sign, whole, fraction, exponent = match.groups("")
        digits = whole + fraction
        extra = len(fraction) - int(exponent or 0) - places
        if extra <= 0:
            return text
        # The first dropped digit decides, because numbers are rounded half away from zero.
        up = extra <= len(digits) and digits[-extra] >= "5"
        kept = _incremented(digits[:-extra]) if up else digits[:-extra]
        kept = kept.lstrip("0").zfill(places + 1)
        whole, fraction = kept[: len(kept) - places], kept[len(kept) - places :]
        amount = f"{whole}.{fraction}" if fraction else whole
        return sign + amount if kept.strip("0") else amount

    return convert


def _incremented(digits: str) -> str:
    # int() would refuse a string with too many digits (sys.set_int_max_str_digits).
    rest = f"0{digits}".rstrip("9")
    return rest[:-1] + str(int(rest[-1]) + 1) + "0" * (len(digits) + 1 - len(rest))
