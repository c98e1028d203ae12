"""Message: the query and header fields of a message, which are converted together with its body."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import NamedTuple, Protocol
from urllib.parse import unquote

from gateway.conversion.conversion_error import Beside, ErrorPlace
from gateway.conversion.document import Document, JsonForm
from gateway.conversion.field_path import Keys, Tokens
from gateway.conversion.parameter_change import (
    FIELDS,
    QUERY,
    MovedNames,
    ParameterLine,
    ParameterLines,
    Rewrite,
    Spelling,
    parse_query,
    place_before,
    rewrite_lines,
)
from gateway.conversion.scalars import Type
from gateway.versions.version import Version


class QueryStep(NamedTuple):
    """The changes of a query between two adjacent versions.

    `dropped` names the parameters that only the operation of the source version has. `added` are
    those that only the operation of the target version has. `captures` has the raw values in the
    path of the operation.
    """

    source: Version
    target: Version
    rewrites: Sequence[Rewrite] = ()
    dropped: frozenset[str] = frozenset()
    added: Sequence[ParameterLine] = ()
    captures: Mapping[str, str] = MappingProxyType({})

    def without(self, lines: ParameterLines) -> ParameterLines:
        return [line for line in lines if line.key not in self.dropped] if self.dropped else lines

    def passed(self, lines: ParameterLines, spelling: Spelling = QUERY) -> ParameterLines:
        return [*self.added, *rewrite_lines(self.without(lines), self.rewrites, spelling)]

    def origin(self, place: ErrorPlace) -> ErrorPlace:
        if not isinstance(place, Beside) or place.what != QUERY.what:
            return place
        added = {line.key for line in self.added}
        kept = tuple(name for name in place.names if QUERY.key(name) not in added)
        if kept != place.names and not kept:  # the value came from the path or a dropped parameter
            return Beside(QUERY.what, tuple(self.dropped)) if self.dropped else Beside("path")
        return place_before(Beside(QUERY.what, kept), self.rewrites, QUERY)


class QueryWalk(NamedTuple):
    lines: ParameterLines
    version_steps: tuple[QueryStep, ...]
    spelling: Spelling = QUERY

    @property
    def service(self) -> ParameterLines:
        """The query, converted to the service's version; may raise ConversionError."""
        lines = self.lines
        for version_step in self.version_steps:
            lines = version_step.passed(lines, self.spelling)
        return lines

    def at(self, version: Version) -> ParameterLines:
        """Convert the client's query to an intermediate version; may raise ConversionError."""
        lines = self.lines
        for version_step in self.version_steps:
            if version_step.source == version:
                break
            lines = version_step.passed(lines, self.spelling)
        return lines

    def to_service(self, version: Version, lines: ParameterLines) -> ParameterLines:
        """Convert a query from `version` to the service's version; may raise ConversionError."""
        upwards = (
            bool(self.version_steps) and self.version_steps[0].source < self.version_steps[0].target
        )
        for version_step in self.version_steps:
            if (version_step.source >= version) if upwards else (version_step.source <= version):
                lines = version_step.passed(lines, self.spelling)
        return lines

    def version_step(self, source: Version, target: Version) -> QueryStep:
        for version_step in self.version_steps:
            if version_step.source == source and version_step.target == target:
                return version_step
        return QueryStep(source, target)


_NO_WAY = QueryWalk([], ())


@dataclass(frozen=True, slots=True)
class Message:
    """The request or response that a body belongs to.

    The header fields and the query are lists that are converted in place together with the body,
    one entry of `conversions` after the other. A change therefore always reads them in the newer of
    the two versions that it converts between. A response has the query of its request, which no
    change alters.

    Attributes:
        operation: The path of the endpoint, as written in the configuration.
        link: Converts a URL in the message for the receiver of the message.
        way: The conversion of the client's query for the service: the query and the version steps.
        back: The steps that convert the query of a URL from the service's version to the client's
            version.
    """

    method: str = "GET"
    path: str = "/"
    operation: str = ""
    captures: Mapping[str, str] = field(default_factory=dict)
    target: str = "/"
    status: int | None = None
    headers: ParameterLines = field(default_factory=list)
    query: ParameterLines = field(default_factory=list)
    link: Callable[[str], str] = str
    way: QueryWalk = _NO_WAY
    back: Sequence[QueryStep] = ()
    _given: tuple[ParameterLines, ParameterLines] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_given", ([*self.headers], [*self.query]))

    @property
    def given(self) -> "Message":
        headers, query = self._given
        return self._with(headers, query)

    def capture(self, name: str, between: tuple[Version, Version]) -> str | None:
        """Return the decoded value of a capture of the operation, or else of the endpoint's path.

        Args:
            between: The versions whose operation has the capture.
        """
        steps = (each for each in self.way.version_steps if {*each[:2]} == {*between})
        for captures in (*(each.captures for each in steps), self.captures):
            with suppress(KeyError):
                return unquote(captures[name])
        return None

    def copied(self) -> "Message":
        return self._with([*self.headers], [*self.query])

    def restore(self) -> None:
        self.headers[:], self.query[:] = self._given

    def _with(self, headers: ParameterLines, query: ParameterLines) -> "Message":
        # Ten times as fast as dataclasses.replace.
        return Message(
            self.method,
            self.path,
            self.operation,
            self.captures,
            self.target,
            self.status,
            headers,
            query,
            self.link,
            self.way,
            self.back,
        )


def request_message(
    method: str,
    path: str,
    query: str | None,
    fields: Iterable[tuple[str, str]],
    operation: str,
    captures: Mapping[str, str],
) -> Message:
    lines = [ParameterLine(name.lower(), name, value) for name, value in fields]
    return Message(method, path, operation, captures, headers=lines, query=parse_query(query))


def message_of(form: JsonForm) -> Message | None:
    return form.message if isinstance(form.message, Message) else None


SAMPLE_CAPTURES: Mapping[str, str] = defaultdict(lambda: "1")
"""The captures of an example without a path: each of them has the value 1."""


class Place(Protocol):
    """A location outside the body that holds one string, such as a query parameter."""

    @property
    def beside(self) -> Beside:
        """The location shown in error messages."""
        ...

    @property
    def field_name(self) -> str | None:
        """The name of the header field, or None if the location is not in a header field."""
        ...

    def applies(self, message: Message) -> bool:
        """Return whether the location exists in messages of this kind (request or response)."""
        ...

    def take(self, message: Message) -> str | None:
        """Remove the string from the message and return it; return None if it is absent."""
        ...

    def give(self, message: Message, text: str, source: Tokens) -> None:
        """Write a string to this location; may raise ConversionError.

        Args:
            source: The location of the body field that held the string.
        """
        ...


class CarriedValue(NamedTuple):
    """A value that one version has in the body, and the other version outside the body.

    The newer version has it in the body if `in_newer` is true, otherwise the older version.
    """

    field: Keys
    place: Place
    kind: Type
    in_newer: bool = True

    def inverse(self) -> "CarriedValue":
        return self._replace(in_newer=not self.in_newer)

    @property
    def names(self) -> tuple[MovedNames, ...]:
        name = self.place.field_name
        if name is None:
            return ()
        return (MovedNames((), (name,)) if self.in_newer else MovedNames((name,), ()),)


@dataclass(frozen=True, slots=True)
class MessageView:
    """A read-only view of the message for a Python function that converts a value of the message.

    The query and the header fields have the form of the newer one of the two versions between which
    the function converts.

    Attributes:
        direction: `up` (to the newer version) or `down`.
    """

    direction: str
    _message: Message
    _fields: Callable[[], Document]
    # A cache of the query parameters and header fields by name. A function is called for each value
    # of a parameter, and a query may have thousands of values.
    _read: dict[str, dict[str, list[str]]] = field(default_factory=dict, repr=False, compare=False)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the public attributes, for functions that run in another process."""
        known = self._message
        names = known.method, known.path, known.operation, dict(known.captures)
        read = {QUERY.what: dict(self.query), FIELDS.what: dict(self.headers)}
        return _restored, (self.direction, names, known.status, self._fields(), read)

    @property
    def method(self) -> str:
        """The method of the client's request."""
        return self._message.method

    @property
    def path(self) -> str:
        """The path of the client's request."""
        return self._message.path

    @property
    def operation(self) -> str:
        """The method and the path of the endpoint, such as `GET /orders/{id}`."""
        return f"{self._message.method} {self._message.operation}"

    @property
    def path_parameters(self) -> Mapping[str, str]:
        """The decoded values of the parameters in the endpoint's path, by name."""
        return {name: unquote(raw) for name, raw in self._message.captures.items()}

    @property
    def query(self) -> Mapping[str, list[str]]:
        """The decoded values of the query parameters of the request, by name."""
        return self._by_name(self._message.query, QUERY)

    @property
    def headers(self) -> Mapping[str, list[str]]:
        """The values of the header fields of the message, by their names in lower case."""
        return self._by_name(self._message.headers, FIELDS)

    @property
    def status(self) -> int | None:
        """The status of the service's response; None in a request."""
        return self._message.status

    @property
    def fields(self) -> Document:
        """A copy of the object that holds the converted field.

        The copy is an empty object if the function converts the whole body.
        """
        return self._fields()

    def _by_name(self, lines: ParameterLines, spelling: Spelling) -> Mapping[str, list[str]]:
        found = self._read.get(spelling.what)
        if found is None:
            found = self._read[spelling.what] = {}
            for line in lines:
                found.setdefault(line.key, []).append(spelling.read(line.value or ""))
        return found


def _restored(
    direction: str,
    names: tuple[str, str, str, dict[str, str]],
    status: int | None,
    fields: Document,
    read: dict[str, dict[str, list[str]]],
) -> MessageView:
    message = Message(*names, status=status)
    return MessageView(direction, message, partial(deepcopy, fields), read)
