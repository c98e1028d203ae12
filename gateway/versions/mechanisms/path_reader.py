"""The version in the path: `/v{version}/person`."""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.base.request import RequestHead
from gateway.versions.chosen_by import ChosenBy
from gateway.versions.reader import IN_PATH, Reader, VersionAddress
from gateway.versions.version import Version


@dataclass(frozen=True, slots=True)
class PathReader(Reader):
    """Reads the `{version}` capture of the endpoint's path."""

    mechanism = ChosenBy.PATH
    place = "the path"
    # The version is part of the resource's name; where there is none of that name, there is no
    # resource (RFC 9110, section 15.5.5).
    refusal_status = 404
    reads_path = True

    def read(self, head: RequestHead, captures: Mapping[str, str]) -> tuple[str, ...]:
        """Return the captured text, raw: a percent-encoded digit is not a digit."""
        return (captures["version"],)

    def address(self, version: Version) -> VersionAddress:
        """Return an address that adds nothing to the path."""
        return IN_PATH
