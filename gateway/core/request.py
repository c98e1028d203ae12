"""The head of a request, as far as choosing a version and planning look at it."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class HeaderLookup(Protocol):
    """Header fields by case-insensitive name, field lines in the order of the request."""

    def getall(self, key: str, default: tuple[()]) -> Sequence[str]:
        """Return the values of every line of that name, or `default` when there is none."""
        ...


class RequestHead(NamedTuple):
    """Method, raw path, raw query, header fields and authority.

    Path and query are kept as they came, percent-encoding included; `query` is None when the
    target has no question mark, so that a bare one survives. The authority is the host, and the
    port if the client named one (RFC 9110, section 7.2); empty where it is not known.
    """

    method: str
    path: str
    query: str | None
    fields: HeaderLookup
    authority: str = ""
