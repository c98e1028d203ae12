"""The lifecycle of a version: deprecated, then sunset, with a successor and with exemptions."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from math import inf
from urllib.parse import quote

from gateway.core.context import RequestContext
from gateway.core.errors import Fault, FaultCode
from gateway.core.headers import FieldLines
from gateway.core.request import RequestHead
from gateway.core.routing import Template
from gateway.core.versions.reader import IN_PATH, VersionAddress
from gateway.core.versions.version import Version

# What a URI is made of (RFC 3986, section 2), percent-encoding included.
_URI = "!#$%&'()*+,/:;=?@[]~"
_PLAIN = re.compile(r"[!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]*\Z")
# Around the name of a capture, in a link to be filled; no template holds it.
_MARK = "\0"

PORT = ":port"
"""Stands among the captures for the port that the client used, which a link to another host keeps;
no capture of a path is called so."""

_PORT = re.compile(r":[0-9]+\Z")


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for a version at every endpoint; times are in seconds since 1970.

    Attributes:
        version: whose terms they are.
        deprecated: from when on it should not be used; None where nothing is said of it.
        sunset: when it ends; infinite where it does not.
        link: the URL of a page about it.
        exempt: by client, when it ends for that client, later than for others.
    """

    version: Version
    deprecated: float | None = None
    sunset: float = inf
    link: str | None = None
    exempt: Mapping[str, float] = field(default_factory=dict)

    def ended(self, context: RequestContext) -> bool:
        """Whether the version is over for who asks."""
        return context.now >= self.sunset and context.now >= self.exempt.get(
            context.client, self.sunset
        )


@dataclass(frozen=True, slots=True)
class Successor:
    """A later version to use instead, and how it is asked for at one endpoint.

    Attributes:
        version: the version.
        terms: its own, if it has any; it may be over as well by the time it is named.
        path: of the endpoint.
        address: what a link to it adds to the path.
    """

    version: Version
    terms: Terms | None
    path: Template
    address: VersionAddress = IN_PATH

    def link(self, captures: Mapping[str, str]) -> str:
        """Return the link to it (RFC 5829, section 3.3).

        Of Accept it can say what the target is. It has nothing to tell a program which other
        header field to send, so it tells people, in its title (RFC 8288, section 3.4.1).
        """
        hint = ""
        if self.address.media_type is not None:
            hint = f'; type="{self.address.media_type}"'
        elif self.address.header is not None:
            hint = f'; title="{self.address.header}"'
        return f'<{self.target(captures)}>; rel="successor-version"{hint}'

    def members(self, captures: Mapping[str, str]) -> dict[str, object]:
        """Return what a problem detail says of it; `captures` are raw."""
        plain = {name: _plain(value) for name, value in captures.items()}
        told: dict[str, object] = {"version": str(self.version), "path": self._path(plain)}
        if self.address.host is not None:
            told["host"] = self.address.host + plain.get(PORT, "")
        if self.address.header is not None:
            told["header"] = self.address.header
        return told

    def target(self, captures: Mapping[str, str]) -> str:
        """Return the reference to it; `captures` are fit for a URI.

        To another host, it has no scheme, and so the one that the client used: the gateway may
        stand behind a proxy that ends TLS (RFC 3986, section 4.2).
        """
        if self.address.host is None:
            return self._path(captures)
        return f"//{self.address.host}{captures.get(PORT, '')}{self._path(captures)}"

    def _path(self, captures: Mapping[str, str]) -> str:
        path = self.path.fill({**captures, "version": str(self.version)})
        return path if self.address.query is None else f"{path}?{self.address.query}"


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """The terms of a version, as they are told at one endpoint; make it with `lifecycle`.

    Attributes:
        terms: of the version.
        successors: the next one first, then the successor of that, and so on.
        fields: what every answer says, so far as it is the same for all of them.
        graces: the same by client, for those that are exempt.
        moving: the link to the successor, where it differs from request to request: texts, and
            between them the names of captures.
    """

    terms: Terms
    successors: tuple[Successor, ...]
    fields: FieldLines
    graces: Mapping[str, FieldLines]
    moving: tuple[str, ...] = ()

    def told(self, client: str, captures: Mapping[str, str]) -> FieldLines:
        """Return the header fields that every answer to a client carries."""
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
        """Return what is said once the version is over.

        Args:
            context: who asks.
            captures: of the endpoint's path, raw.
            offered: the labels of the versions that are not over.
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
        """Return what is told of the first successor that is not over itself."""
        for successor in self.successors:
            if successor.terms is None or not successor.terms.ended(context):
                return successor.members(captures)
        return None


def lifecycle(terms: Terms, successors: tuple[Successor, ...]) -> Lifecycle:
    """Return the lifecycle of a version at an endpoint, its header fields written out."""
    following = successors[0] if successors else None
    moving: tuple[str, ...] = ()
    link: str | None = None
    if following is not None:
        captures = following.path.captures
        if following.address.host is not None:
            captures += (PORT,)
        link = following.link({name: f"{_MARK}{name}{_MARK}" for name in captures})
        if _MARK in link:
            moving, link = tuple(link.split(_MARK)), None
    graces = {client: _fields(terms, until, link) for client, until in terms.exempt.items()}
    fields = _fields(terms, terms.sunset, link)
    return Lifecycle(terms, successors, fields, graces, moving)


def places(captures: Mapping[str, str], head: RequestHead) -> Mapping[str, str]:
    """Return what links are filled with: the captures of the path, and the port."""
    port = _PORT.search(head.authority)
    return {**captures, PORT: port[0] if port else ""}


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
