"""`round`: the older version has fewer digits after the decimal point."""

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from gateway.base.model import NumberText
from gateway.conversion.change import Change
from gateway.conversion.changes.change_section import BodySection, Loss, ParameterSection, Upgrade
from gateway.conversion.changes.change_site import BodySite, ParameterSite
from gateway.conversion.changes.round import Round
from gateway.conversion.changes.value_kinds import ValueKinds
from gateway.conversion.parameter_change import ParameterChange, Rewritten

_KINDS = ValueKinds(frozenset({"a number", "a string"}))


class RoundConfig(BodySection, ParameterSection):
    """Round a number, or a text that is one, to the digits of the older version."""

    field: str
    """The field, query parameter or header field, which has the same name in both versions."""
    digits: Annotated[int, Field(ge=0, le=18), NumberText]
    """The digits after the decimal point in the older version; halfway is away from zero."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it leaves the number as it is."""
        return Upgrade(
            takes=(self.field,),
            makes=(self.field,),
            reads={self.field: _KINDS},
            leaves={},
            moves={self.field: self.field},
        )

    def losses(self) -> Iterable[Loss]:
        """Return the digits that a downgrade drops."""
        places = "1 digit" if self.digits == 1 else f"{self.digits} digits"
        text = f"'{self.field}' is rounded to {places} after the decimal point"
        return (Loss(False, f"{text}, and the way back cannot restore the others"),)

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of a field, or of the elements of an array."""
        return site.value_change(
            self.field, lambda scopes, keys: Round(scopes, keys, self.digits), "field"
        )

    def parameter_change(self, site: ParameterSite) -> ParameterChange:
        """Return the change of a parameter."""
        rounded = Round((), (), self.digits).rounded
        return Rewritten(site.name(self.field, "field"), str, rounded)
