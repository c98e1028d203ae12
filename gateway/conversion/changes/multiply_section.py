"""`multiply` and its inverse `divide`: the same quantity in another unit."""

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from gateway.base.model import NumberText, SectionModel
from gateway.conversion.change import Change
from gateway.conversion.changes.change_section import BodySection, Loss, ParameterSection, Upgrade
from gateway.conversion.changes.change_site import BodySite, ChangeSite, ParameterSite
from gateway.conversion.changes.multiply import Multiply, Product, decimal_places
from gateway.conversion.changes.value_kinds import ValueKinds
from gateway.conversion.parameter_change import ParameterChange, Rewritten

_KINDS = ValueKinds(frozenset({"a number", "a string"}))
# What a float holds of any decimal number without a change.
_DIGITS = 15
Places = Annotated[int, Field(ge=0, le=18), NumberText]


def _not_zero(factor: float) -> float:
    if not factor:
        raise ValueError("expected another number than 0, from which none comes back")
    return factor


class DigitsConfig(SectionModel):
    """The digits that a number has at most after the decimal point, in each version."""

    newer: Places | None = None
    """The digits after the point that the newer version has at most; without it, all there are."""
    older: Places | None = None
    """The digits after the point that the older version has at most; without it, all there are."""


class _FactorSection(BodySection, ParameterSection):
    """What `multiply` and `divide` have in common."""

    divides: ClassVar[bool]

    field: str
    """The field, query parameter or header field, which has the same name in both versions."""
    by: Annotated[float, Field(ge=-1e15, le=1e15), NumberText, AfterValidator(_not_zero)]
    """The factor between the two units, such as 60 for minutes and seconds, or 0.3048; -1 for the
    opposite sign, such as a debt and a balance. It is not 0."""
    plus: Annotated[float, Field(ge=-1e15, le=1e15), NumberText] = 0
    """What the version with the product adds to it, such as 32 for degrees Fahrenheit with 1.8. The
    default is 0."""
    digits: DigitsConfig = DigitsConfig()
    """The digits that the number has at most after the decimal point; without it, all there are."""
    inexact: Literal["refuse", "round"] = "refuse"
    """What is done with a number that would have more digits: it is refused, or rounded, and
    halfway is away from zero. The default is refuse."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it reads a number and leaves another."""
        return Upgrade.in_place(self.field, _KINDS, _KINDS)

    def losses(self) -> Iterator[Loss]:
        """Yield the digits that are rounded, where a product can have more."""
        for newer, product in zip((False, True), (self._older, self._newer), strict=True):
            if product.rounds:
                places = "1 digit" if product.digits == 1 else f"{product.digits} digits"
                yield Loss(newer, f"'{self.field}' is rounded to {places} after the decimal point")

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of a field, or of the elements of an array."""
        if not self._sound(site):
            return None
        newer, older = self._newer, self._older
        return site.value_change(
            self.field, lambda scopes, keys: Multiply(scopes, keys, newer, older), "field"
        )

    def parameter_change(self, site: ParameterSite) -> ParameterChange | None:
        """Return the change of a parameter."""
        if not self._sound(site):
            return None
        return Rewritten(site.name(self.field, "field"), self._newer, self._older)

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

    def _sound(self, site: ChangeSite) -> bool:
        """Whether the factor and the digits fit each other; False after recording the mistake."""
        mistake = self._mistake()
        if mistake is not None:
            site.complain(*mistake)
        elif "inexact" not in self.model_fields_set:
            for key, product in (("newer", self._newer), ("older", self._older)):
                if product.digits is None and not decimal_places(product.factor)[1]:
                    site.warn(
                        f"warning: a number that would have decimal places without end in the {key}"
                        f" version is refused; round it, by digits: {{ {key}: 2 }} and inexact:"
                        " round, or write inexact: refuse"
                    )
        return mistake is None

    def _mistake(self) -> tuple[str, str] | None:
        """Return what is wrong, and at which key; None without a mistake."""
        if self.by == 1 and not self.plus:
            return "changes nothing; write the factor between the two units", "by"
        for key, number in (("by", self.by), ("plus", self.plus)):
            if len(Decimal(repr(number)).normalize().as_tuple().digits) > _DIGITS:
                return f"has more than {_DIGITS} digits; write a number of fewer", key
        if self.inexact == "refuse":
            return None
        if self.digits == DigitsConfig():
            return "goes with digits; add them, such as digits: { newer: 0 }", "inexact"
        for key, product in (("newer", self._newer), ("older", self._older)):
            if product.digits is None and not decimal_places(product.factor)[1]:
                text = f"'{key}' is missing here, where decimal places may have no end; add it"
                return text, "digits"
        return None


class MultiplyConfig(_FactorSection):
    """Multiply a number, or a text that is one, for the older version: minutes as seconds."""

    divides = False


class DivideConfig(_FactorSection):
    """Divide a number, or a text that is one, for the older version: seconds as minutes."""

    divides = True
