"""`link`: a URL that has to lead each client to its own version."""

from collections.abc import Iterable

from gateway.conversion.change import Change
from gateway.conversion.changes.change_section import BodySection, Loss, Upgrade
from gateway.conversion.changes.change_site import BodySite
from gateway.conversion.changes.link import Link
from gateway.conversion.changes.value_kinds import TEXT


class LinkConfig(BodySection):
    """Map a URL in a body as Location is mapped, so that it leads a client to its own version."""

    field: str
    """The field that holds the URL, which has the same name in both versions."""

    @property
    def maps_links(self) -> bool:
        """True: it maps a URL."""
        return True

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it leaves another URL."""
        return Upgrade.in_place(self.field, TEXT, TEXT)

    def losses(self) -> Iterable[Loss]:
        """Return nothing: a URL is mapped back as it was mapped."""
        return ()

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of a field, or of the elements of an array."""
        return site.value_change(self.field, Link, "field")
