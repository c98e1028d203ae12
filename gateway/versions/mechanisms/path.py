"""`version: { in: path }`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from gateway.base.mistakes import Mistakes
from gateway.base.request import RequestHead
from gateway.versions.reader import IN_PATH, Mechanism, Reader, VersionAddress
from gateway.versions.version import Version


@dataclass(frozen=True, slots=True)
class PathReader(Reader):
    mechanism = "path"
    place = "the path"
    # The version is part of the path. Without a valid version, the path identifies no resource (RFC
    # 9110, section 15.5.5).
    refusal_status = 404
    reads_path = True

    def read(self, head: RequestHead, captures: Mapping[str, str]) -> tuple[str, ...]:
        """Return the string without percent-decoding, so `%31` is not version 1."""
        return (captures["version"],)

    def address(self, version: Version) -> VersionAddress:
        return IN_PATH


class PathVersion(Mechanism):
    """The version is `{version}` in the path."""

    in_: Annotated[Literal["path"], Field(alias="in")]

    def compile(self, versions: Mapping[str, Version], mistakes: Mistakes) -> PathReader:
        return PathReader()
