"""`envelope` and `extract`: a bare value in one version, in an object in the other."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Literal

from gateway.conversion.change import Change, Inverse, Whole
from gateway.conversion.changes.change_section import WHOLE, BodySection, Loss, Upgrade
from gateway.conversion.changes.change_site import BodySite
from gateway.conversion.changes.envelope import Envelope
from gateway.conversion.changes.value_kinds import ARRAY, OBJECT, ValueKinds
from gateway.conversion.field_path import Keys, Scope
from gateway.conversion.steps import BODY


class _EnvelopeSection(BodySection):
    """What `envelope` and `extract` have in common."""

    field: str | None = None
    """The field that has the value in both versions, or the elements of an array: `tags[]`; without
    it, that is the whole body."""
    count: str | None = None
    """The field of the envelope that has the number of elements; without it, there is none."""
    others: Literal["drop", "refuse"] = "drop"
    """Whether other fields of the envelope are left out (the default) or refused."""

    def _loss(self, *, newer: bool) -> Iterable[Loss]:
        if self.others == "drop":
            of = "the envelope" if self.field is None else f"'{self.field}'"
            yield Loss(newer, f"the other fields of {of} are left out")

    def _upgrade(self, reads: ValueKinds | None, leaves: ValueKinds | None) -> Upgrade:
        if self.field is None:
            return replace(Upgrade.in_place(WHOLE), count=self.count or "")
        return Upgrade.in_place(self.field, reads, leaves)

    def _fields(self, key: str) -> tuple[str, ...]:
        """Return the fields of the envelope that the change knows.

        There are none for the whole body: it may be an array, whose elements have other fields of
        the same names.
        """
        if self.field is None:
            return ()
        keys = (key,) if self.count is None else (key, self.count)
        return tuple(map(self._inside, keys))

    def _moves(self, target: str, source: str) -> Mapping[str, str]:
        """Return where the value comes from; elements have no names of their own."""
        return {} if (self.field or "").endswith("[]") else {target: source}

    def _inside(self, key: str) -> str:
        return key if self.field is None else f"{self.field}.{key}"

    @property
    def _bare(self) -> ValueKinds | None:
        return None if self.count is None else ARRAY

    def _change(
        self, into: str, key: str, site: BodySite, way: Callable[[Envelope], Change]
    ) -> Change | None:
        inner = site.keys(into, key)
        count = None if self.count is None else site.keys(self.count, "count")
        if inner is None:
            return None
        if self.count is not None and (count is None or not site.apart((inner, count))):
            return None

        def change(scopes: tuple[Scope, ...], keys: Keys) -> Change:
            return way(Envelope(scopes, keys, inner, count, self.others == "refuse"))

        if self.field is None:
            return Whole(change((), BODY))
        return site.value_change(self.field, change, "field")


class EnvelopeConfig(_EnvelopeSection):
    """Put a value into an envelope: the older version has an object that holds the bare value."""

    into: str
    """The field of the envelope that holds the value, such as data."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it reads an object, whose fields are gone afterwards."""
        moves = self._moves(self.field or WHOLE, self._inside(self.into))
        one = self._upgrade(OBJECT, self._bare)
        return replace(one, takes=(*one.takes, *self._fields(self.into)), moves=moves)

    def losses(self) -> Iterable[Loss]:
        """Return what an upgrade leaves out of the envelope."""
        return self._loss(newer=True)

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of a field, of the elements of an array, or of the whole body."""
        return self._change(self.into, "into", site, lambda envelope: envelope)


class ExtractConfig(_EnvelopeSection):
    """Take a value out of an envelope: the older version has it bare, as an array or an id."""

    key: str
    """The field of the envelope that holds the value, such as data, or id."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it leaves an object, whose fields were not there before."""
        moves = self._moves(self._inside(self.key), self.field or WHOLE)
        one = self._upgrade(self._bare, OBJECT)
        return replace(one, makes=(*one.makes, *self._fields(self.key)), moves=moves)

    def losses(self) -> Iterable[Loss]:
        """Return what a downgrade leaves out of the envelope."""
        return self._loss(newer=False)

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of a field, of the elements of an array, or of the whole body."""
        return self._change(self.key, "key", site, Inverse)
