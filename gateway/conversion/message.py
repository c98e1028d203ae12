"""Message: the query and the header fields around a body, which are converted along with it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
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
    """The change of a query between two adjacent versions.

    Attributes:
        dropped: The names of the parameters that the source has as a part of the operation.
        added: The parameters that the target has as a part of the operation.
    """

    source: Version
    target: Version
    rewrites: Sequence[Rewrite] = ()
    dropped: frozenset[str] = frozenset()
    added: Sequence[ParameterLine] = ()

    def without(self, lines: ParameterLines) -> ParameterLines:
        return [line for line in lines if line.key not in self.dropped] if self.dropped else lines

    def passed(self, lines: ParameterLines, spelling: Spelling = QUERY) -> ParameterLines:
        return [*self.added, *rewrite_lines(self.without(lines), self.rewrites, spelling)]

    def origin(self, place: ErrorPlace) -> ErrorPlace:
        if not isinstance(place, Beside) or place.what != QUERY.what:
            return place
        added = {line.key for line in self.added}
        kept = tuple(name for name in place.names if QUERY.key(name) not in added)
        if kept != place.names and not kept:  # the path may have it, or parameters of its operation
            return Beside(QUERY.what, tuple(self.dropped)) if self.dropped else Beside("path")
        return place_before(Beside(QUERY.what, kept), self.rewrites, QUERY)


class QueryWalk(NamedTuple):
    """The way of a query from the client's version to that of the service."""

    lines: ParameterLines
    version_steps: tuple[QueryStep, ...]
    spelling: Spelling = QUERY

    @property
    def service(self) -> ParameterLines:
        """The query as the service has it; may raise ConversionError."""
        lines = self.lines
        for version_step in self.version_steps:
            lines = version_step.passed(lines, self.spelling)
        return lines

    def at(self, version: Version) -> ParameterLines:
        """Return the query as a version on the way has it; may raise ConversionError."""
        lines = self.lines
        for version_step in self.version_steps:
            if version_step.source == version:
                break
            lines = version_step.passed(lines, self.spelling)
        return lines

    def onward(self, version: Version, lines: ParameterLines) -> ParameterLines:
        """Return a query of a version as the service has it; may raise ConversionError."""
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
    """The message that a body belongs to.

    Its header fields and its query are lists, which are converted in place, link by link together
    with the body, so that changes find them as the newer of the two versions of their link has
    them. The query is that of the request, also in an answer, where no change alters it.

    Attributes:
        operation: The path of the endpoint, as the rules write it.
        target: The path that the service was asked for.
        status: The status of the answer; None for a request.
        link: Returns a URL for the receiver of the message.
        way: The way of the query to the service.
        back: The steps of the queries of links, from the service's version to the client's.
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
        """The message as it was before all changes."""
        headers, query = self._given
        return self._with(headers, query)

    def copied(self) -> "Message":
        return self._with([*self.headers], [*self.query])

    def restore(self) -> None:
        self.headers[:], self.query[:] = self._given

    def _with(self, headers: ParameterLines, query: ParameterLines) -> "Message":
        # A tenth of the cost of dataclasses.replace.
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
    """Return the message of a request, as the client has sent it."""
    lines = [ParameterLine(name.lower(), name, value) for name, value in fields]
    return Message(method, path, operation, captures, headers=lines, query=parse_query(query))


def message_of(form: JsonForm) -> Message | None:
    return form.message if isinstance(form.message, Message) else None


class Place(Protocol):
    """A place of a message, beside the body, that can hold one text."""

    @property
    def beside(self) -> Beside:
        """The place in error messages."""
        ...

    @property
    def field_name(self) -> str | None:
        """The name of the header field that has the place; None where none has it."""
        ...

    def applies(self, message: Message) -> bool:
        """Return whether messages of this kind have such a place."""
        ...

    def take(self, message: Message) -> str | None:
        """Remove and return the text, or return None if there is none."""
        ...

    def give(self, message: Message, text: str, source: Tokens) -> None:
        """Put the text of a field there, from `source` in the body; may raise ConversionError."""
        ...


class CarriedValue(NamedTuple):
    """A value that one version has in the body, and the other in another place of the message.

    Attributes:
        field: The place of the value in the body.
        in_newer: Whether the newer version has it in the body, else the older one.
    """

    field: Keys
    place: Place
    kind: Type
    in_newer: bool = True

    def inverse(self) -> "CarriedValue":
        return self._replace(in_newer=not self.in_newer)

    @property
    def names(self) -> tuple[MovedNames, ...]:
        """The header field that one version has in the place of a field of the body."""
        name = self.place.field_name
        if name is None:
            return ()
        return (MovedNames((), (name,)) if self.in_newer else MovedNames((name,), ()),)


@dataclass(frozen=True, slots=True)
class MessageView:
    """The message that a value belongs to, to be read.

    Query and header fields are as the newer of the two versions has them, between which the
    function converts.

    Attributes:
        direction: `up`, to the newer version, or `down`.
    """

    direction: str
    _message: Message
    _fields: Callable[[], Document]
    # The query and the header fields by name, read once: a function of a parameter is called for
    # each of its values, and a query may have thousands.
    _read: dict[str, dict[str, list[str]]] = field(default_factory=dict, repr=False, compare=False)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the visible parts, for a function in another process."""
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
        """The decoded texts that the path of the endpoint captures, by name."""
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
        """The status of the service's answer; None in a request."""
        return self._message.status

    @property
    def fields(self) -> Document:
        """A copy of the object that has the field; empty where the value is the whole body."""
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
