"""Message: what surrounds a body while it is converted, and changes along with it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gateway.conversion.document import JsonForm
from gateway.conversion.message.query_walk import QueryHop, QueryWalk
from gateway.conversion.parameter_change import ParameterLine, ParameterLines, parse_query

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
        back: The hops of the queries of links, from the service's version to that of the client.
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
    back: Sequence[QueryHop] = ()
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
