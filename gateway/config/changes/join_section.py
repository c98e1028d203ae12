"""`join` and `split`: fields in one version, one text that joins them in the other."""

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from gateway.config.changes.change_section import BodySection, Loss, Upgrade
from gateway.config.changes.change_site import BodySite
from gateway.config.changes.value_kinds import TEXT
from gateway.core.conversion.change import Change, Inverse
from gateway.core.conversion.changes.join import Join


class _PartsSection(BodySection):
    """What `join` and `split` have in common."""

    separator: Annotated[str, Field(min_length=1)] = " "
    """The text that stands between two parts. The default is a space."""
    default: str = ""
    """The value of a part that the text does not reach. The default is the empty text."""

    @classmethod
    def parameter_form(cls) -> None:
        """Return None: a change of parameters is of one parameter."""
        return

    def _loss(self, whole: str, *, newer: bool) -> Iterable[Loss]:
        text = f"'{whole}' is split at the first '{self.separator}', wherever it was joined"
        return (Loss(newer, text),)

    def _join(
        self, site: BodySite, parts: tuple[str, ...], whole: str, parts_key: str, whole_key: str
    ) -> Join | None:
        named = ((part, (parts_key, index)) for index, part in enumerate(parts))
        paths = site.paths(*named, (whole, (whole_key,)))
        if paths is None:
            return None
        *some, text = paths
        keys = tuple(path.keys for path in some)
        if not site.apart(keys):
            return None
        return Join(text.scopes, keys, text.keys, self.separator, self.default)


class JoinConfig(_PartsSection):
    """Join fields: the older version has one text where the newer one has several fields."""

    fields: Annotated[tuple[str, ...], Field(min_length=2)]
    """The fields of the newer version that are joined, in the order of the text."""
    into: str
    """The field of the older version that holds the text."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it splits the text."""
        return Upgrade(
            takes=(self.into,),
            makes=self.fields,
            reads={self.into: TEXT},
            leaves=dict.fromkeys(self.fields, TEXT),
        )

    def losses(self) -> Iterable[Loss]:
        """Return what an upgrade cannot restore."""
        return self._loss(self.into, newer=True)

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of the fields."""
        return self._join(site, self.fields, self.into, "fields", "into")


class SplitConfig(_PartsSection):
    """Split a text: the older version has several fields where the newer one has one text."""

    field: str
    """The field of the newer version that holds the text."""
    into: Annotated[tuple[str, ...], Field(min_length=2)]
    """The fields of the older version that hold the parts, in the order of the text."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it joins the parts."""
        return Upgrade(
            takes=self.into,
            makes=(self.field,),
            reads=dict.fromkeys(self.into, TEXT),
            leaves={self.field: TEXT},
        )

    def losses(self) -> Iterable[Loss]:
        """Return what a downgrade cannot restore."""
        return self._loss(self.field, newer=False)

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of the fields."""
        change = self._join(site, self.into, self.field, "into", "field")
        return change and Inverse(change)
