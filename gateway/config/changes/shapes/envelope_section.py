"""`envelope` and `extract`: a bare value in one version, in an object in the other."""

from collections.abc import Iterable
from typing import Literal

from gateway.config.changes.change_section import WHOLE, BodySection, Loss, Upgrade
from gateway.config.changes.change_site import BodySite
from gateway.config.changes.value_kinds import ARRAY, ValueKinds
from gateway.core.conversion.change import Change, Inverse, Whole
from gateway.core.conversion.shapes.envelope import Envelope
from gateway.core.conversion.steps import BODY

_OBJECT = ValueKinds(frozenset({"an object"}))


class _EnvelopeSection(BodySection):
    """What `envelope` and `extract` have in common."""

    field: str | None = None
    """The field that has the value in both versions; without it, that is the whole body."""
    count: str | None = None
    """The field of the envelope that has the number of elements; without it, there is none."""
    others: Literal["drop", "refuse"] = "drop"
    """Whether other fields of the envelope are left out (the default) or refused."""

    @classmethod
    def parameter_form(cls) -> None:
        """Return None: parameters have no objects."""
        return

    def _loss(self, *, newer: bool) -> Iterable[Loss]:
        if self.others == "drop":
            of = "the envelope" if self.field is None else f"'{self.field}'"
            yield Loss(newer, f"the other fields of {of} are left out")

    def _upgrade(self, reads: ValueKinds | None, leaves: ValueKinds | None) -> Upgrade:
        if self.field is None:
            return Upgrade.in_place(WHOLE)
        return Upgrade.in_place(self.field, reads, leaves)

    @property
    def _bare(self) -> ValueKinds | None:
        return None if self.count is None else ARRAY

    def _envelope(self, into: str, key: str, site: BodySite) -> Envelope | None:
        place = None if self.field is None else site.path(self.field, "field")
        inner = site.keys(into, key)
        count = None if self.count is None else site.keys(self.count, "count")
        if inner is None or (place is None and self.field is not None):
            return None
        if self.count is not None and (count is None or not site.apart((inner, count))):
            return None
        scopes, field = (place.scopes, place.keys) if place else ((), BODY)
        return Envelope(scopes, field, inner, count, self.others == "refuse")

    def _whole(self, change: Change) -> Change:
        return Whole(change) if self.field is None else change


class EnvelopeConfig(_EnvelopeSection):
    """Put a value into an envelope: the older version has an object that holds the bare value."""

    into: str
    """The field of the envelope that holds the value, such as data."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it reads an object."""
        return self._upgrade(_OBJECT, self._bare)

    def losses(self) -> Iterable[Loss]:
        """Return what an upgrade leaves out of the envelope."""
        return self._loss(newer=True)

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of a field, or of the whole body."""
        change = self._envelope(self.into, "into", site)
        return None if change is None else self._whole(change)


class ExtractConfig(_EnvelopeSection):
    """Take a value out of an envelope: the older version has it bare, as an array or an id."""

    key: str
    """The field of the envelope that holds the value, such as data, or id."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it leaves an object."""
        return self._upgrade(self._bare, _OBJECT)

    def losses(self) -> Iterable[Loss]:
        """Return what a downgrade leaves out of the envelope."""
        return self._loss(newer=False)

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of a field, or of the whole body."""
        change = self._envelope(self.key, "key", site)
        return None if change is None else self._whole(Inverse(change))
