"""`wrap` and `unwrap`: a single value in one version, a list in the other.

A list of parameters is one that is repeated.
"""

from collections.abc import Iterable
from typing import Literal

from gateway.config.changes.change_section import BodySection, Loss, ParameterSection, Upgrade
from gateway.config.changes.change_site import BodySite, ParameterSite
from gateway.config.changes.value_kinds import ARRAY
from gateway.core.conversion.change import Change, Inverse
from gateway.core.conversion.changes.wrap import Wrap
from gateway.core.conversion.parameter_change import ParameterChange, Reversed
from gateway.core.conversion.parameters.first_value import FirstValue


class _ListSection(BodySection, ParameterSection):
    """What `wrap` and `unwrap` have in common."""

    field: str
    """The field or parameter, which has the same name in both versions."""
    many: Literal["first", "refuse"] = "first"
    """What a list of several becomes: its first element, or a refusal. The default is first."""

    def _first(self, *, newer: bool) -> Iterable[Loss]:
        if self.many == "first":
            yield Loss(newer, f"of several elements, '{self.field}' keeps the first")

    def _wrap(self, site: BodySite) -> Wrap | None:
        path = site.path(self.field, "field")
        return None if path is None else Wrap(path.scopes, path.keys, self.many == "refuse")

    def _first_value(self, site: ParameterSite) -> FirstValue:
        return FirstValue(site.name(self.field, "field"), self.many == "refuse")


class WrapConfig(_ListSection):
    """Wrap a value: the older version has a list where the newer one has a single value."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it reads a list."""
        return Upgrade.in_place(self.field, reads=ARRAY)

    def losses(self) -> Iterable[Loss]:
        """Return what an upgrade takes from the list."""
        return self._first(newer=True)

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of a field."""
        return self._wrap(site)

    def parameter_change(self, site: ParameterSite) -> ParameterChange:
        """Return the change of a parameter, which the older version may repeat."""
        return self._first_value(site)


class UnwrapConfig(_ListSection):
    """Unwrap a list: the older version has a single value where the newer one has a list."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it leaves a list."""
        return Upgrade.in_place(self.field, leaves=ARRAY)

    def losses(self) -> Iterable[Loss]:
        """Return what a downgrade takes from the list."""
        return self._first(newer=False)

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of a field."""
        change = self._wrap(site)
        return change and Inverse(change)

    def parameter_change(self, site: ParameterSite) -> ParameterChange:
        """Return the change of a parameter, which the newer version may repeat."""
        return Reversed(self._first_value(site))
