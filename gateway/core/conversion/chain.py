"""Chains: the links between adjacent versions, composed for one pair of versions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from gateway.core.conversion.change import Change, Whole
from gateway.core.conversion.document import PLAIN, Document, JsonForm
from gateway.core.conversion.parameter_change import (
    ParameterChange,
    Rewrite,
    rewrite_fields,
    rewrite_query,
)
from gateway.core.conversion.steps import BodyStep, ConversionTask, body_steps
from gateway.core.versions.version import Version


class Direction(Enum):
    """Which way a link is walked."""

    UP = "up"
    DOWN = "down"


class MessageKind(Enum):
    """What changes apply to."""

    REQUEST = "requests"
    RESPONSE = "responses"
    ERROR = "errors"


# What such a request does not name stays as it is (RFC 5789, RFC 7396).
_PATCH = "PATCH"
BOTH = frozenset({MessageKind.REQUEST, MessageKind.RESPONSE})


@dataclass(frozen=True, slots=True)
class VersionLink:
    """Declared changes between two adjacent versions of an API.

    Attributes:
        older: the older version.
        newer: the version next to it.
        changes: in the order that upgrades a document; a downgrade walks them backwards.
        statuses: the error statuses whose bodies the changes apply to as well.
        on: the messages they apply to: requests, responses of success, or errors.
        methods: of the requests; None is all.
        paths: of the endpoints; None is all.
        query: the changes of query parameters.
        headers: the changes of header fields.
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

    def applies(self, method: str, status: int | None) -> bool:
        """Whether it applies to requests of a method, or to responses of a status to them."""
        if self.methods is not None and method not in self.methods:
            return False
        if status is None:
            return MessageKind.REQUEST in self.on
        if 200 <= status <= 299:
            return MessageKind.RESPONSE in self.on
        return status in self.statuses

    def for_patch(self) -> "VersionLink":
        """Return the link for bodies of PATCH requests, which name only what they change."""
        return replace(self, changes=tuple(change.for_patch() for change in self.changes))

    def tasks(self, direction: Direction) -> Iterator[ConversionTask]:
        """Yield the changes in the order of a direction."""
        if direction is Direction.UP:
            for one in self.changes:
                yield ConversionTask(one.scopes, one.touches, one.up, isinstance(one, Whole))
        else:
            for one in reversed(self.changes):
                yield ConversionTask(one.scopes, one.touches, one.down, isinstance(one, Whole))


class _Applied(NamedTuple):
    """What applies to one kind of message."""

    body: "Conversion | None"
    query: tuple[Rewrite, ...]
    headers: tuple[Rewrite, ...]


@dataclass(frozen=True, slots=True)
class Conversion:
    """A way from one version's documents to another's, through every link between them."""

    links: tuple[VersionLink, ...]
    direction: Direction
    _steps: tuple[BodyStep, ...] = field(init=False, repr=False, compare=False)
    _methods: frozenset[str] = field(init=False, repr=False, compare=False)
    _known: dict[tuple[str, int | None], _Applied] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        tasks = [task for link in self.links for task in link.tasks(self.direction)]
        methods = (link.methods for link in self.links if link.methods is not None)
        object.__setattr__(self, "_steps", body_steps(tasks))
        object.__setattr__(self, "_methods", frozenset().union(*methods))

    def convert(self, document: Document, form: JsonForm = PLAIN) -> Document:
        """Return the document as the other version has it.

        Args:
            document: an object, or an array of what can be converted and of null, which stays;
                changes of the whole body take, and leave, other JSON as well.
            form: how its values are held.

        Raises:
            ConversionError: the document does not fit the declared changes.
        """
        for step in self._steps:
            document = step(document, form)
        return document

    def at(self, path: str) -> "Conversion":
        """Return what applies at the endpoint of that path."""
        links = (link for link in self.links if link.paths is None or path in link.paths)
        return Conversion(tuple(links), self.direction)

    def for_request(self, method: str) -> "Conversion | None":
        """Return what applies to the body of a request, or None if nothing does."""
        return self._applied(method, None).body

    def for_response(self, method: str, status: int) -> "Conversion | None":
        """Return what applies to the body of that response to a request, or None if nothing does.

        Success (2xx) is what the declarations describe. Redirects do not describe the resource, and
        error bodies have a shape of their own: they pass, unless a declaration names the status.
        """
        return self._applied(method, status).body

    def query(self, method: str, query: str | None) -> str | None:
        """Return the raw query of a request, converted; raises ConversionError."""
        rewrites = self._applied(method, None).query
        return rewrite_query(query, rewrites) if rewrites else query

    def fields(
        self, method: str, status: int | None, fields: list[tuple[bytes, bytes]]
    ) -> list[tuple[bytes, bytes]]:
        """Return the header fields of a message, converted; raises ConversionError.

        Args:
            method: of the request.
            status: of the response; None where the fields are those of the request.
            fields: the field lines.
        """
        rewrites = self._applied(method, status).headers
        return rewrite_fields(fields, rewrites) if rewrites else fields

    def _applied(self, method: str, status: int | None) -> _Applied:
        if method not in self._methods and method != _PATCH:
            method = "GET" if method == "HEAD" else ""  # others are all the same
        try:
            return self._known[method, status]
        except KeyError:
            links = [link for link in self.links if link.applies(method, status)]
            with_bodies = tuple(link for link in links if link.changes)
            if method == _PATCH and status is None:
                with_bodies = tuple(link.for_patch() for link in with_bodies)
            whole = self if with_bodies == self.links else Conversion(with_bodies, self.direction)
            applied = _Applied(
                whole if with_bodies else None,
                self._rewrites(link.query for link in links),
                self._rewrites(link.headers for link in links),
            )
            self._known[method, status] = applied
            return applied

    def _rewrites(self, changes: Iterable[Sequence[ParameterChange]]) -> tuple[Rewrite, ...]:
        if self.direction is Direction.UP:
            return tuple(change.up for some in changes for change in some)
        return tuple(change.down for some in changes for change in reversed(some))


def compose(
    ladder: Sequence[Version],
    links: Mapping[Version, Sequence[VersionLink]],
    source: Version,
    target: Version,
) -> Conversion:
    """Return the conversion from `source` to `target`, two different rungs of the ladder.

    Args:
        ladder: every version of the API, the oldest first.
        links: the declared links by their older version, in the order that upgrades.
        source: the version of the documents that will come.
        target: the version they will be converted to.

    Raises:
        LookupError: a link on the way is not declared; its arguments are the two versions.
    """
    low, high = sorted((ladder.index(source), ladder.index(target)))
    for older, newer in zip(ladder[low:high], ladder[low + 1 : high + 1], strict=True):
        if older not in links:
            raise LookupError(older, newer)
    chain = tuple(link for older in ladder[low:high] for link in links[older])
    if source < target:
        return Conversion(chain, Direction.UP)
    return Conversion(chain[::-1], Direction.DOWN)
