"""The version in the query: `?version=2`."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote, unquote_to_bytes

from gateway.core.request import RequestHead
from gateway.core.versions.chosen_by import ChosenBy
from gateway.core.versions.reader import ExactMatch, Reader, VersionAddress
from gateway.core.versions.version import Version


@dataclass(frozen=True, slots=True)
class QueryReader(Reader):
    """Reads a query parameter; its name is case-sensitive."""

    name: str

    mechanism = ChosenBy.QUERY

    @property
    def place(self) -> str:
        """Name the parameter."""
        return f"the query parameter '{self.name}'"

    def read(self, head: RequestHead, captures: Mapping[str, str]) -> tuple[str, ...]:
        """Return every value of the parameter, form-decoded (WHATWG URL, section 5.1).

        But a plus stays one: `1.2+` names a version, and what has a space does not.
        """
        if not head.query:
            return ()
        found = []
        for pair in head.query.split("&"):
            name, _, value = pair.partition("=")
            if is_named(name, self.name):
                found.append(unquote(value) if "%" in value else value)
        return tuple(found)

    def exact(self, version: Version) -> ExactMatch:
        """Return the parameter with the label of a version."""
        return ExactMatch(query=(self.name, str(version)))

    def address(self, version: Version) -> VersionAddress:
        """Return the query that names a version."""
        return VersionAddress(query=f"{quote(self.name)}={version}")

    def rewrite_query(self, query: str, label: str) -> str:
        """Return the query with another value of the parameter; all else stays, byte for byte."""
        pairs = []
        for pair in query.split("&"):
            name = pair.partition("=")[0]
            pairs.append(f"{name}={label}" if is_named(name, self.name) else pair)
        return "&".join(pairs)


def is_named(text: str, name: str) -> bool:
    """Return whether a raw text, form-decoded, is the name of a query parameter.

    See the WHATWG URL standard, section 5.1. To decode to text would take ten times as long.
    """
    if "%" not in text and "+" not in text:
        return text == name
    data = text.replace("+", " ").encode("utf-8", "surrogatepass")
    return unquote_to_bytes(data) == name.encode()
