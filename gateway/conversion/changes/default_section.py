"""`default` and `remove`: a field, query parameter or header field that one version alone has."""

from collections.abc import Iterable

from pydantic import JsonValue

from gateway.conversion.change import Change, Inverse
from gateway.conversion.changes.change_section import (
    BodySection,
    ChangeSection,
    Loss,
    ParameterSection,
    Upgrade,
)
from gateway.conversion.changes.change_site import BodySite, ParameterSite
from gateway.conversion.changes.default import Added, Default
from gateway.conversion.changes.value_kinds import ValueKinds
from gateway.conversion.document import MISSING, kind
from gateway.conversion.parameter_change import ParameterChange, Reversed


class _DefaultSection(ChangeSection):
    """What `default` of a body and of parameters have in common."""

    field: str
    """The name, in the newer version, of what the older version lacks."""
    keep: bool = False
    """Whether the older version may have it as well, so that it stays. The default is false."""

    def losses(self) -> Iterable[Loss]:
        """Return what a downgrade leaves out, or which absence an upgrade does not keep."""
        if self.keep:
            return (Loss(True, f"where '{self.field}' is absent, it is the default"),)
        return (Loss(False, f"'{self.field}' is left out"),)

    @property
    def taken(self) -> tuple[str, ...]:
        """What an upgrade looks for."""
        return (self.field,) if self.keep else ()


class _RemoveSection(ChangeSection):
    """What `remove` of a body and of parameters have in common."""

    field: str
    """The name, in the older version, of what the newer version lacks."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it leaves the field out."""
        return Upgrade(takes=(self.field,), makes=(), reads={}, leaves={})

    def losses(self) -> Iterable[Loss]:
        """Return what an upgrade leaves out."""
        return (Loss(True, f"'{self.field}' is left out"),)


class DefaultParameterConfig(_DefaultSection, ParameterSection):
    """Leave out, for the older version, a parameter or header that only the newer version has."""

    value: str | None = None
    """The value where the older version's message has none; without it, none is added."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it adds the parameter."""
        return Upgrade(takes=self.taken, makes=(self.field,), reads={}, leaves={})

    def parameter_change(self, site: ParameterSite) -> ParameterChange:
        """Return the change of a parameter."""
        return _added(self.field, self.value, site, keep=self.keep)


class RemoveParameterConfig(_RemoveSection, ParameterSection):
    """Add, for the older version, a parameter or header that only the older version has."""

    value: str | None = None
    """The value where the newer version's message has none; without it, none is added."""

    def parameter_change(self, site: ParameterSite) -> ParameterChange:
        """Return the change of a parameter."""
        return Reversed(_added(self.field, self.value, site))


class DefaultConfig(_DefaultSection, BodySection):
    """Leave out, for the older version, a field that only the newer version has."""

    value: JsonValue
    """The JSON value of the field in documents that come from the older version."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it adds the field."""
        known = {self.field: ValueKinds(frozenset({kind(self.value)}))}
        return Upgrade(
            takes=self.taken,
            makes=(self.field,),
            reads={},
            leaves={} if self.value is None or self.keep else known,
        )

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of a field."""
        path = site.path(self.field, "field")
        return None if path is None else Default(path.scopes, path.keys, self.value, self.keep)


class RemoveConfig(_RemoveSection, BodySection):
    """Add, for the older version, a field that only the older version has."""

    value: JsonValue = None
    """The JSON value of the field in documents of the newer version; without it, none is added."""

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of a field."""
        path = site.path(self.field, "field")
        value = self.value if "value" in self.model_fields_set else MISSING
        return None if path is None else Inverse(Default(path.scopes, path.keys, value))


def _added(name: str, value: str | None, site: ParameterSite, *, keep: bool = False) -> Added:
    text = None if value is None else site.text(value, "value")
    return Added(site.name(name, "field"), text, keep)
