"""Scale: whole numbers of the smallest unit in the newer version, decimal amounts in the older.

Nothing is rounded. An absent field stays absent, and null stays null, both ways.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from gateway.conversion.change import FieldChange
from gateway.conversion.document import JsonForm, JsonObject
from gateway.conversion.scalars import Type, replace_scalar
from gateway.conversion.schema import JSON_TYPES, Flat, SchemaImage, scaled, wide

_WHOLE = re.compile(r"(-?)(0|[1-9][0-9]*)\Z", re.ASCII)
_FRACTION = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?\Z", re.ASCII)
# Amounts with an exponent of more digits would be written out in too many.
_EXPONENT = re.compile(
    r"-?(?:0|[1-9][0-9]{0,400})(?:\.[0-9]{1,400})?[eE][+-]?[0-9]{1,3}\Z", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Scale(FieldChange):
    """The newer version has the number of smallest units, the older one an amount with places.

    With two places, the number 1250 is 12.50 in the older version, a text or a number. An amount
    with more places is refused, and so is a number of units that is not whole.
    """

    places: int
    older: Type

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        replace_scalar(fields, self.field, form, self.older, Type.NUMBER, self.units)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        replace_scalar(fields, self.field, form, Type.NUMBER, self.older, self.amount)

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

    def value_effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        source, target = (self.older, Type.NUMBER) if upwards else (Type.NUMBER, self.older)
        if flat["type"] not in JSON_TYPES[source]:
            return image.refused(flat, f"expected a {source}, found {flat['type']}")
        if flat["type"] != "integer":
            whole = "integer" if upwards else "number"
            made = wide({"type": whole if target is Type.NUMBER else "string"})
            return image.refused(flat, "an amount may have too many places", made)
        if target is Type.TEXT:
            return wide({"type": "string"})
        factor = Decimal(10) ** (self.places if upwards else -self.places)
        return scaled({**flat, "type": "integer" if upwards else "number"}, Fraction(factor))
