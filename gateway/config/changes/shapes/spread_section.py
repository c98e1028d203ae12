"""`spread`: the older version has in every element what the newer has once beside them."""

from collections.abc import Iterator

from gateway.config.changes.change_section import WHOLE, BodySection, Loss, Upgrade
from gateway.config.changes.change_site import BodySite
from gateway.core.conversion.change import Change


class SpreadConfig(BodySection):
    """Spread a value over elements: the older version has it in each, the newer one beside them."""

    field: str
    """The field of the newer version that holds the value, such as currency."""
    into: str
    """The field of each element in the older version, such as `lines[].currency`."""
    keep: bool = True
    """Whether the older version has the field itself as well. The default is true."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade of the object that holds the value and the elements."""
        return Upgrade.in_place(WHOLE)

    def losses(self) -> Iterator[Loss]:
        """Yield what elements that lack the value, or no elements at all, cannot give back."""
        yield Loss(True, f"on the way back, every '{self.into}' is that of '{self.field}'")
        if not self.keep:
            yield Loss(False, f"'{self.field}' is left out where there are no elements")

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of the object that holds the value and the elements."""
        # Imported when rules name it: it takes memory that most can save.
        from gateway.core.conversion.shapes.spread import Spread

        field, into = site.path(self.field, "field"), site.path(self.into, "into")
        if field is None or into is None:
            return None
        depth = len(field.scopes)
        if into.scopes[:depth] != field.scopes or len(into.scopes) == depth:
            site.complain(
                "is not in elements beside the field; write one such as lines[].currency", "into"
            )
            return None
        return Spread(field.scopes, field.keys, into.scopes[depth:], into.keys, self.keep)
