"""`wrap` and `unwrap`: a single value in one version, a list in the other.

A list of parameters is one that is repeated.
"""

from collections.abc import Iterator
from typing import ClassVar, Literal

from gateway.config.changes.change_section import BodySection, Loss, ParameterSection, Upgrade
from gateway.config.changes.change_site import BodySite, ParameterSite
from gateway.config.changes.value_kinds import ARRAY
from gateway.core.conversion.change import Change, Inverse
from gateway.core.conversion.changes.wrap import Wrap
from gateway.core.conversion.parameter_change import ParameterChange, Reversed
from gateway.core.conversion.parameters.first_value import FirstValue


class _ListSection(BodySection, ParameterSection):
    """What `wrap` and `unwrap` have in common.

    Attributes:
        inverse: whether the newer version has the list, else the older one.
    """

    field: str
    """The field or parameter, which has the same name in both versions."""
    many: Literal["first", "refuse"] = "first"
    """What a list of several becomes: its first element, or a refusal. The default is first."""

    inverse: ClassVar[bool] = False

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it reads a list, or leaves one."""
        reads, leaves = (None, ARRAY) if self.inverse else (ARRAY, None)
        return Upgrade.in_place(self.field, reads, leaves)

    def losses(self) -> Iterator[Loss]:
        """Yield what the way to the single value takes from the list."""
        if self.many == "first":
            yield Loss(not self.inverse, f"of several elements, '{self.field}' keeps the first")

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of a field."""
        path = site.path(self.field, "field")
        if path is None:
            return None
        change = Wrap(path.scopes, path.keys, self.many == "refuse")
        return Inverse(change) if self.inverse else change

    def parameter_change(self, site: ParameterSite) -> ParameterChange:
        """Return the change of a parameter, which the version with the list may repeat."""
        change = FirstValue(site.name(self.field, "field"), self.many == "refuse")
        return Reversed(change) if self.inverse else change


class WrapConfig(_ListSection):
    """Wrap a value: the older version has a list where the newer one has a single value."""


class UnwrapConfig(_ListSection):
    """Unwrap a list: the older version has a single value where the newer one has a list."""

    inverse = True
