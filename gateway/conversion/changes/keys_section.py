"""`keys`: the older version writes the keys of a map otherwise."""

from collections.abc import Callable, Iterable
from typing import Annotated

from pydantic import Field

from gateway.base.model import SectionModel
from gateway.conversion.change import Change
from gateway.conversion.changes.affix import AffixForm
from gateway.conversion.changes.change_section import BodySection, Loss, Upgrade
from gateway.conversion.changes.change_site import BodySite
from gateway.conversion.changes.free_keys import FreeKeys, KeyWords
from gateway.conversion.changes.value_rewrite import FormRewriting


class KeyFormConfig(SectionModel):
    """How one version writes the keys of a map."""

    prefix: str = ""
    """The text before each key. The default is the empty text."""
    suffix: str = ""
    """The text behind each key. The default is the empty text."""


class KeysConfig(BodySection):
    """Write the keys of a map otherwise, such as cur_EUR for EUR: by words, or by a prefix."""

    field: str
    """The field that holds the map; its values stay."""
    values: Annotated[dict[str, str], Field(min_length=1)] | None = None
    """The older version's keys by the newer version's. Other keys stay as they are."""
    newer: KeyFormConfig = KeyFormConfig()
    """How the newer version writes the keys; without it, without prefix and suffix."""
    older: KeyFormConfig = KeyFormConfig()
    """How the older version writes the keys; without it, without prefix and suffix."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it replaces a map by another."""
        return Upgrade.in_place(self.field)

    def losses(self) -> Iterable[Loss]:
        """Return nothing: a key that would come back as another is refused."""
        return ()

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of the map."""
        ways = self._ways(site)
        path = site.path(self.field, "field")
        if ways is None or path is None:
            return None
        return FreeKeys(path.scopes, path.keys, *ways)

    def _ways(self, site: BodySite) -> tuple[Callable[[str], str], Callable[[str], str]] | None:
        """Return what writes the newer version's keys and the older one's, or None."""
        if (self.values is None) == (self.newer == self.older):
            site.complain(
                "writes keys by exactly one of values: { EUR: euro } and a prefix or suffix, as"
                " older: { prefix: cur_ }"
            )
            return None
        if self.values is None:
            newer = AffixForm(self.newer.prefix, self.newer.suffix)
            older = AffixForm(self.older.prefix, self.older.suffix)
            return FormRewriting(older, newer), FormRewriting(newer, older)
        back = {older: newer for newer, older in self.values.items()}
        for key, older_key in self.values.items():
            if back[older_key] != key:
                site.complain(f"is '{older_key}', as '{back[older_key]}' is", "values", key)
                return None
        there = frozenset(back), frozenset(self.values)
        return KeyWords(back, there[1]), KeyWords(self.values, there[0])
