"""`version: { in: query, name: version }`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal
from urllib.parse import quote, unquote

from pydantic import Field

from gateway.base.mistakes import Location, Mistakes
from gateway.base.query_parameters import parameter_values, parameters
from gateway.base.request import RequestHead
from gateway.versions.mechanisms.mechanism import OptionalMechanismConfig
from gateway.versions.parameter_lookalikes import ParameterLookalikes
from gateway.versions.reader import Reader, VersionAddress
from gateway.versions.version import Version


@dataclass(frozen=True, slots=True)
class QueryReader(Reader):
    """Reads a query parameter; its name is case-sensitive."""

    name: str
    lookalikes: ParameterLookalikes | None = field(init=False, repr=False, compare=False)

    mechanism = "query"
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
        """Return every value of the parameter; see `parameter_values`."""
        return parameter_values(head.query, self.name)

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


class QueryVersion(OptionalMechanismConfig):
    """The version is a query parameter."""

    in_: Annotated[Literal["query"], Field(alias="in")]
    name: Annotated[str, Field(min_length=1)]
    """The name of the parameter, case-sensitive.

    Only & separates parameters; a semicolon is part of a value (WHATWG URL, section 5.1).
    """

    def build(
        self, versions: Mapping[str, Version], at: Location, mistakes: Mistakes
    ) -> QueryReader:
        """Return the reader."""
        return QueryReader(self.name)
