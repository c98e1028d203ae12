"""`case` and `key_case`: words and keys that the older version writes in another case."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Literal

from gateway.conversion.change import Change
from gateway.conversion.changes.change_section import (
    WHOLE,
    BodySection,
    ChangeSection,
    KeyRewriting,
    Loss,
    Upgrade,
)
from gateway.conversion.changes.change_site import BodySite, ChangeSite
from gateway.conversion.changes.key_case import KeyCase
from gateway.conversion.changes.rewrite_section import FormWays, RewriteSection
from gateway.conversion.changes.value_kinds import TEXT
from gateway.conversion.changes.word_case import CaseRewriting, WordCase

CaseName = Literal["camel", "pascal", "snake", "kebab", "upper_snake"]


class _CasesSection(ChangeSection):
    """What `case` and `key_case` have in common."""

    newer: CaseName
    """The case of the newer version: camel, pascal, snake, kebab or upper_snake."""
    older: CaseName
    """The case of the older version: camel, pascal, snake, kebab or upper_snake."""
    unknown: Literal["refuse", "keep"] = "refuse"
    """What is done with what is in the other version's case already. The default is refuse."""

    def _kept(self, what: str) -> Iterable[Loss]:
        if self.unknown == "keep":
            for newer, case in ((False, self.older), (True, self.newer)):
                yield Loss(newer, f"{what} in {case} case already, and the way back changes it")

    def _ways(self, site: ChangeSite) -> tuple[CaseRewriting, CaseRewriting] | None:
        """Return what writes the newer version's case and the older one's, or None."""
        if self.newer == self.older:
            site.complain("is the case that it has already; remove the change", "older")
            return None
        return self._both

    @property
    def _both(self) -> tuple[CaseRewriting, CaseRewriting]:
        newer, older, keep = WordCase(self.newer), WordCase(self.older), self.unknown == "keep"
        return CaseRewriting(older, newer, keep), CaseRewriting(newer, older, keep)


class CaseConfig(_CasesSection, RewriteSection):
    """Write a word in another case, such as IN_TRANSIT for inTransit."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it reads a text, and leaves one."""
        return Upgrade.in_place(self.field, TEXT, TEXT)

    def losses(self) -> Iterable[Loss]:
        """Return what `keep` leaves as it is."""
        return self._kept(f"'{self.field}' is kept where it is")

    def ways(self, site: ChangeSite) -> FormWays | None:
        """Return what writes each version's case, or None after recording a mistake."""
        ways = self._ways(site)
        return None if ways is None else FormWays(*ways)


class KeyCaseConfig(_CasesSection, BodySection):
    """Write all keys of an object in another case, and those of the objects and arrays in it."""

    field: str | None = None
    """The field whose value has the keys; without it, the whole object has them."""
    but: tuple[str, ...] = ()
    """The newer version's keys of objects whose own keys are data and stay, such as metadata."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it writes the keys in the newer version's case."""
        field = WHOLE if self.field is None else self.field
        rewriting = KeyRewriting(field, *self._both, frozenset(self.but))
        return replace(Upgrade.in_place(field), rewriting=rewriting)

    def losses(self) -> Iterable[Loss]:
        """Return what `keep` leaves as it is."""
        return self._kept("a key is kept where it is")

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of a field, or of the whole object."""
        ways = self._ways(site)
        path = None if self.field is None else site.path(self.field, "field")
        if ways is None or (path is None and self.field is not None):
            return None
        _, to_older = ways
        for index, key in enumerate(self.but):
            if site.attempt(partial(to_older, key), "but", index) is None:
                return None
        scopes, keys = (path.scopes, path.keys) if path else ((), None)
        return KeyCase(scopes, keys, *ways, frozenset(self.but))
