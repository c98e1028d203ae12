"""MessageView: what Python functions of a conversion can know of the message."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import unquote

from gateway.conversion.document import Document
from gateway.conversion.message.message import Message
from gateway.conversion.parameter_change import FIELDS, QUERY, ParameterLines, Spelling


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
