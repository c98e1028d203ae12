"""`entries` and `index`: a map in one version, a list of objects in the other."""

from collections.abc import Iterable
from typing import ClassVar

from gateway.base.model import NonEmptyText
from gateway.conversion.change import Change, Inverse
from gateway.conversion.changes.change_section import BodySection, Loss, Upgrade
from gateway.conversion.changes.change_site import BodySite
from gateway.conversion.changes.entries import Entries
from gateway.conversion.changes.value_kinds import ARRAY, OBJECT
from gateway.conversion.field_path import spell


class _EntriesSection(BodySection):
    """What the two changes have in common.

    Attributes:
        inverse: whether the newer version has the list, else the older one.
    """

    field: str
    """The field, which has the same name in both versions."""
    key: NonEmptyText
    """The field of each object of the list that holds its key in the map."""
    value: NonEmptyText | None = None
    """The field of each object of the list that holds the value in the map. Without it, that is
    the object itself, without its key."""

    inverse: ClassVar[bool] = False

    def losses(self) -> Iterable[Loss]:
        """Return nothing: what would not come back is refused."""
        return ()

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it makes a map of the list, or the list of the map."""
        member, element = f"{self.field}.*", f"{self.field}[]"
        value = element if self.value is None else f"{element}.{spell(self.value)}"
        of_map = (self.field, member)
        of_list = tuple(dict.fromkeys((self.field, element, value, f"{element}.{spell(self.key)}")))
        before, after = (of_map, of_list) if self.inverse else (of_list, of_map)
        kinds = (OBJECT, ARRAY) if self.inverse else (ARRAY, OBJECT)
        return Upgrade(
            takes=before,
            makes=after,
            reads={self.field: kinds[0]},
            leaves={self.field: kinds[1]},
            moves={value: member} if self.inverse else {member: value},
        )

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of a field."""
        if self.key == self.value:
            site.complain("is the field that holds the key; name another", "value")
        path = site.path(self.field, "field")
        if path is None:
            return None
        change = Entries(path.scopes, path.keys, self.key, self.value)
        return Inverse(change) if self.inverse else change


class EntriesConfig(_EntriesSection):
    """List the members of a map: the older version has a list of objects with the keys in them."""


class IndexConfig(_EntriesSection):
    """Index a list: the older version has a map of its objects, by one of their fields."""

    inverse = True
