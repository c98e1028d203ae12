"""`omit_null` and `fill_null`: null, or another value, in one version, no field in the other."""

import json
from collections.abc import Iterator
from typing import ClassVar

from pydantic import JsonValue

from gateway.conversion.change import Change, Inverse
from gateway.conversion.changes.change_section import BodySection, Loss, Upgrade
from gateway.conversion.changes.change_site import BodySite
from gateway.conversion.changes.omit_null import OmitNull


class _NullSection(BodySection):
    """What the two changes have in common.

    Attributes:
        inverse: whether the newer version omits the field, else the older one.
    """

    field: str
    """The field, which has the same name in both versions."""
    value: JsonValue = None
    """The value in place of null: a text, number or boolean, `[]` or `{}`."""

    inverse: ClassVar[bool] = False

    def upgrade(self) -> Upgrade:
        """Return the upgrade: other values stay as they are."""
        return Upgrade.in_place(self.field)

    def losses(self) -> Iterator[Loss]:
        """Yield what does not come back."""
        value = json.dumps(self.value, ensure_ascii=False)
        yield Loss(self.inverse, f"where '{self.field}' is absent, it comes back as {value}")
        yield Loss(not self.inverse, f"where '{self.field}' is {value}, it comes back as absent")

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of a field."""
        path = site.path(self.field, "field")
        if isinstance(self.value, list | dict) and self.value:
            site.complain("write a text, number or boolean, [] or {}", "value")
        if path is None:
            return None
        change = OmitNull(path.scopes, path.keys, self.value)
        return Inverse(change) if self.inverse else change


class OmitNullConfig(_NullSection):
    """Omit null: the older version has no field where the newer one has null."""


class FillNullConfig(_NullSection):
    """Fill null in: the older version has null where the newer one has no field."""

    inverse = True
