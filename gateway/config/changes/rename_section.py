"""`rename`: a field, query parameter or header field that has another name in the older version."""

from collections.abc import Iterable

from gateway.config.changes.change_section import BodySection, Loss, ParameterSection, Upgrade
from gateway.config.changes.change_site import BodySite, ChangeSite, ParameterSite
from gateway.core.conversion.change import Change
from gateway.core.conversion.changes.rename import Rename, Renamed
from gateway.core.conversion.parameter_change import ParameterChange


class RenameConfig(BodySection, ParameterSection):
    """Rename a field, parameter or header, or move a field, in the older version."""

    field: str
    """The name that the newer version has for the field, query parameter or header field."""
    to: str
    """The name that the older version has for the field, query parameter or header field."""

    @classmethod
    def parameter_form(cls) -> type[ParameterSection]:
        """Return the same model: a parameter has two names as well."""
        return cls

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it moves the value."""
        return Upgrade(
            takes=(self.to,),
            makes=(self.field,),
            reads={},
            leaves={},
            moves={self.field: self.to},
        )

    def losses(self) -> Iterable[Loss]:
        """Return nothing: the value moves as it is."""
        return ()

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of a field."""
        paths = site.paths((self.field, ("field",)), (self.to, ("to",)))
        if paths is None:
            return None
        newer, older = paths
        if newer == older:
            _is_its_own(site)
            return None
        return Rename(newer.scopes, newer.keys, older.keys)

    def parameter_change(self, site: ParameterSite) -> ParameterChange:
        """Return the change of a parameter."""
        newer, older = site.name(self.field, "field"), site.name(self.to, "to")
        if newer == older:
            _is_its_own(site)
        return Renamed(newer, older)


def _is_its_own(site: ChangeSite) -> None:
    site.complain("is the name that it has already; remove the change", "to")
