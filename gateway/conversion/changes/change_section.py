"""What every change of gateway.yaml answers for itself: its model is a subclass of these.

A change of bodies is a `BodySection`; a change of query parameters and header fields is a
`ParameterSection`. One model may be both. `change_list` names them all.
"""

from abc import abstractmethod
from collections.abc import Iterable
from functools import cached_property
from typing import ClassVar, NamedTuple

from gateway.base.mistakes import Mistakes
from gateway.base.model import SectionModel
from gateway.conversion.change import Change
from gateway.conversion.changes.build_context import BodyContext, ParameterContext
from gateway.conversion.changes.field_use import FieldUse, field_use, parameter_use
from gateway.conversion.parameter_change import ParameterChange
from gateway.versions.version import Version

_ANY_TWO = (Version(1), Version(2))


class Loss(NamedTuple):
    """What one direction of a change loses.

    Attributes:
        newer: whether it is lost on the way to the newer version, else to the older one.
        text: what is lost, with the name of the field.
        in_patch: whether a PATCH of the field, as the other version has it, replaces it too.
        overwrites: whether a client that writes back what it has read destroys a value. It does not
            where only an absent, null or empty value differs afterwards.
    """

    newer: bool
    text: str
    in_patch: bool = False
    overwrites: bool = True


class ChangeSection(SectionModel):
    """What changes of bodies and of parameters have in common.

    Attributes:
        keyword: the name of the change in gateway.yaml; empty for a base of changes.
    """

    keyword: ClassVar[str] = ""

    @property
    def varies(self) -> bool:
        return False

    @property
    def code(self) -> str:
        return ""

    @property
    def maps_links(self) -> bool:
        return False

    @property
    def needs_message(self) -> bool:
        return False

    @property
    def linked(self) -> tuple[str, str] | None:
        return None

    def seconds(self) -> float | None:
        return None

    @abstractmethod
    def losses(self) -> Iterable[Loss]:
        """Return what each direction loses: `check` warns of it."""

    def overwritten(self) -> Iterable[Loss]:
        """Return what a client destroys that reads by one direction and writes by the other.

        `newer` of each is the direction of the reading.
        """
        return (loss for loss in self.losses() if loss.overwrites)


class BodySection(ChangeSection):
    """A change that may stand among the `changes` of a conversion."""

    @abstractmethod
    def body_change(self, context: BodyContext) -> Change | None:
        """Return the change of the core, or None after a mistake, which `context` records."""

    @cached_property
    def field_use(self) -> FieldUse:
        """What it does with fields, by which `check` looks them up and finds changes that clash."""
        change = self.body_change(BodyContext((), Mistakes(), between=_ANY_TWO))
        return FieldUse() if change is None else field_use(change)


class ParameterSection(ChangeSection):
    """A change that may stand in the `query` and `headers` of a conversion."""

    @abstractmethod
    def parameter_change(self, context: ParameterContext) -> ParameterChange | None:
        """Return the change of the core, or None after a mistake, which `context` records.

        The text of a header field has one character a byte (RFC 9110, section 5.5).
        """

    @cached_property
    def parameter_use(self) -> FieldUse:
        """What it does with query parameters or header fields."""
        change = self.parameter_change(ParameterContext((), Mistakes(), header=False))
        return FieldUse() if change is None else parameter_use(change)
