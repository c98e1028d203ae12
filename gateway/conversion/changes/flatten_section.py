"""`flatten` and `nest`: an object in one version, its members beside it in the other."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from pydantic import JsonValue

from gateway.conversion.change import Change, Inverse
from gateway.conversion.changes.change_section import WHOLE, BodySection, Loss, Nesting, Upgrade
from gateway.conversion.changes.change_site import BodySite
from gateway.conversion.changes.value_kinds import OBJECT
from gateway.conversion.document import MISSING


class _FlattenSection(BodySection):
    """What the two changes have in common.

    Attributes:
        inverse: whether the older version has the object, else the newer one.
    """

    field: str
    """The field of the version that has the object, such as attributes."""
    prefix: str
    """What the names of its members begin with in the other version, such as attr_."""
    but: tuple[str, ...] = ()
    """The fields of the other version that begin so as well, and are no members of the object."""
    default: JsonValue = None
    """The object where the other version has no members of it: `{}` or null. Without it, none."""

    inverse: ClassVar[bool] = False

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it makes an object of fields that are not known, or the reverse."""
        nesting = Nesting(self.field, self.prefix, frozenset(self.but), not self.inverse)
        one = replace(Upgrade.in_place(WHOLE), nesting=nesting)
        if self.inverse:
            return replace(one, takes=(self.field, WHOLE), reads={self.field: OBJECT})
        return replace(one, makes=(WHOLE, self.field), leaves={self.field: OBJECT})

    def losses(self) -> Iterator[Loss]:
        """Yield what the version without the object cannot tell apart."""
        back = "absent" if self._default is MISSING else json.dumps(self.default)
        empty = f"where '{self.field}' is absent, null or empty, it comes back as {back}"
        yield Loss(self.inverse, empty)

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of the object that has the field."""
        # Imported when rules name it: it takes memory that most can save.
        from gateway.conversion.changes.flatten import Flatten

        if self.default not in (None, {}):
            site.complain("write {} or null", "default")
        if not self.prefix and not self.but:
            site.complain("is empty, and so of all fields; name those that stay in but", "prefix")
        for index, name in enumerate(self.but):
            if not name.startswith(self.prefix):
                site.complain(f"does not begin with '{self.prefix}'; remove it", "but", index)
        path = site.path(self.field, "field")
        if path is None:
            return None
        but = frozenset(self.but)
        change = Flatten(path.scopes, path.keys, self.prefix, but, self._default)
        return Inverse(change) if self.inverse else change

    @property
    def _default(self) -> object:
        return self.default if "default" in self.model_fields_set else MISSING


class FlattenConfig(_FlattenSection):
    """Flatten an object: the older version has its members beside it, with a prefix."""


class NestConfig(_FlattenSection):
    """Nest fields: the older version has an object of those with a prefix, without it."""

    inverse = True
