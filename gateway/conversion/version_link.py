"""Links: the declared changes between two adjacent versions of an API."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from gateway.conversion.change import Change, task_of
from gateway.conversion.changes.kept import kept
from gateway.conversion.message.form_types import FormTypes
from gateway.conversion.operations.operation import MappedOperation
from gateway.conversion.parameter_change import ParameterChange, Rewrite, in_direction
from gateway.conversion.steps import ConversionTask
from gateway.versions.version import Version


class Direction(Enum):
    """The direction of a conversion: up to a newer version, or down to an older one."""

    UP = "up"
    DOWN = "down"


class MessageKind(Enum):
    """The kinds of messages that changes apply to."""

    REQUEST = "requests"
    RESPONSE = "responses"
    ERROR = "errors"


BOTH = frozenset({MessageKind.REQUEST, MessageKind.RESPONSE})


@dataclass(frozen=True, slots=True)
class VersionLink:
    """A set of declared changes between two adjacent versions of an API.

    Attributes:
        older: The older version.
        newer: The next version after the older one.
        changes: The changes of bodies, in the order of an upgrade; a downgrade reverses it.
        statuses: The error statuses whose bodies the changes apply to.
        on: The kinds of messages that the changes apply to.
        methods: The methods of the requests that the link applies to; None applies it to all.
        paths: The paths of the endpoints that the link applies to; None applies it to all.
        query: The changes of query parameters.
        headers: The changes of header fields.
        operations: The operations that the link applies to; None applies it to all.
        status: The statuses of answers that differ: the older version's by the newer version's.
        maps_links: Whether a change maps URLs in bodies.
        digest: The rules of the link, as a text that is equal for equal rules.
        varies: Whether equal bodies may become bodies that differ, since a change depends on the
            request or on a Python function.
        needs_message: Whether a change needs to know more of the message than its body.
        shows_message: Whether a change of the query or of header fields needs to know the message.
        timeout: The longest time in seconds that the changes of one body may take; None sets no
            limit.
        body_in_newer: Whether only the newer version's requests have a body, or only the older
            version's; None where that does not differ.
        keeps_unfit: Whether values of requests that do not fit stay as they are.
        forms: How a form of the version that takes forms becomes JSON for the other version; None
            where it stays a form.
        events: The names of server-sent events that differ: the older version's by the newer one's.
    """

    older: Version
    newer: Version
    changes: tuple[Change, ...]
    statuses: frozenset[int] = frozenset()
    on: frozenset[MessageKind] = BOTH
    methods: frozenset[str] | None = None
    paths: frozenset[str] | None = None
    query: tuple[ParameterChange, ...] = ()
    headers: tuple[ParameterChange, ...] = ()
    operations: tuple[MappedOperation, ...] | None = None
    status: Mapping[int, int] = field(default_factory=dict, hash=False)
    maps_links: bool = False
    digest: str = ""
    varies: bool = False
    needs_message: bool = False
    shows_message: bool = False
    timeout: float | None = None
    body_in_newer: bool | None = None
    forms: "FormTypes | None" = None
    keeps_unfit: bool = False
    events: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def changes_bodies(self) -> bool:
        """Whether bodies differ in any way."""
        return bool(self.changes or self.forms or self.events)

    @property
    def goes_beyond_bodies(self) -> bool:
        """Whether answers differ in more than their bodies, or by more than those."""
        return bool(self.headers or self.status or self.needs_message or self.maps_links)

    def applies(self, method: str, status: int | None) -> bool:
        """Return whether the link applies to a request, or to a response where status is given.

        A link of some operations applies to none that is not known to be one of them.

        Args:
            method: The method of the request.
            status: The status of the response in the newer version; None for the request.
        """
        if self.operations is not None or (self.methods is not None and method not in self.methods):
            return False
        if status is None:
            return MessageKind.REQUEST in self.on
        if is_success(status):
            return MessageKind.RESPONSE in self.on
        return status in self.statuses

    def for_patch(self) -> "VersionLink":
        """Return the link for bodies of PATCH requests, which hold only the fields to change."""
        return replace(self, changes=tuple(change.for_patch() for change in self.changes))

    def tasks(self, direction: Direction, of_request: bool = False) -> Iterator[ConversionTask]:
        """Yield the changes of bodies as tasks, in the order of a direction."""
        upwards, keeps = direction is Direction.UP, of_request and self.keeps_unfit
        for one in self.ordered(direction, of_request):
            yield task_of(one, upwards=upwards, keeps=keeps)

    def ordered(self, direction: Direction, of_request: bool = False) -> Iterable[Change]:
        """Return the changes of bodies in the order of a direction."""
        changes: Iterable[Change] = self.changes
        if direction is Direction.DOWN:
            changes = reversed(self.changes)
        return map(kept, changes) if of_request and self.keeps_unfit else changes


def event_names(links: Sequence[VersionLink], direction: Direction) -> Callable[[str], str] | None:
    """Return what names server-sent events after links, which are in the order of a direction.

    Where several names of the newer version are one in the older version, an upgrade takes the
    first. None is returned where no name differs.
    """

    def named(name: str) -> str:
        for link in links:
            if direction is Direction.DOWN:
                name = link.events.get(name, name)
            else:
                name = next((newer for newer, older in link.events.items() if older == name), name)
        return name

    return named if any(link.events for link in links) else None


def is_success(status: int) -> bool:
    """Return whether a status is of success (RFC 9110, section 15.3)."""
    return 200 <= status <= 299


def rewrites(
    changes: Iterable[Sequence[ParameterChange]], direction: Direction
) -> tuple[Rewrite, ...]:
    """Return the changes of parameters of some links, in the order of a direction."""
    upwards = direction is Direction.UP
    return tuple(one for some in changes if some for one in in_direction(some, upwards=upwards))
