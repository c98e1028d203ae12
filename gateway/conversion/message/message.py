"""Message: what surrounds a body while it is converted, and changes along with it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import unquote

from gateway.conversion.document import Document, JsonForm
from gateway.conversion.message.query_walk import QueryStep, QueryWalk
from gateway.conversion.parameter_change import (
    FIELDS,
    QUERY,
    ParameterLine,
    ParameterLines,
    Spelling,
    parse_query,
)

_NO_WAY = QueryWalk([], ())


@dataclass(frozen=True, slots=True)
class Message:
    """The message that a body belongs to.

    Its header fields and its query are lists, which are converted in place, link by link together
    with the body, so that changes find them as the newer of the two versions of their link has
    them. The query is that of the request, also in an answer, where no change alters it.

    Attributes:
        method: The method of the client's request.
        path: The path of the client's request.
        operation: The path of the endpoint, as the rules write it.
        captures: The raw captures of the path, by name.
        target: The path that the service was asked for.
        status: The status of the answer; None for a request.
        headers: The header fields of the message.
        query: The query of the request.
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
        """Return a copy, which changes on its own."""
        return self._with([*self.headers], [*self.query])

    def restore(self) -> None:
        """Undo all changes."""
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
    """Return the message of a request, as the client has sent it.

    Args:
        method: The method.
        path: The raw path.
        query: The raw query; None without one.
        fields: The names and the values of the header fields.
        operation: The path of the endpoint, as the rules write it.
        captures: The raw captures of the path, by name.
    """
    lines = [ParameterLine(name.lower(), name, value) for name, value in fields]
    return Message(method, path, operation, captures, headers=lines, query=parse_query(query))


def message_of(form: JsonForm) -> Message | None:
    """Return the message of a document, or None where nothing of it is known."""
    return form.message if isinstance(form.message, Message) else None


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
    # The query and the header fields, once they were asked for: a function of a parameter is called
    # for each of its values, and a query has thousands.
    _read: dict[str, dict[str, list[str]]] = field(default_factory=dict, repr=False, compare=False)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle what functions can see of it, for a function in another process."""
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
