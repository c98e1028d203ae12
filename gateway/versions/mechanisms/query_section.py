"""`version: { in: query, name: version }`."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from gateway.base.mistakes import Location, Mistakes
from gateway.versions.mechanisms.mechanism_config import OptionalMechanismConfig
from gateway.versions.mechanisms.query_reader import QueryReader
from gateway.versions.version import Version


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
