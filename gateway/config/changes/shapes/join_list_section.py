"""`join_list` and `split_list`: a list of texts in one version, one text in the other."""

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from gateway.config.changes.change_section import BodySection, Loss, Upgrade
from gateway.config.changes.change_site import BodySite
from gateway.config.changes.value_kinds import ARRAY, TEXT
from gateway.core.conversion.change import Change, Inverse
from gateway.core.conversion.shapes.join_list import JoinList


class _TextsSection(BodySection):
    """What `join_list` and `split_list` have in common."""

    field: str
    """The field, which has the same name in both versions."""
    separator: Annotated[str, Field(min_length=1)] = ","
    """The text that stands between two elements. The default is a comma."""

    @classmethod
    def parameter_form(cls) -> None:
        """Return None: parameters have no lists."""
        return

    def losses(self) -> Iterable[Loss]:
        """Return nothing: what would not come back is refused."""
        return ()

    def _change(self, site: BodySite) -> JoinList | None:
        path = site.path(self.field, "field")
        return None if path is None else JoinList(path.scopes, path.keys, self.separator)


class JoinListConfig(_TextsSection):
    """Join a list of texts: the older version has one text, with a separator between elements."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it splits the text."""
        return Upgrade.in_place(self.field, TEXT, ARRAY)

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of a field."""
        return self._change(site)


class SplitListConfig(_TextsSection):
    """Split a text: the older version has a list of what stands between the separators."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it joins the list."""
        return Upgrade.in_place(self.field, ARRAY, TEXT)

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of a field."""
        change = self._change(site)
        return None if change is None else Inverse(change)
