"""The lifecycle of a version: deprecation and sunset, successors and exemptions."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from math import inf
from urllib.parse import quote

from gateway.base.context import RequestContext
from gateway.base.errors import Fault, FaultCode
from gateway.base.headers import FieldLines
from gateway.base.path_templates import Template
from gateway.base.request import RequestHead
from gateway.conversion.chain import Conversion
from gateway.versions.reader import IN_PATH, VersionAddress
from gateway.versions.version import Version

# The characters of a URI (RFC 3986, section 2), with the percent sign of encoded ones.
_URI = "!#$%&'()*+,/:;=?@[]~"
_PLAIN = re.compile(r"[!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]*\Z")
# Marks the names of captures in a link that is filled per request; no template contains it.
_MARK = "\0"

PORT = ":port"
"""The key, among the captures, of the port that the client used, which links to another host keep.

No capture of a path can have this name."""

_PORT = re.compile(r":[0-9]+\Z")


@dataclass(frozen=True, slots=True)
class Terms:
    """The dates of a version's lifecycle, which hold at every endpoint.

    Attributes:
        version: The version.
        deprecated: The time from which on the version is deprecated, in seconds since 1970; None
            where it is not.
        sunset: The time at which the version ends, in seconds since 1970; infinite where it has no
            end.
        link: The URL of a page about the deprecation and the sunset; None where there is none.
        exempt: The later time at which the version ends for each exempt client, in seconds since
            1970, by client.
    """

    version: Version
    deprecated: float | None = None
    sunset: float = inf
    link: str | None = None
    exempt: Mapping[str, float] = field(default_factory=dict)

    def ended(self, context: RequestContext) -> bool:
        """Return whether the version has ended for the client of a request."""
        return context.now >= self.sunset and context.now >= self.exempt.get(
            context.client, self.sunset
        )


@dataclass(frozen=True, slots=True)
class Successor:
    """A later version to use instead, and the way to request it at one endpoint.

    Attributes:
        version: The later version.
        terms: The dates of the later version's own lifecycle, which may have ended as well; None
            where it has no lifecycle.
        path: The template of the endpoint's path.
        address: The part of a request, beside the path, that names the version.
        conversions: The conversion of requests from the version that ends, and of their answers,
            where operations differ; None where every operation has the same path. Links are then
            filled with the path of each request's operation, by the name `place`.
    """

    version: Version
    terms: Terms | None
    path: Template
    address: VersionAddress = IN_PATH
    conversions: tuple[Conversion, Conversion] | None = None

    @property
    def place(self) -> str:
        """The key, among the captures, of the path and the query of the operation.

        No capture has this name.
        """
        return f":in {self.version}"

    def link(self, captures: Mapping[str, str]) -> str:
        """Return the Link value for the successor version (RFC 5829, section 3.3).

        Where Accept carries the version, the `type` parameter holds its media type. No parameter of
        a link can hold another request header field, so the title names that field for human
        readers (RFC 8288, section 3.4.1).
        """
        hint = ""
        if self.address.media_type is not None:
            hint = f'; type="{self.address.media_type}"'
        elif self.address.header is not None:
            hint = f'; title="{self.address.header}"'
        return f'<{self.target(captures)}>; rel="successor-version"{hint}'

    def members(self, captures: Mapping[str, str]) -> dict[str, object]:
        """Return the members of a problem detail about the successor; `captures` are raw."""
        plain = {name: _plain(value) for name, value in captures.items()}
        found: dict[str, object] = {"version": str(self.version), "path": self._path(plain)}
        if self.address.host is not None:
            found["host"] = self.address.host + plain.get(PORT, "")
        if self.address.header is not None:
            found["header"] = self.address.header
        return found

    def target(self, captures: Mapping[str, str]) -> str:
        """Return the URI reference of the successor; `captures` are valid in a URI.

        A reference to another host has no scheme and inherits the one that the client used
        (RFC 3986, section 4.2), since a proxy before the gateway may terminate TLS.
        """
        if self.address.host is None:
            return self._path(captures)
        return f"//{self.address.host}{captures.get(PORT, '')}{self._path(captures)}"

    def _path(self, captures: Mapping[str, str]) -> str:
        if self.place in captures:
            return captures[self.place]
        path = self.path.fill({**captures, "version": str(self.version)})
        return self.addressed(path)

    def addressed(self, path: str) -> str:
        """Return a path with the query parameter that names the version, if one does."""
        if self.address.query is None:
            return path
        return f"{path}{'&' if '?' in path else '?'}{self.address.query}"


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """The lifecycle of a version at one endpoint, with its header fields; made by `lifecycle`.

    Attributes:
        terms: The dates of the version's lifecycle.
        successors: The successor of the version, then the successor of that one, and so on.
        fields: The header fields that are the same in every response.
        graces: The header fields that replace `fields` for each exempt client, by client.
        moving: The parts of a link to the successor that depends on the request: literal texts
            that alternate with names of captures. It is empty where no link depends on it.
        moves: Whether operations may have other paths in a successor.
        ported: Whether a successor is at another host, whose links have the port of the request.
        settled: Whether every response has the same `fields`, whoever asks and wherever.
    """

    terms: Terms
    successors: tuple[Successor, ...]
    fields: FieldLines
    graces: Mapping[str, FieldLines]
    moving: tuple[str, ...] = ()
    moves: bool = False
    ported: bool = False
    settled: bool = False

    def places(self, captures: Mapping[str, str], head: RequestHead) -> Mapping[str, str]:
        """Return the values that links are filled with: the captures of the path, and the port."""
        if not self.ported:
            return captures
        port = _PORT.search(head.authority)
        return {**captures, PORT: port[0] if port else ""}

    def fields_for(self, client: str, captures: Mapping[str, str]) -> FieldLines:
        """Return the header fields about the lifecycle for a response to a client."""
        fields = self.graces.get(client, self.fields) if self.graces else self.fields
        if not self.moving:
            return fields
        parts = list(self.moving)
        for place in range(1, len(parts), 2):
            parts[place] = _plain(captures[parts[place]])
        return (*fields, (b"Link", "".join(parts).encode()))

    def retired(
        self, context: RequestContext, captures: Mapping[str, str], offered: tuple[str, ...]
    ) -> Fault:
        """Return the fault for a request of a version that has ended.

        Args:
            context: The context of the request.
            captures: The raw captures of the endpoint's path.
            offered: The labels of the versions that have not ended.
        """
        heir = self.instead(context, captures)
        return Fault(
            FaultCode.VERSION_RETIRED,
            f"Version {self.terms.version} was retired on {_day(self.terms.sunset)};"
            f" {_advice(heir, offered)}.",
            supported=offered,
            successor=heir,
        )

    def instead(
        self, context: RequestContext, captures: Mapping[str, str]
    ) -> dict[str, object] | None:
        """Return the problem detail members of the first successor that has not ended, or None."""
        for successor in self.successors:
            if successor.terms is None or not successor.terms.ended(context):
                return successor.members(captures)
        return None


def lifecycle(terms: Terms, successors: tuple[Successor, ...]) -> Lifecycle:
    """Return the lifecycle of a version at an endpoint, with its header fields serialised."""
    following = successors[0] if successors else None
    moving: tuple[str, ...] = ()
    link: str | None = None
    if following is not None:
        captures = following.path.captures
        if following.conversions is not None:
            captures = (following.place,)
        if following.address.host is not None:
            captures += (PORT,)
        link = following.link({name: f"{_MARK}{name}{_MARK}" for name in captures})
        if _MARK in link:
            moving, link = tuple(link.split(_MARK)), None
    graces = {client: _fields(terms, until, link) for client, until in terms.exempt.items()}
    fields = _fields(terms, terms.sunset, link)
    moves = any(successor.conversions is not None for successor in successors)
    ported = any(successor.address.host is not None for successor in successors)
    settled = not (graces or moving or moves or ported)
    return Lifecycle(terms, successors, fields, graces, moving, moves, ported, settled)


def _fields(terms: Terms, sunset: float, link: str | None) -> FieldLines:
    lines: list[tuple[bytes, bytes]] = []
    relations: list[str] = []
    if terms.deprecated is not None:
        # A date of structured fields (RFC 9745, section 2.1; RFC 9651, section 3.3.7).
        lines.append((b"Deprecation", b"@%d" % terms.deprecated))
        relations.append("deprecation")
    if sunset != inf:
        # An HTTP date (RFC 8594, section 3).
        lines.append((b"Sunset", formatdate(sunset, usegmt=True).encode()))
        relations.append("sunset")
    links = [] if link is None else [link]
    if terms.link is not None:
        links = [*(f'<{terms.link}>; rel="{relation}"' for relation in relations), *links]
    if links:
        lines.append((b"Link", ", ".join(links).encode()))
    return tuple(lines)


def _plain(raw: str) -> str:
    return raw if _PLAIN.match(raw) else quote(raw, safe=_URI, errors="surrogateescape")


def _advice(heir: Mapping[str, object] | None, offered: tuple[str, ...]) -> str:
    if heir is not None:
        return f"use version {heir['version']}"
    return f"use {' or '.join(offered)}" if offered else "no version is left"


def _day(moment: float) -> str:
    return formatdate(moment, usegmt=True)[5:16]
