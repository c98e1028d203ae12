"""`version: { in: host, name: "v{version}.api.example.com" }`."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from gateway.base.mistakes import Location, Mistakes
from gateway.versions.mechanisms.host_reader import HostReader
from gateway.versions.mechanisms.mechanism_config import OptionalMechanismConfig
from gateway.versions.version import Version

# A host name (RFC 1123, section 2.1) with one place for the version in one of its labels.
_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_HOST_NAME = re.compile(
    rf"((?:{_LABEL}\.)*(?:[a-z0-9][a-z0-9-]*)?)\{{version\}}((?:[a-z0-9-]*[a-z0-9])?(?:\.{_LABEL})*)\Z"
)
_IN_LABEL = re.compile(r"[a-z0-9-]+\Z")


class HostVersion(OptionalMechanismConfig):
    """The version is in a label of the host name that the client asks."""

    in_: Annotated[Literal["host"], Field(alias="in")]
    name: str
    """The host name, without a port and case-insensitive, with `{version}` where the version
    stands, such as `v{version}.api.example.com`."""

    def build(
        self, versions: Mapping[str, Version], at: Location, mistakes: Mistakes
    ) -> HostReader | None:
        """Return the reader; every version must fit in a label."""
        match = _HOST_NAME.match(self.name.lower())
        if match is None:
            mistakes.add(
                "not a host name with one {version} in one of its labels; write one like"
                " v{version}.api.example.com",
                *(*at, "name"),
            )
            return None
        for label in versions:
            if not _IN_LABEL.match(label):
                mistakes.add(
                    f"a label of a host name has lower-case letters, digits and '-', so that"
                    f" '{label}' would never be found there; read such versions elsewhere",
                    *(*at, "name"),
                )
        return HostReader(match[1], match[2])
