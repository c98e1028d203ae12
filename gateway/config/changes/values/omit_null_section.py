"""`omit_null` and `fill_null`: null, or another value, in one version, no field in the other."""

import json
from collections.abc import Iterable

from pydantic import JsonValue

from gateway.config.changes.change_section import BodySection, Loss, Upgrade
from gateway.config.changes.change_site import BodySite
from gateway.core.conversion.change import Change, Inverse
from gateway.core.conversion.changes.values.omit_null import OmitNull


class _NullSection(BodySection):
    """What the two changes have in common."""

    field: str
    """The field, which has the same name in both versions."""
    value: JsonValue = None
    """The value in place of null: a text, number or boolean, `[]` or `{}`."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: other values stay as they are."""
        return Upgrade.in_place(self.field)

    def _losses(self, *, newer: bool) -> Iterable[Loss]:
        value = json.dumps(self.value, ensure_ascii=False)
        yield Loss(not newer, f"where '{self.field}' is absent, it comes back as {value}")
        yield Loss(newer, f"where '{self.field}' is {value}, it comes back as absent")

    def _change(self, site: BodySite) -> OmitNull | None:
        path = site.path(self.field, "field")
        if isinstance(self.value, list | dict) and self.value:
            site.complain("write a text, number or boolean, [] or {}", "value")
        return None if path is None else OmitNull(path.scopes, path.keys, self.value)


class OmitNullConfig(_NullSection):
    """Omit null: the older version has no field where the newer one has null."""

    def losses(self) -> Iterable[Loss]:
        """Return what does not come back."""
        return self._losses(newer=True)

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of a field."""
        return self._change(site)


class FillNullConfig(_NullSection):
    """Fill null in: the older version has null where the newer one has no field."""

    def losses(self) -> Iterable[Loss]:
        """Return what does not come back."""
        return self._losses(newer=False)

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of a field."""
        change = self._change(site)
        return change and Inverse(change)
