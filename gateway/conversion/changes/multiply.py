"""`multiply` and its inverse `divide`: the older version has a quantity in another unit."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from math import gcd, lcm
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from gateway.base.model import NumberText, SectionModel
from gateway.conversion.change import Change, ValueRewrite, rewrite_numbers, value_change
from gateway.conversion.changes.change_section import (
    BodySection,
    BuildContext,
    Loss,
    ParameterSection,
)
from gateway.conversion.field_path import Keys, Scope
from gateway.conversion.parameter_change import ParameterChange, rewritten
from gateway.conversion.schema import JSON_TYPES, Flat, SchemaImage, scaled, wide

# A JSON number (RFC 8259, section 6). No realistic quantity has more digits or a longer exponent.
_NUMBER = re.compile(
    r"(-?)(0|[1-9][0-9]{0,399})(?:\.([0-9]{1,400}))?(?:[eE]([+-]?[0-9]{1,3}))?\Z", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Product:
    """A function that multiplies a number by a factor and adds a constant.

    Attributes:
        digits: The maximum number of digits after the decimal point; None sets no limit.
        rounds: Whether a result with more digits is rounded half away from zero. If false, such a
            result raises ValueError.
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
        return Product(1 / self.factor, digits, rounds, -self.plus / self.factor)

    def __call__(self, text: str) -> str:
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
            raise ValueError("the other version would need infinitely many decimal places")
        if rest and not self.rounds:
            raise ValueError(f"the other version would have more than {places} decimal places")
        product += 2 * rest >= divisor
        if not product:
            return "0"
        digits = str(product).zfill(places + 1)
        whole, fraction = digits[: len(digits) - places], digits[len(digits) - places :]
        fraction = fraction.rstrip("0")
        return f"{sign}{whole}.{fraction}" if fraction else sign + whole


def decimal_places(factor: Fraction) -> tuple[int, bool]:
    """Return how many decimal places a factor adds, and whether products have finitely many."""
    places, rest = 0, factor.denominator
    while (shared := gcd(rest, 10)) > 1:
        rest //= shared
        places += 1
    return places, rest == 1


_OPPOSITE = Product(Fraction(-1))


def multiply(scopes: tuple[Scope, ...], field: Keys, newer: Product, older: Product) -> Change:
    return value_change(scopes, field, _multiplying(newer), _multiplying(older))


def _multiplying(product: Product) -> ValueRewrite:
    def effect(flat: Flat, image: SchemaImage) -> object:
        if flat["type"] not in JSON_TYPES["number"]:
            made = wide({"type": "string"}) if flat["type"] == "string" else False
            return image.refused(flat, "not every string is a number", made)
        whole = product.factor.denominator == product.plus.denominator == 1
        if flat["type"] == "integer" and whole:
            return scaled(flat, product.factor, product.plus)
        made = wide({"type": "integer" if product.digits == 0 else "number"})
        ends = decimal_places(product.factor)[1] and decimal_places(product.plus)[1]
        safe = product.rounds or (product.digits is None and ends)
        return made if safe else image.refused(flat, "a product may have too many digits", made)

    return rewrite_numbers(product, effect)


# The number of significant digits of any decimal number that a float preserves.
_DIGITS = 15
Places = Annotated[int, Field(ge=0, le=18), NumberText]


def _not_zero(factor: float) -> float:
    if not factor:
        raise ValueError("expected a number other than 0, which cannot be converted back")
    return factor


class Digits(SectionModel):
    """The maximum number of digits after the decimal point in each version."""

    newer: Places | None = None
    """The maximum number of digits after the decimal point in the newer version; the default is
    all."""
    older: Places | None = None
    """The maximum number of digits after the decimal point in the older version; the default is
    all."""


class Multiply(BodySection, ParameterSection):
    """Multiply a number or numeric string for the older version, such as minutes to seconds."""

    keyword = "multiply"
    divides: ClassVar[bool] = False

    field: str
    """The field, query parameter or header field, which has the same name in both versions."""
    by: Annotated[float, Field(ge=-1e15, le=1e15), NumberText, AfterValidator(_not_zero)]
    """The factor between the two units, such as 60 for minutes and seconds, or 0.3048. -1 inverts
    the sign, as between a debt and a balance. 0 is not allowed."""
    plus: Annotated[float, Field(ge=-1e15, le=1e15), NumberText] = 0
    """The number that is added to the product, such as 32 for degrees Fahrenheit with the factor
    1.8. The default is 0."""
    digits: Digits = Digits()
    """The maximum number of digits after the decimal point; the default is all."""
    inexact: Literal["refuse", "round"] = "refuse"
    """Whether a number with more digits is refused, or rounded half away from zero. The default is
    refuse."""

    def own_losses(self) -> Iterator[Loss]:
        for newer, product in zip((False, True), (self._older, self._newer), strict=True):
            if product.rounds:
                places = "1 digit" if product.digits == 1 else f"{product.digits} digits"
                yield Loss(
                    newer, f"'{self.field}' is rounded to {places} after the decimal point", True
                )

    def compile_body(self, context: BuildContext) -> Change | None:
        if not self._sound(context):
            return None
        newer, older = self._newer, self._older
        return context.value_change(
            self.field, lambda scopes, keys: multiply(scopes, keys, newer, older), "field"
        )

    def compile_parameter(self, context: BuildContext) -> ParameterChange | None:
        if not self._sound(context):
            return None
        return rewritten(context.name(self.field, "field"), self._newer, self._older)

    @property
    def _newer(self) -> Product:
        return self._product(not self.divides, self.digits.newer)

    @property
    def _older(self) -> Product:
        return self._product(self.divides, self.digits.older)

    def _product(self, inverse: bool, digits: int | None) -> Product:
        factor, plus = Fraction(repr(self.by)), Fraction(repr(self.plus))
        rounds = digits is not None and self.inexact == "round"
        product = Product(factor, digits, rounds, plus)
        return product.inverse(digits, rounds=rounds) if inverse else product

    def _sound(self, context: BuildContext) -> bool:
        mistake = self._mistake()
        if mistake is not None:
            context.mistakes.add(*mistake)
        elif "inexact" not in self.model_fields_set:
            for key, product in (("newer", self._newer), ("older", self._older)):
                if product.digits is None and not decimal_places(product.factor)[1]:
                    context.mistakes.warn(
                        "warning: a number that would need infinitely many decimal"
                        f" places in the {key}"
                        f" version is refused; round it with digits: {{ {key}: 2 }} and inexact:"
                        " round, or write inexact: refuse"
                    )
        return mistake is None

    def _mistake(self) -> tuple[str, str] | None:
        if self.by == 1 and not self.plus:
            return "changes nothing; write the factor between the two units", "by"
        for key, number in (("by", self.by), ("plus", self.plus)):
            if len(Decimal(repr(number)).normalize().as_tuple().digits) > _DIGITS:
                return f"has more than {_DIGITS} digits; write a number with fewer digits", key
        if self.inexact == "refuse":
            return None
        if self.digits == Digits():
            return "is only valid with digits; add digits, such as digits: { newer: 0 }", "inexact"
        for key, product in (("newer", self._newer), ("older", self._older)):
            if product.digits is None and not decimal_places(product.factor)[1]:
                text = (
                    f"'{key}' is missing, and the number may have infinitely many decimal"
                    " places; add it"
                )
                return text, "digits"
        return None


class Divide(Multiply):
    """Divide a number or numeric string for the older version, such as seconds to minutes."""

    keyword = "divide"
    divides = True
