"""`join_list` and `split_list`: a list of texts in one version, one text in the other.

The text may have pairs of keys and values, of which an object is made in place of a list.
"""

from collections.abc import Iterable
from typing import Annotated, ClassVar

from pydantic import Field

from gateway.base.model import NonEmptyText
from gateway.conversion.change import Change, Inverse
from gateway.conversion.changes.change_section import (
    BodySection,
    ChangeSection,
    Loss,
    ParameterSection,
    Upgrade,
)
from gateway.conversion.changes.change_site import BodySite, ParameterSite
from gateway.conversion.changes.join_list import JoinList
from gateway.conversion.changes.repeated import Repeated
from gateway.conversion.changes.value_kinds import ARRAY, OBJECT, TEXT
from gateway.conversion.parameter_change import ParameterChange, Reversed


class _SeparatedSection(ChangeSection):
    """What `join_list` and `split_list` of bodies and of parameters have in common.

    Attributes:
        inverse: whether the older version has the list, else the newer one.
    """

    field: str
    """The field or parameter, which has the same name in both versions."""
    separator: Annotated[str, Field(min_length=1)] = ","
    """The text that stands between two elements. The default is a comma."""

    inverse: ClassVar[bool] = False

    def losses(self) -> Iterable[Loss]:
        """Return nothing: what would not come back is refused."""
        return ()


class _TextsSection(_SeparatedSection, BodySection):
    """What `join_list` and `split_list` of bodies have in common."""

    pairs: NonEmptyText | None = None
    """The text between the key and the value of each element, which makes the list an object of
    texts, as in `color=red;size=5`. Without it, there are no keys."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it splits the text, or joins the list."""
        parts = ARRAY if self.pairs is None else OBJECT
        kinds = (parts, TEXT) if self.inverse else (TEXT, parts)
        return Upgrade.in_place(self.field, *kinds)

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of a field."""
        path = site.path(self.field, "field")
        if path is None:
            return None
        change: Change = JoinList(path.scopes, path.keys, self.separator)
        if self.pairs is not None:
            from gateway.conversion.changes.join_pairs import JoinPairs  # few rules

            if self.pairs == self.separator:
                site.complain("is the separator, too; name another text", "pairs")
            change = JoinPairs(path.scopes, path.keys, self.separator, self.pairs)
        return Inverse(change) if self.inverse else change


class JoinListConfig(_TextsSection):
    """Join a list of texts: the older version has one text, with a separator between elements."""


class SplitListConfig(_TextsSection):
    """Split a text: the older version has a list of what stands between the separators."""

    inverse = True


class _RepeatedSection(_SeparatedSection, ParameterSection):
    """What `join_list` and `split_list` of parameters have in common."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: each value is a text, as all of them are."""
        return Upgrade.in_place(self.field)

    def parameter_change(self, site: ParameterSite) -> ParameterChange:
        """Return the change of a parameter."""
        change = Repeated(site.name(self.field, "field"), self.separator)
        return Reversed(change) if self.inverse else change


class JoinListParameterConfig(_RepeatedSection):
    """Join a repeated parameter: the older version has it once, with separators between values."""


class SplitListParameterConfig(_RepeatedSection):
    """Split a parameter: the older version repeats it for each value between the separators."""

    inverse = True
