"""`spread` and `collect`: a value in every element in one version, beside them in the other.

In place of elements, there may be one object beside the value.
"""

from collections.abc import Iterator

from gateway.conversion.change import Change, Inverse
from gateway.conversion.changes.change_section import BodySection, Loss, Upgrade
from gateway.conversion.changes.change_site import BodySite
from gateway.conversion.field_path import FieldPath, Inside


class _SpreadSection(BodySection):
    """What the two changes have in common."""

    keep: bool = True
    """Whether the version that has the value in the elements has it beside them as well. The
    default is true."""

    def _losses(self, beside: str, inside: str, *, newer: bool) -> Iterator[Loss]:
        """Yield what elements that lack the value, or no elements at all, cannot give back.

        Args:
            beside: the field beside the elements.
            inside: the field of the elements.
            newer: whether the newer version has it beside the elements.
        """
        yield Loss(newer, f"on the way back, every '{inside}' is that of '{beside}'")
        if not self.keep:
            yield Loss(not newer, f"'{beside}' is left out where nothing can hold '{inside}'")

    def _change(
        self, site: BodySite, beside: FieldPath | None, inside: FieldPath | None, key: str
    ) -> Change | None:
        # Imported when rules name it: it takes memory that most can save.
        from gateway.conversion.changes.spread import Spread

        if beside is None or inside is None:
            return None
        depth = len(beside.scopes)
        inner, (*outer, last) = inside.scopes[depth:], inside.keys
        is_beside = inside.scopes[:depth] == beside.scopes and (inner or outer)
        if not is_beside or (not inner and inside.keys == beside.keys):
            site.complain(
                "is not in elements or an object beside the field; write one such as"
                " lines[].currency or price.currency",
                key,
            )
            return None
        if inner:
            return Spread(beside.scopes, beside.keys, inner, inside.keys, self.keep)
        return Spread(beside.scopes, beside.keys, (Inside(tuple(outer)),), (last,), self.keep)


class SpreadConfig(_SpreadSection):
    """Spread a value over elements, or into an object: the older version has it in each."""

    field: str
    """The field of the newer version that holds the value, such as currency."""
    into: str
    """The field of each element in the older version, such as `lines[].currency`, or of one object,
    such as `price.currency`."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it takes the value out of the elements."""
        makes = () if self.keep else (self.field,)
        moves = {self.field: self.into}
        return Upgrade(takes=(self.into,), makes=makes, reads={}, leaves={}, moves=moves)

    def losses(self) -> Iterator[Loss]:
        """Return what the elements cannot give back."""
        return self._losses(self.field, self.into, newer=True)

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of the object that holds the value and the elements."""
        beside, inside = site.path(self.field, "field"), site.path(self.into, "into")
        return self._change(site, beside, inside, "into")


class CollectConfig(_SpreadSection):
    """Collect a value from elements: the older version has it beside them, the newer in each."""

    field: str
    """The field of each element in the newer version, such as `lines[].currency`, or of one object,
    such as `price.currency`."""
    into: str
    """The field of the older version that holds the value, such as currency."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it puts the value into the elements."""
        takes = () if self.keep else (self.into,)
        moves = {self.field: self.into}
        return Upgrade(takes=takes, makes=(self.field,), reads={}, leaves={}, moves=moves)

    def losses(self) -> Iterator[Loss]:
        """Return what the elements cannot give back."""
        return self._losses(self.into, self.field, newer=False)

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of the object that holds the value and the elements."""
        beside, inside = site.path(self.into, "into"), site.path(self.field, "field")
        change = self._change(site, beside, inside, "field")
        return None if change is None else Inverse(change)
