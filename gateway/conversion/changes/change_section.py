"""What every change of gateway.yaml answers for itself: its model is a subclass of these.

A change of bodies is a `BodySection`; a change of query parameters and header fields is a
`ParameterSection`. One model may be both. `change_list` names them all.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from gateway.base.model import SectionModel
from gateway.conversion.change import Change
from gateway.conversion.changes.build_context import BodyContext, ParameterContext
from gateway.conversion.changes.value_kinds import ValueKinds
from gateway.conversion.parameter_change import ParameterChange

WHOLE = ""
"""The name, among those of fields, of the object that holds them all."""


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


class Nesting(NamedTuple):
    """An object in one version, its members beside it in the other, with a prefix.

    Attributes:
        field: the object.
        prefix: what the names of its members begin with in the version that lacks it.
        but: the fields of that version that begin so as well, and stay.
        newer: whether the newer version has the object, else the older one.
    """

    field: str
    prefix: str
    but: frozenset[str]
    newer: bool


class KeyRewriting(NamedTuple):
    """All keys of a value, and of the objects and arrays in it, written otherwise.

    Attributes:
        field: the value; WHOLE for the whole object.
        to_newer: returns the newer version's key for the older one's; it may raise ValueError.
        to_older: the way back.
        but: the newer version's keys of objects whose own keys stay.
    """

    field: str
    to_newer: Callable[[str], str]
    to_older: Callable[[str], str]
    but: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """What an upgrade by a change does with fields, by their names in gateway.yaml.

    Attributes:
        takes: the fields that it looks for; they are gone afterwards, unless it makes them too.
        makes: the fields that it writes.
        reads: the values that it can read, for the fields where not every value will do.
        leaves: the values that it leaves, for the fields where that is known.
        moves: for a field whose value is moved, the field that it is moved from; WHOLE, where that
            is the whole body. The value stays, but for what is taken out of it or made in it.
        count: beside the value in an envelope of the whole body; empty where there is none.
        nesting: the fields that it gathers in an object, or the reverse.
        rewriting: the keys that it writes otherwise, where that is all that it does.
    """

    takes: tuple[str, ...]
    makes: tuple[str, ...]
    reads: Mapping[str, ValueKinds]
    leaves: Mapping[str, ValueKinds]
    moves: Mapping[str, str] = field(default_factory=dict)
    count: str = ""
    nesting: Nesting | None = None
    rewriting: KeyRewriting | None = None

    @classmethod
    def in_place(
        cls, name: str, reads: ValueKinds | None = None, leaves: ValueKinds | None = None
    ) -> "Upgrade":
        """Return the upgrade that replaces the value of one field; None is any value."""
        return cls(
            takes=(name,),
            makes=(name,),
            reads={} if reads is None else {name: reads},
            leaves={} if leaves is None else {name: leaves},
        )


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
    def upgrade(self) -> Upgrade:
        """Return what an upgrade does with fields: by it, changes that clash are found."""

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


class ParameterSection(ChangeSection):
    """A change that may stand in the `query` and `headers` of a conversion."""

    @abstractmethod
    def parameter_change(self, context: ParameterContext) -> ParameterChange | None:
        """Return the change of the core, or None after a mistake, which `context` records.

        The text of a header field has one character a byte (RFC 9110, section 5.5).
        """
