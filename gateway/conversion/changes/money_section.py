"""`money`: minor units of a currency in one version, decimal amounts in the other."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from gateway.base.model import NumberText
from gateway.conversion.change import Change, Inverse
from gateway.conversion.changes.change_section import BodySection, Loss, ParameterSection, Upgrade
from gateway.conversion.changes.change_site import BodySite, ChangeSite, ParameterSite
from gateway.conversion.changes.recombined import Recombined
from gateway.conversion.changes.value_kinds import NUMBER, TEXT
from gateway.conversion.parameter_change import ParameterChange
from gateway.conversion.scalars import Type

KEYS = "*"
_KINDS = {"text": TEXT, "number": NUMBER, "integer": NUMBER}


class MoneyConfig(BodySection, ParameterSection):
    """Write an amount of money in minor units or with decimal places, by its currency."""

    field: str
    """The field or parameter of the amount, which has the same name in both versions."""
    currency: str
    """The field of the currency, a code of ISO 4217: beside the amount, or further out; "*" where
    the field is an object of amounts by their currencies. For a parameter, that of its currency."""
    newer: Literal["integer", "text", "number"]
    """The amount in the newer version: an integer of minor units, or a decimal text or number."""
    older: Literal["integer", "text", "number"]
    """The amount in the older version: an integer of minor units, or a decimal text or number."""
    unknown: Annotated[int, Field(ge=0, le=18), NumberText] | None = None
    """The decimal places where the currency is unknown; without it, the amount is refused."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it reads one type and leaves another; the currency stays."""
        if self.currency == KEYS:
            return Upgrade.in_place(self.field)
        return Upgrade(
            takes=(self.field, self.currency),
            makes=(self.field, self.currency),
            reads={self.field: _KINDS[self.older]},
            leaves={self.field: _KINDS[self.newer]},
            moves={self.currency: self.currency},
        )

    def losses(self) -> Iterable[Loss]:
        """Return nothing: an amount with more places than its currency has is refused."""
        return ()

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of a field."""
        if not self._counts(site):
            return None
        # Imported when rules name it, with the table of currencies.
        from gateway.conversion.changes.money import Money, MoneyByCurrency

        amount = site.path(self.field, "field")
        older = self.newer == "integer"
        written = Type(self.older if older else self.newer)
        if self.currency == KEYS:
            if amount is None:
                return None
            amounts = MoneyByCurrency(amount.scopes, amount.keys, written, self.unknown)
            return amounts if older else Inverse(amounts)
        currency = site.path(self.currency, "currency")
        if amount is None or currency is None:
            return None
        depth = len(currency.scopes)
        if amount.scopes[:depth] != currency.scopes:
            site.complain(
                "lies in an array that does not lead to the amount; name the currency beside the"
                " amount, or further out",
                "currency",
            )
            return None
        money = Money(
            currency.scopes,
            currency.keys,
            amount.scopes[depth:],
            amount.keys,
            written,
            self.unknown,
        )
        return money if older else Inverse(money)

    def parameter_change(self, site: ParameterSite) -> ParameterChange | None:
        """Return the change of a parameter, which has its currency in another one."""
        # Imported when rules name it, with the table of currencies.
        from gateway.conversion.changes.amount import Amount

        if not self._counts(site):
            return None
        names = site.name(self.field, "field"), site.name(self.currency, "currency")
        if self.field == self.currency:
            site.complain("is the amount itself; name the parameter of its currency", "currency")
            return None
        amount = Amount(*names, self.unknown)
        ways = amount.units, amount.decimal
        return Recombined(names, names, *(ways if self.newer == "integer" else ways[::-1]))

    def _counts(self, site: ChangeSite) -> bool:
        """Whether one version counts minor units; False after recording the mistake."""
        if (self.newer == "integer") != (self.older == "integer"):
            return True
        site.complain(
            "one version has an integer of minor units, the other a text or a number; for a number"
            " and a text, write two: { newer: integer, older: text }, then { newer: number, older:"
            " integer }"
        )
        return False
