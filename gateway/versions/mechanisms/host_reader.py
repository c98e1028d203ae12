"""The version in a label of the host name: `v2.api.example.com`."""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.base.request import RequestHead
from gateway.versions.chosen_by import ChosenBy
from gateway.versions.reader import Reader, VersionAddress
from gateway.versions.version import Version


@dataclass(frozen=True, slots=True)
class HostReader(Reader):
    """Reads a host name; case and port are ignored (RFC 9110, section 4.2.3).

    `prefix` and `suffix` are what stands before and after `{version}`, in lower case. Vary names
    nothing, as the host is a part of the target URI, and so of the key of every cache (RFC 9110,
    sections 7.1 and 12.5.5; RFC 9111, section 2).
    """

    prefix: str
    suffix: str

    mechanism = ChosenBy.HOST
    # The host is a part of the URI, as the path is: without the version, it identifies no resource
    # (RFC 9110, section 15.5.5). 421 would ask the client to try another connection in vain.
    refusal_status = 404

    @property
    def place(self) -> str:
        """Show the host name."""
        return f"the host name, as {self.prefix}<version>{self.suffix}"

    def read(self, head: RequestHead, captures: Mapping[str, str]) -> tuple[str, ...]:
        """Return the version of a host name that fits, label by label."""
        version = self._version(head.authority.partition(":")[0])
        return () if version is None else (version,)

    def address(self, version: Version) -> VersionAddress:
        """Return the host that serves a version."""
        return VersionAddress(host=f"{self.prefix}{version}{self.suffix}")

    def rewrite_authority(self, authority: str, label: str) -> str:
        """Return the host of another version, and the same port."""
        host, colon, port = authority.partition(":")
        if self._version(host) in (None, label):
            return authority
        return f"{self.prefix}{label}{self.suffix}{colon}{port}"

    def _version(self, host: str) -> str | None:
        # A name that ends in a dot is the same name (RFC 1034, section 3.1).
        name = host.lower().removesuffix(".")
        end = len(name) - len(self.suffix)
        if not name.startswith(self.prefix) or not name.endswith(self.suffix):
            return None
        version = name[len(self.prefix) : end]
        return version if version and "." not in version else None
