"""`use`: the changes of a group, for the objects at some places."""

from collections.abc import Iterable
from functools import partial

from gateway.base.mistakes import suggest
from gateway.base.model import Name, Some
from gateway.conversion.change import Change
from gateway.conversion.changes.change_section import WHOLE, BodySection, Loss, Upgrade
from gateway.conversion.changes.change_site import BodySite
from gateway.conversion.changes.use import GroupUse
from gateway.conversion.field_path import Scope, parse_scopes


class UseConfig(BodySection):
    """Apply the changes of a group, which `groups` of the API names, wherever an object occurs."""

    group: Name
    """The name of the group, whose changes are of the fields of one object."""
    at: Some[str] | None = None
    """The places of the objects: `item`, `items[]`, `prices.*`; without it, the object itself."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade of a whole object; those of the changes are looked up in the group."""
        return Upgrade.in_place(WHOLE)

    def losses(self) -> Iterable[Loss]:
        """Return nothing: each change of the group has its own losses."""
        return ()

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of all places."""
        if self.group not in site.groups:
            site.complain(
                f"no group is called '{self.group}'; {suggest(self.group, site.groups)}", "group"
            )
            return None
        places: list[tuple[Scope, ...]] = []
        for index, place in enumerate(self.at or ()):
            found = site.attempt(partial(parse_scopes, place), "at", index)
            if found is None:
                return None
            places.append(found)
        return GroupUse(self.group, tuple(places) or ((),), site.groups)
