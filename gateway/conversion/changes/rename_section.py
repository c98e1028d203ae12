"""`rename`: a field, query parameter or header field that has another name in the older version."""

from collections.abc import Iterator

from pydantic import JsonValue

from gateway.conversion.change import Change, ChangeSequence
from gateway.conversion.changes.change_section import (
    BodySection,
    ChangeSection,
    Loss,
    ParameterSection,
    Upgrade,
)
from gateway.conversion.changes.change_site import BodySite, ChangeSite, ParameterSite
from gateway.conversion.changes.default import Added, Default
from gateway.conversion.changes.rename import Rename, Renamed
from gateway.conversion.parameter_change import ParameterChange, ParameterSequence


class RenameSection(ChangeSection):
    """What `rename` of a body and of parameters have in common."""

    field: str
    """The name that the newer version has for the field, query parameter or header field."""
    to: str
    """The name that the older version has for the field, query parameter or header field."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it moves the value."""
        return Upgrade(
            takes=(self.to,),
            makes=(self.field,),
            reads={},
            leaves={},
            moves={self.field: self.to},
        )

    def losses(self) -> Iterator[Loss]:
        """Yield what a default leaves open: a value moves as it is."""
        if "default" in self.model_fields_set:
            yield Loss(True, f"where '{self.to}' is absent, '{self.field}' is the default")


class RenameParameterConfig(RenameSection, ParameterSection):
    """Rename a query parameter or a header field in the older version."""

    default: str | None = None
    """The value where the older version's message has none; without it, none is added."""

    def parameter_change(self, site: ParameterSite) -> ParameterChange:
        """Return the change of a parameter."""
        newer, older = site.name(self.field, "field"), site.name(self.to, "to")
        if newer == older:
            _is_its_own(site)
        change = Renamed(newer, older)
        if self.default is None:
            return change
        return ParameterSequence(
            (change, Added(newer, site.text(self.default, "default"), keep=True))
        )


class RenameConfig(RenameSection, BodySection):
    """Rename a field, parameter or header, or move a field, in the older version."""

    default: JsonValue = None
    """The JSON value where the older version's document has none; without it, none is added."""

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of a field."""
        paths = site.paths((self.field, ("field",)), (self.to, ("to",)))
        if paths is None:
            return None
        newer, older = paths
        if newer == older:
            _is_its_own(site)
            return None
        change = Rename(newer.scopes, newer.keys, older.keys)
        if "default" not in self.model_fields_set:
            return change
        added = Default(newer.scopes, newer.keys, self.default, keep=True)
        return ChangeSequence((change, added))


def _is_its_own(site: ChangeSite) -> None:
    site.complain("is the name that it has already; remove the change", "to")
