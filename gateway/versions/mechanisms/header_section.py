"""`version: { in: header, name: X-API-VERSION }`."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from gateway.base.headers import SPOKEN_FOR
from gateway.base.mistakes import Location, Mistakes
from gateway.base.model import FieldName
from gateway.versions.mechanisms.header_reader import HeaderReader
from gateway.versions.mechanisms.mechanism_config import OptionalMechanismConfig
from gateway.versions.version import Version

RESERVED_NAME = "has a meaning of its own already; choose another, like X-API-Version"


class HeaderVersion(OptionalMechanismConfig):
    """The version is a request header."""

    in_: Annotated[Literal["header"], Field(alias="in")]
    name: FieldName
    """The name of the header, case-insensitive."""

    def build(
        self, versions: Mapping[str, Version], at: Location, mistakes: Mistakes
    ) -> HeaderReader:
        """Return the reader; the header must not be one that HTTP or the gateway uses."""
        if self.name.lower().encode() in SPOKEN_FOR:
            mistakes.add(RESERVED_NAME, *at, "name")
        return HeaderReader(self.name)
