"""What the changes of one value have in common that the older version writes in another form."""

from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple

from gateway.conversion.change import Change
from gateway.conversion.changes.change_section import BodySection, ParameterSection
from gateway.conversion.changes.change_site import BodySite, ChangeSite, ParameterSite
from gateway.conversion.changes.value_rewrite import (
    FormRewriting,
    V,
    ValueForm,
    ValueRewrite,
)
from gateway.conversion.parameter_change import ParameterChange, Rewritten
from gateway.conversion.scalars import Type


class FormWays(NamedTuple):
    """What writes a value as each version does, and its types there; see `ValueRewrite`."""

    to_newer: Callable[[str], str]
    to_older: Callable[[str], str]
    newer: Type = Type.TEXT
    older: Type = Type.TEXT


def ways_between(newer: ValueForm[V], older: ValueForm[V]) -> FormWays:
    """Return the ways between two forms of the same values."""
    to_newer, to_older = FormRewriting(older, newer), FormRewriting(newer, older)
    return FormWays(to_newer, to_older, newer.type, older.type)


class RewriteSection(BodySection, ParameterSection):
    """A change of the form of one value."""

    field: str
    """The field, query parameter or header field, which has the same name in both versions."""

    @abstractmethod
    def ways(self, site: ChangeSite) -> FormWays | None:
        """Return what writes the value, or None after recording a mistake."""

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of a field, or of the elements of an array."""
        ways = self.ways(site)
        if ways is None:
            return None
        return site.value_change(
            self.field, lambda scopes, keys: ValueRewrite(scopes, keys, *ways), "field"
        )

    def parameter_change(self, site: ParameterSite) -> ParameterChange | None:
        """Return the change of a parameter, whose values are texts."""
        ways = self.ways(site)
        if ways is None:
            return None
        return Rewritten(site.name(self.field, "field"), ways.to_newer, ways.to_older)
