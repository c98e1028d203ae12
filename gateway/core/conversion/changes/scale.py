"""Scale: whole numbers of the smallest unit in the newer version, amounts in the older one.

Nothing is rounded. An absent field stays absent, and null stays null, both ways.
"""

import re
from dataclasses import dataclass
from decimal import Decimal

from gateway.core.conversion.document import JsonForm, JsonObject
from gateway.core.conversion.field_path import Keys, Scope
from gateway.core.conversion.scalars import Type, replace_scalar

_WHOLE = re.compile(r"(-?)(0|[1-9][0-9]*)\Z", re.ASCII)
_FRACTION = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?\Z", re.ASCII)
# Amounts with an exponent of more digits would be written out in too many.
_EXPONENT = re.compile(
    r"-?(?:0|[1-9][0-9]{0,400})(?:\.[0-9]{1,400})?[eE][+-]?[0-9]{1,3}\Z", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Scale:
    """The newer version counts in the smallest unit what the older one writes with its places.

    With two places, the number 1250 is 12.50 in the older version, a text or a number. What has
    more places than that, or is not whole where it is counted, is refused.
    """

    scopes: tuple[Scope, ...]
    field: Keys
    places: int
    older: Type

    @property
    def touches(self) -> tuple[Keys, ...]:
        """The field."""
        return (self.field,)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Count the units."""
        replace_scalar(fields, self.field, form, self.older, Type.NUMBER, self.units)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Write the amount."""
        replace_scalar(fields, self.field, form, Type.NUMBER, self.older, self.amount)

    def for_patch(self) -> "Scale":
        """Return the same change: what a PATCH request leaves out is not scaled."""
        return self

    def units(self, text: str) -> str:
        """Return how many units an amount is; raises ValueError."""
        places = self.places
        whole, _, fraction = text.partition(".")
        if len(fraction) == places and text.isascii():
            units = whole + fraction
            if units.isdecimal() and units[0] != "0":
                return units  # nearly always
        plain = format(Decimal(text), "f") if _EXPONENT.match(text) else text
        match = _FRACTION.match(plain)
        if match is None:
            raise ValueError("expected an amount such as 12.50, found something else")
        sign, whole, fraction = match.groups("")
        kept, rest = fraction[:places], fraction[places:]
        if rest.strip("0"):
            raise ValueError(f"has more than {places} decimal places")
        return sign + ((whole + kept.ljust(places, "0")).lstrip("0") or "0")

    def amount(self, units: str) -> str:
        """Return the amount that so many units are; raises ValueError."""
        if not _WHOLE.match(units):
            raise ValueError("expected a whole number, found a fraction or an exponent")
        places = self.places
        if len(units) <= places or units[0] == "-":
            sign, units = ("-", units[1:]) if units[0] == "-" else ("", units)
            units = sign + units.zfill(places + 1)
        return f"{units[:-places]}.{units[-places:]}" if places else units
