"""Amount: minor units of a currency in the newer version, a decimal amount in the older one.

The currency is another parameter of the same request, and the same in both versions.
"""

from dataclasses import dataclass

from gateway.conversion.changes.currency import PLACES
from gateway.conversion.changes.recombined import ParameterValues
from gateway.conversion.changes.scale import Scale
from gateway.conversion.scalars import Type


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount of money beside its currency, whose code may be in small letters.

    Attributes:
        amount: The name of the parameter with the amount.
        currency: The name of the parameter with the currency.
        unknown: The decimal places where the currency is absent or not in ISO 4217; None refuses.
    """

    amount: str
    currency: str
    unknown: int | None = None

    def units(self, values: ParameterValues) -> ParameterValues:
        """Return the amount in minor units; raises ValueError."""
        if self.amount not in values:
            return values
        return {**values, self.amount: self._scale(values).units(values[self.amount])}

    def decimal(self, values: ParameterValues) -> ParameterValues:
        """Return the amount with decimal places; raises ValueError."""
        if self.amount not in values:
            return values
        return {**values, self.amount: self._scale(values).amount(values[self.amount])}

    def _scale(self, values: ParameterValues) -> Scale:
        places = PLACES.get(values.get(self.currency, "").upper(), self.unknown)
        if places is None:
            raise ValueError("the currency is absent, or not an alphabetic code of ISO 4217")
        return Scale((), (), places, Type.TEXT)
