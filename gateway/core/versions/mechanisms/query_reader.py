"""The version in the query: `?version=2`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import quote, unquote

from gateway.core.request import RequestHead
from gateway.core.versions.chosen_by import ChosenBy
from gateway.core.versions.parameter_lookalikes import ParameterLookalikes
from gateway.core.versions.reader import Reader, VersionAddress
from gateway.core.versions.version import Version


@dataclass(frozen=True, slots=True)
class QueryReader(Reader):
    """Reads a query parameter; its name is case-sensitive."""

    name: str
    lookalikes: ParameterLookalikes | None = field(init=False, repr=False, compare=False)

    mechanism = ChosenBy.QUERY
    can_be_added = True
    has_lookalikes = True

    def __post_init__(self) -> None:
        found = ParameterLookalikes.of(self.name, parameters(self.name))
        object.__setattr__(self, "lookalikes", found)

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
        if "%" in head.query or "+" in head.query:
            coded = parameters(self.name).findall(head.query)
            return tuple([unquote(value) for *_, value in coded])
        found = []
        for pair in head.query.split("&"):
            name, _, value = pair.partition("=")
            if name == self.name:
                found.append(value)
        return tuple(found)

    def lookalike(self, head: RequestHead) -> str | None:
        """Return the name of a parameter that a service may read as the one of the version."""
        if not head.query or self.lookalikes is None:
            return None
        return self.lookalikes.find(head.query)

    def address(self, version: Version) -> VersionAddress:
        """Return the query that names a version."""
        return VersionAddress(query=f"{quote(self.name)}={version}")

    def rewrite_query(self, query: str, label: str) -> str:
        """Return the query with another value of the parameter; all else stays, byte for byte."""
        if "%" in query or "+" in query:

            def written(found: re.Match[str]) -> str:
                named = unquote(found[3] or "") == label
                return found[0] if named else f"{found[1]}{found[2]}={label}"

            return parameters(self.name).sub(written, query)
        pairs = []
        for pair in query.split("&"):
            name = pair.partition("=")[0]
            pairs.append(f"{name}={label}" if name == self.name else pair)
        return "&".join(pairs)

    def add_to_query(self, query: str | None, label: str) -> str:
        """Return the query with the parameter at its end, unless it has one."""
        if query and parameters(self.name).search(query):
            return query
        return f"{query}&{quote(self.name)}={label}" if query else f"{quote(self.name)}={label}"


@lru_cache(maxsize=1024)
def parameters(name: str) -> re.Pattern[str]:
    """Return a pattern of the parameters of a name in a query, however the name is encoded.

    The name is form-decoded (WHATWG URL, section 5.1). One search through the whole query costs a
    tenth of decoding each name in it. The groups are what precedes the name (`&` or nothing), the
    name, and the value, which are as they stand in the query.
    """
    spelling = "".join(map(_spelling, name))
    return re.compile(rf"(\A|&)({spelling})(?:=([^&]*))?(?=&|\Z)")


def _spelling(character: str) -> str:
    coded = "".join(
        f"%{''.join(f'[{digit}{digit.upper()}]' for digit in f'{byte:02x}')}"
        for byte in character.encode()
    )
    # A plus is a blank, and a percent sign stands for itself where no byte follows it.
    plain = {" ": r"\+| ", "+": r"(?!)", "%": "%(?![0-9A-Fa-f]{2})"}
    return f"(?:{plain.get(character, re.escape(character))}|{coded})"
