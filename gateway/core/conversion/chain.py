"""Chains: links between adjacent versions, composed to the conversion between two versions."""

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
    """The direction of a conversion: up to a newer version, or down to an older one."""

    UP = "up"
    DOWN = "down"


class MessageKind(Enum):
    """The kinds of messages that changes apply to."""

    REQUEST = "requests"
    RESPONSE = "responses"
    ERROR = "errors"


# A PATCH request leaves fields that it does not contain unchanged (RFC 5789, RFC 7396).
_PATCH = "PATCH"
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
        """Return whether the link applies to a request, or to a response where status is given.

        Args:
            method: The method of the request.
            status: The status of the response; None for the request.
        """
        if self.methods is not None and method not in self.methods:
            return False
        if status is None:
            return MessageKind.REQUEST in self.on
        if 200 <= status <= 299:
            return MessageKind.RESPONSE in self.on
        return status in self.statuses

    def for_patch(self) -> "VersionLink":
        """Return the link for bodies of PATCH requests, which hold only the fields to change."""
        return replace(self, changes=tuple(change.for_patch() for change in self.changes))

    def tasks(self, direction: Direction) -> Iterator[ConversionTask]:
        """Yield the changes of bodies as tasks, in the order of a direction."""
        if direction is Direction.UP:
            for one in self.changes:
                yield ConversionTask(one.scopes, one.touches, one.up, isinstance(one, Whole))
        else:
            for one in reversed(self.changes):
                yield ConversionTask(one.scopes, one.touches, one.down, isinstance(one, Whole))


class _Applied(NamedTuple):
    """The parts of a conversion that apply to one method and status."""

    body: "Conversion | None"
    query: tuple[Rewrite, ...]
    headers: tuple[Rewrite, ...]


@dataclass(frozen=True, slots=True)
class Conversion:
    """The conversion of messages from one version to another, through every link between them.

    Attributes:
        links: The links, in the order of the direction.
        direction: The direction of the conversion.
    """

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
        """Return the document converted to the other version.

        Args:
            document: An object, or an array whose elements are such documents or null, which stays
                null. Changes of the whole body accept and produce any JSON value.
            form: The form in which the document holds its values.

        Raises:
            ConversionError: The document does not fit the declared changes.
        """
        for step in self._steps:
            document = step(document, form)
        return document

    def at(self, path: str) -> "Conversion":
        """Return the conversion with only the links that apply at the endpoint of a path."""
        links = (link for link in self.links if link.paths is None or path in link.paths)
        return Conversion(tuple(links), self.direction)

    def for_request(self, method: str) -> "Conversion | None":
        """Return the conversion of the body of a request, or None if no change applies to it."""
        return self._applied(method, None).body

    def for_response(self, method: str, status: int) -> "Conversion | None":
        """Return the conversion of the body of a response, or None if no change applies to it.

        Changes describe the bodies of successful responses (2xx). The body of a redirect does not
        describe the resource, and the body of an error has a structure of its own, so both stay
        unchanged unless a declaration lists the status.

        Args:
            method: The method of the request.
            status: The status of the response.
        """
        return self._applied(method, status).body

    def query(self, method: str, query: str | None) -> str | None:
        """Return the converted raw query of a request; may raise ConversionError."""
        rewrites = self._applied(method, None).query
        return rewrite_query(query, rewrites) if rewrites else query

    def fields(
        self, method: str, status: int | None, fields: list[tuple[bytes, bytes]]
    ) -> list[tuple[bytes, bytes]]:
        """Return the converted header fields of a message; may raise ConversionError.

        Args:
            method: The method of the request.
            status: The status of the response; None for the fields of a request.
            fields: The field lines.
        """
        rewrites = self._applied(method, status).headers
        return rewrite_fields(fields, rewrites) if rewrites else fields

    def _applied(self, method: str, status: int | None) -> _Applied:
        if method not in self._methods and method != _PATCH:
            method = "GET" if method == "HEAD" else ""  # no link distinguishes the other methods
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
    """Return the conversion from the version `source` to another version, `target`.

    Args:
        ladder: All versions of the API, the oldest first.
        links: The declared links by their older version, in the order of an upgrade.
        source: The version of the messages to convert.
        target: The version to convert the messages to.

    Raises:
        LookupError: A link between the two versions is not declared; the arguments of the error
            are the two adjacent versions.
    """
    low, high = sorted((ladder.index(source), ladder.index(target)))
    for older, newer in zip(ladder[low:high], ladder[low + 1 : high + 1], strict=True):
        if older not in links:
            raise LookupError(older, newer)
    chain = tuple(link for older in ladder[low:high] for link in links[older])
    if source < target:
        return Conversion(chain, Direction.UP)
    return Conversion(chain[::-1], Direction.DOWN)
