"""Changes: what each declared operation of a conversion offers, and the same read backwards.

A declaration reads from the newer version to the older one. Each operation is one module of
`gateway.core.conversion.changes`; `Inverse` makes the opposite operation of one, as `split` of
`join`, and `ChangeSequence` one of several.
"""

from dataclasses import dataclass
from typing import Protocol

from gateway.core.conversion.document import JsonForm, JsonObject
from gateway.core.conversion.field_path import Keys, Scope


class Change(Protocol):
    """One declared change between two adjacent versions."""

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """What leads to the objects that it changes, each from the one before."""
        ...

    @property
    def touches(self) -> tuple[Keys, ...]:
        """The fields that it reads or writes, with all that is in them."""
        ...

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Make an object what the newer version has; raises ConversionError."""
        ...

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Make an object what the older version has; raises ConversionError."""
        ...

    def for_patch(self) -> "Change":
        """Return the change for the body of a PATCH request, which names only what it changes."""
        ...


@dataclass(frozen=True, slots=True)
class Inverse:
    """A change read the other way round."""

    change: Change

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The arrays of the change."""
        return self.change.scopes

    @property
    def touches(self) -> tuple[Keys, ...]:
        """The fields of the change."""
        return self.change.touches

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Do what the change does downwards."""
        self.change.down(fields, form)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Do what the change does upwards."""
        self.change.up(fields, form)

    def for_patch(self) -> "Inverse":
        """Return the inverse of what the change is for a PATCH request."""
        return Inverse(self.change.for_patch())


@dataclass(frozen=True, slots=True)
class ChangeSequence:
    """Changes within the same arrays, one after the other: in this order upwards.

    Attributes:
        changes: one or more, all with the same scopes.
    """

    changes: tuple[Change, ...]

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The arrays of the changes."""
        return self.changes[0].scopes

    @property
    def touches(self) -> tuple[Keys, ...]:
        """The fields of all changes."""
        return tuple(keys for change in self.changes for keys in change.touches)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Do what the changes do upwards."""
        for change in self.changes:
            change.up(fields, form)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Do what the changes do downwards, the last one first."""
        for change in reversed(self.changes):
            change.down(fields, form)

    def for_patch(self) -> "ChangeSequence":
        """Return what the changes are for a PATCH request."""
        return ChangeSequence(tuple(change.for_patch() for change in self.changes))


@dataclass(frozen=True, slots=True)
class Whole:
    """A change of the whole body, which may be any JSON, and not of an object or of each in it.

    The change that is wrapped finds the body in the field BODY of an object.
    """

    change: Change

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """None: there is one body."""
        return ()

    @property
    def touches(self) -> tuple[Keys, ...]:
        """Everything."""
        return ((),)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Make the body what the newer version has."""
        self.change.up(fields, form)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Make the body what the older version has."""
        self.change.down(fields, form)

    def for_patch(self) -> "Whole":
        """Return the same of what the change is for a PATCH request."""
        return Whole(self.change.for_patch())
