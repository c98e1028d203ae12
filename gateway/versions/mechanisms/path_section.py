"""`version: { in: path }`."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from gateway.base.mistakes import Location, Mistakes
from gateway.versions.mechanisms.mechanism_config import MechanismConfig
from gateway.versions.mechanisms.path_reader import PathReader
from gateway.versions.version import Version


class PathVersion(MechanismConfig):
    """The version is the `{version}` of the path."""

    in_: Annotated[Literal["path"], Field(alias="in")]

    def build(
        self, versions: Mapping[str, Version], at: Location, mistakes: Mistakes
    ) -> PathReader:
        """Return the reader; that the path has a `{version}` is the endpoint's to check."""
        return PathReader()
