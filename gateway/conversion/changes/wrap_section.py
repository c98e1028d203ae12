"""`wrap` and `unwrap`: a single value in one version, a list in the other.

A list of parameters is one that is repeated.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, Literal

from gateway.conversion.change import Change, Inverse, Whole
from gateway.conversion.changes.change_section import (
    WHOLE,
    BodySection,
    ChangeSection,
    Loss,
    ParameterSection,
    Upgrade,
)
from gateway.conversion.changes.change_site import BodySite, ParameterSite
from gateway.conversion.changes.first_value import FirstValue
from gateway.conversion.changes.value_kinds import ARRAY
from gateway.conversion.changes.wrap import Nothing, Several, Wrap
from gateway.conversion.field_path import Keys, Scope
from gateway.conversion.parameter_change import ParameterChange, Reversed
from gateway.conversion.steps import BODY


class _ListSection(ChangeSection):
    """What `wrap` and `unwrap` have in common.

    Attributes:
        inverse: whether the newer version has the list, else the older one.
    """

    inverse: ClassVar[bool] = False

    def _cut(self, field: str) -> Loss:
        return Loss(not self.inverse, f"of several elements, {field} keeps the first", True)


class _BodyListSection(_ListSection, BodySection):
    """What `wrap` and `unwrap` of bodies have in common."""

    field: str | None = None
    """The field, which has the same name in both versions, or the elements of an array: `rows[]`;
    without it, that is the whole body."""
    many: Literal["first", "refuse", "keep"] = "first"
    """What a list of several becomes: its first element, a refusal, or the list that it is (keep).
    The default is first."""
    empty: Literal["null", "absent", "list"] = "null"
    """What an empty list becomes: null, no field, or the list that it is. The default is null."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: it reads a list, or leaves one."""
        if self.field is None:
            # Changes are of the elements of a body that is a list, as of a body that is not.
            return replace(Upgrade.in_place(WHOLE), moves={WHOLE: WHOLE})
        reads, leaves = (None, ARRAY) if self.inverse else (ARRAY, None)
        one = Upgrade.in_place(self.field, reads, leaves)
        if self.many == "keep" or self.field.endswith("*"):
            return one
        element = f"{self.field}[]"
        moves = {element: self.field} if self.inverse else {self.field: element}
        return replace(one, moves=moves)

    def losses(self) -> Iterator[Loss]:
        """Yield what the way to the single value takes from the list."""
        named = "the body" if self.field is None else f"'{self.field}'"
        if self.many == "first":
            yield self._cut(named)
        if self.empty == "absent":
            lost = f"where {named} is absent, it comes back as an empty list"
            yield Loss(not self.inverse, lost)

    def body_change(self, site: BodySite) -> Change | None:
        """Return the change of a field, or of the whole body."""
        if self.empty == "absent" and (self.field is None or self.field.endswith(("[]", "*"))):
            site.complain("is of a field; write null or list", "empty")

        def change(scopes: tuple[Scope, ...], keys: Keys) -> Change:
            made = Wrap(scopes, keys, Several(self.many), Nothing(self.empty))
            return Inverse(made) if self.inverse else made

        if self.field is None:
            return Whole(change((), BODY))
        return site.value_change(self.field, change, "field")


class WrapConfig(_BodyListSection):
    """Wrap a value: the older version has a list where the newer one has a single value."""


class UnwrapConfig(_BodyListSection):
    """Unwrap a list: the older version has a single value where the newer one has a list."""

    inverse = True


class _ParameterListSection(_ListSection, ParameterSection):
    """What `wrap` and `unwrap` of parameters have in common."""

    field: str
    """The parameter, which has the same name in both versions."""
    many: Literal["first", "refuse"] = "first"
    """What several values become: the first of them, or a refusal. The default is first."""

    def upgrade(self) -> Upgrade:
        """Return the upgrade: each value is a text, as all of them are."""
        return Upgrade.in_place(self.field)

    def losses(self) -> Iterator[Loss]:
        """Yield what the way to the single value takes from several."""
        if self.many == "first":
            yield self._cut(f"'{self.field}'")

    def parameter_change(self, site: ParameterSite) -> ParameterChange:
        """Return the change of a parameter, which the version with the list may repeat."""
        change = FirstValue(site.name(self.field, "field"), self.many == "refuse")
        return Reversed(change) if self.inverse else change


class WrapParameterConfig(_ParameterListSection):
    """Let a parameter be repeated: the older version has several where the newer one has one."""


class UnwrapParameterConfig(_ParameterListSection):
    """Take one of several: the older version has one value where the newer one repeats it."""

    inverse = True
