"""`round`: the older version has fewer digits after the decimal point."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from gateway.base.model import NumberText
from gateway.conversion.change import Change, FieldChange
from gateway.conversion.changes.build_context import BodyContext, ParameterContext
from gateway.conversion.changes.change_section import BodySection, Loss, ParameterSection
from gateway.conversion.document import JsonForm, JsonObject
from gateway.conversion.parameter_change import ParameterChange, Rewritten
from gateway.conversion.scalars import replace_number
from gateway.conversion.schema import Flat, SchemaImage, wide

# RFC 8259, section 6; an exponent of more digits is no amount of anything.
_NUMBER = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]{1,18}))?\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Round(FieldChange):
    """The older version has at most so many digits after the decimal point.

    Downwards, a number of more digits is rounded to the nearest of that many, and what lies
    halfway away from zero, as SQL databases do; every other number stays as it is written.
    Upwards, all numbers stay as they are: the digits that are lost cannot be restored.
    """

    digits: int

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Keep the number."""

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        replace_number(fields, self.field, form, self.rounded)

    def effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        return flat if upwards else super(Round, self).effect(flat, image, upwards=upwards)

    def value_effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        if flat["type"] == "integer":
            return flat
        if flat["type"] == "number":
            return wide({"type": "number"})
        made = wide({"type": "string"}) if flat["type"] == "string" else False
        return image.refused(flat, "a text may be no number", made)

    def rounded(self, text: str) -> str:
        """Return a number with at most so many digits after the decimal point; raises ValueError.

        It is rounded on its digits as they are written, so that none is lost to binary fractions.
        """
        match = _NUMBER.match(text)
        if match is None:
            raise ValueError("expected a number such as 12.345, found something else")
        sign, whole, fraction, exponent = match.groups("")
        digits = whole + fraction
        extra = len(fraction) - int(exponent or 0) - self.digits
        if extra <= 0:
            return text
        # The first digit that is dropped decides, since halfway is away from zero.
        up = extra <= len(digits) and digits[-extra] >= "5"
        kept = _incremented(digits[:-extra]) if up else digits[:-extra]
        kept = kept.lstrip("0").zfill(self.digits + 1)
        whole, fraction = kept[: len(kept) - self.digits], kept[len(kept) - self.digits :]
        amount = f"{whole}.{fraction}" if fraction else whole
        return sign + amount if kept.strip("0") else amount


def _incremented(digits: str) -> str:
    # Not by int, which Python makes of so many digits only (sys.set_int_max_str_digits).
    rest = f"0{digits}".rstrip("9")
    return rest[:-1] + str(int(rest[-1]) + 1) + "0" * (len(digits) + 1 - len(rest))


class RoundConfig(BodySection, ParameterSection):
    """Round a number, or a text that is one, to the digits of the older version."""

    keyword = "round"

    field: str
    """The field, query parameter or header field, which has the same name in both versions."""
    digits: Annotated[int, Field(ge=0, le=18), NumberText]
    """The digits after the decimal point in the older version; rounds half away from zero."""

    def losses(self) -> Iterable[Loss]:
        places = "1 digit" if self.digits == 1 else f"{self.digits} digits"
        text = f"'{self.field}' is rounded to {places} after the decimal point"
        return (Loss(False, f"{text}, and the way back cannot restore the others", True),)

    def body_change(self, context: BodyContext) -> Change | None:
        return context.value_change(
            self.field, lambda scopes, keys: Round(scopes, keys, self.digits), "field"
        )

    def parameter_change(self, context: ParameterContext) -> ParameterChange:
        rounded = Round((), (), self.digits).rounded
        return Rewritten(context.name(self.field, "field"), str, rounded)
