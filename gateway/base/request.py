"""The head of a request: the parts that version selection and planning read."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol


class HeaderLookup(Protocol):
    """A look-up of header fields by case-insensitive name; it keeps the order of field lines."""

    def getall(self, key: str, default: tuple[()]) -> Sequence[str]:
        """Return the values of all field lines named `key`, or `default` if there are none."""
        ...

    def items(self) -> Iterable[tuple[str, str]]:
        """Return the names and the values of all field lines, in their order."""
        ...


class RequestHead(NamedTuple):
    """The head of an HTTP request.

    Attributes:
        method: The method.
        path: The raw path, with its percent-encoding as received.
        query: The raw query, with its percent-encoding as received. It is None where the request
            target has no question mark, and empty where nothing follows the question mark.
        fields: The header fields.
        authority: The host, and the port if the client sent one (RFC 9110, section 7.2); empty
            where the authority is unknown.
    """

    method: str
    path: str
    query: str | None
    fields: HeaderLookup
    authority: str = ""
