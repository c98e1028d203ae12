"""Multiply: the same quantity in another unit, as 900 seconds are 15 minutes, and 68 °F are 20 °C.

Digits are multiplied as they are written, in whole numbers, so that none is lost to binary
fractions. A number of the opposite sign keeps its digits as they are, `-12.50` of `12.50`, since
its unit is the same. A text that is a number stays a text. An absent field stays absent, and null
stays null, both ways.
"""

import re
from dataclasses import dataclass, field
from fractions import Fraction
from math import gcd, lcm

from gateway.conversion.change import FieldChange
from gateway.conversion.document import JsonForm, JsonObject
from gateway.conversion.scalars import replace_number

# RFC 8259, section 6; numbers of more digits, or of a longer exponent, are no quantity of anything.
_NUMBER = re.compile(
    r"(-?)(0|[1-9][0-9]{0,399})(?:\.([0-9]{1,400}))?(?:[eE]([+-]?[0-9]{1,3}))?\Z", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Product:
    """A number multiplied by a factor, and moved, with all digits that it has or at most so many.

    Attributes:
        factor: The factor, which is not 0.
        digits: The digits that the product has at most after the decimal point; None sets no bound.
        rounds: Whether a product of more digits is rounded, and what lies halfway away from zero;
            otherwise it is refused. It goes with `digits`.
        plus: What is added to the product.
    """

    factor: Fraction
    digits: int | None = None
    rounds: bool = False
    plus: Fraction = Fraction(0)

    _places: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        unit = Fraction(1, lcm(self.factor.denominator, self.plus.denominator))
        object.__setattr__(self, "_places", decimal_places(unit)[0])

    def inverse(self, digits: int | None = None, *, rounds: bool = False) -> "Product":
        """Return what leads from the result back to the number, with digits of its own."""
        return Product(1 / self.factor, digits, rounds, -self.plus / self.factor)

    def __call__(self, text: str) -> str:
        """Return the product of a number, in its shortest form; raises ValueError."""
        match = _NUMBER.match(text)
        if match is None:
            raise ValueError("expected a number such as 12.5, found something else")
        sign, whole, fraction, exponent = match.groups("")
        if self == _OPPOSITE:
            return text if not (whole + fraction).strip("0") else text[1:] if sign else f"-{text}"
        behind = len(fraction) - int(exponent or 0)
        places = max(behind, 0) + self._places if self.digits is None else self.digits
        divisor = self.factor.denominator
        total = int(sign + whole + fraction) * self.factor.numerator
        if self.plus:
            total *= self.plus.denominator * 10 ** max(-behind, 0)
            behind = max(behind, 0)
            total += self.plus.numerator * divisor * 10**behind
            divisor *= self.plus.denominator
        sign, total = "-" if total < 0 else "", abs(total)
        divisor *= 10 ** max(behind - places, 0)
        product, rest = divmod(total * 10 ** max(places - behind, 0), divisor)
        if rest and self.digits is None:
            raise ValueError("the other version would have decimal places without end")
        if rest and not self.rounds:
            raise ValueError(f"the other version would have more than {places} decimal places")
        # Halfway is away from zero.
        product += 2 * rest >= divisor
        if not product:
            return "0"
        digits = str(product).zfill(places + 1)
        whole, fraction = digits[: len(digits) - places], digits[len(digits) - places :]
        fraction = fraction.rstrip("0")
        return f"{sign}{whole}.{fraction}" if fraction else sign + whole


def decimal_places(factor: Fraction) -> tuple[int, bool]:
    """Return the decimal places that a factor adds, and whether they end for any number."""
    places, rest = 0, factor.denominator
    while (shared := gcd(rest, 10)) > 1:
        rest //= shared
        places += 1
    return places, rest == 1


_OPPOSITE = Product(Fraction(-1))


@dataclass(frozen=True, slots=True)
class Multiply(FieldChange):
    """The two versions have the same quantity in different units.

    Attributes:
        newer: What makes the newer version's number of the older version's.
        older: What makes the older version's number of the newer version's.
    """

    newer: Product
    older: Product

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Make the newer version's number."""
        replace_number(fields, self.field, form, self.newer)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Make the older version's number."""
        replace_number(fields, self.field, form, self.older)
