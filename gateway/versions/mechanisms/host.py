"""`version: { in: host, name: "v{version}.api.example.com" }`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from gateway.base.mistakes import Mistakes
from gateway.base.request import RequestHead
from gateway.versions.reader import OptionalMechanism, Reader, VersionAddress
from gateway.versions.version import Version


@dataclass(frozen=True, slots=True)
class HostReader(Reader):
    """Reads the version from the host name; case and port are ignored (RFC 9110, section 4.2.3).

    `prefix` and `suffix` are the lower-case strings before and after `{version}`. Responses need no
    Vary: the host is part of the target URI, and so of every cache key (RFC 9110, sections 7.1 and
    12.5.5; RFC 9111, section 2).
    """

    prefix: str
    suffix: str

    mechanism = "host"
    # The host is part of the URI: without the version, the URI identifies no resource (RFC 9110,
    # section 15.5.5). After a 421, the client would retry on another connection in vain.
    refusal_status = 404

    @property
    def place(self) -> str:
        return f"the host name, as {self.prefix}<version>{self.suffix}"

    def read(self, head: RequestHead, captures: Mapping[str, str]) -> tuple[str, ...]:
        version = self._version(head.authority.partition(":")[0])
        return () if version is None else (version,)

    def address(self, version: Version) -> VersionAddress:
        return VersionAddress(host=f"{self.prefix}{version}{self.suffix}")

    def rewrite_authority(self, authority: str, label: str) -> str:
        host, colon, port = authority.partition(":")
        if self._version(host) in (None, label):
            return authority
        return f"{self.prefix}{label}{self.suffix}{colon}{port}"

    def _version(self, host: str) -> str | None:
        # A trailing dot does not change a host name (RFC 1034, section 3.1).
        name = host.lower().removesuffix(".")
        end = len(name) - len(self.suffix)
        if not name.startswith(self.prefix) or not name.endswith(self.suffix):
            return None
        version = name[len(self.prefix) : end]
        return version if version and "." not in version else None


# A host name (RFC 1123, section 2.1) with `{version}` in one of its labels.
_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_HOST_NAME = re.compile(
    rf"((?:{_LABEL}\.)*(?:[a-z0-9][a-z0-9-]*)?)\{{version\}}((?:[a-z0-9-]*[a-z0-9])?(?:\.{_LABEL})*)\Z"
)
_IN_LABEL = re.compile(r"[a-z0-9-]+\Z")


class HostVersion(OptionalMechanism):
    """The version is part of the request's host name, within one label."""

    in_: Annotated[Literal["host"], Field(alias="in")]
    name: str
    """The host name, without a port and case-insensitive, with `{version}` in place of the version,
    such as `v{version}.api.example.com`."""

    def compile(self, versions: Mapping[str, Version], mistakes: Mistakes) -> HostReader | None:
        match = _HOST_NAME.match(self.name.lower())
        if match is None:
            mistakes.add(
                "not a host name with one {version} in one of its labels; write one like"
                " v{version}.api.example.com",
                "name",
            )
            return None
        for label in versions:
            if not _IN_LABEL.match(label):
                mistakes.add(
                    f"a label of a host name has lower-case letters, digits and '-', so '{label}'"
                    " is never found there; read such versions elsewhere",
                    "name",
                )
        return HostReader(match[1], match[2])
