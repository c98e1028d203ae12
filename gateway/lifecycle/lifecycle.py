"""`lifecycle` in gateway.yaml: deprecation, sunset and successor of a version."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from functools import partial
from math import inf
from typing import Annotated
from urllib.parse import quote

from gateway.access.clients import ClientNaming
from gateway.base.dates import format_date, parse_date
from gateway.base.errors import Fault, FaultCode
from gateway.base.headers import FieldLines
from gateway.base.mistakes import Mistakes
from gateway.base.model import Date, NonEmptyText, SectionModel, matching
from gateway.base.path_templates import Template
from gateway.base.request import RequestContext, RequestHead
from gateway.conversion.chain import Conversion
from gateway.versions.reader import IN_PATH, Reader, VersionAddress
from gateway.versions.version import Version

PageUrl = Annotated[
    str,
    matching(
        r"^https?://[!#-;=?-Z\[\]_a-z~]+$",
        "not the URL of a page; write one like https://example.com/v1-ends",
    ),
]

PORT = ":port"
"""The key of the client's port in link values. A path capture cannot have this name."""

# The characters of a URI, including the percent sign of percent-encoded octets (RFC 3986, section
# 2).
_URI = "!#$%&'()*+,/:;=?@[]~"
_VALID_URI = re.compile(r"[!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]*\Z")
# Delimits the keys of link values in a link that is filled in for each request. No path template
# contains this character.
_DELIMITER = "\0"
_PORT = re.compile(r":[0-9]+\Z")


class SunsetExemption(SectionModel):
    """A client for which the version ends later than for others."""

    client: NonEmptyText
    """The name of the exempt client, as determined by `clients`."""
    until: Date
    """The date on which the version ends for this client."""


class BrownoutExemption(SectionModel):
    """A client whose requests are not refused in brownouts."""

    client: NonEmptyText
    """The name of the exempt client, as determined by `clients`."""
    until: Date | None = None
    """The date on which the exemption ends. Without it, the exemption does not end."""


class Lifecycle(SectionModel):
    """The end of the version.

    A date is a day such as 2026-12-31, which begins at 00:00 UTC, or a time.
    """

    deprecated: Date | None = None
    """The date of the version's deprecation. Every response has this date in its Deprecation header
    (RFC 9745). Without it, the version is not deprecated."""
    sunset: Date | None = None
    """The date on which the version ends. Every earlier response has this date in its Sunset header
    (RFC 8594), and every later request gets a 410. Without it, the version does not end."""
    link: PageUrl | None = None
    """The URL of a page about the end of the version. Responses link to the page."""
    successor: str | None = None
    """The later version that clients should use instead. Responses link to this version."""
    exempt: tuple[SunsetExemption, ...] = ()
    """The clients for which the version ends later. By default, there are none."""

    def compile(
        self, version: Version, naming: ClientNaming | None, mistakes: Mistakes
    ) -> "VersionLifecycle":
        def date(text: str | None, name: str) -> float | None:
            return None if text is None else mistakes.attempt(partial(parse_date, text), name)

        if self.deprecated is None and self.sunset is None:
            mistakes.add("has no date; add deprecated or sunset")
        deprecated, sunset = date(self.deprecated, "deprecated"), date(self.sunset, "sunset")
        if deprecated is not None and sunset is not None and sunset < deprecated:
            mistakes.add(
                f"is before the deprecation, {self.deprecated};"
                " use a later sunset, or an earlier deprecation",
                "sunset",
            )
        if self.exempt and sunset is None:
            mistakes.add("only valid together with sunset; add sunset", "exempt")
        exempt = compile_exemptions(self.exempt, naming, mistakes.below("exempt"), sunset or -inf)
        ends = inf if sunset is None else sunset
        return VersionLifecycle(version, deprecated, ends, self.link, exempt)


def compile_lifecycles(
    configured: Mapping[str, Lifecycle],
    versions: Mapping[str, Version],
    naming: ClientNaming | None,
    mistakes: Mistakes,
) -> "dict[Version, VersionLifecycle]":
    labels = [label for label in configured if label in versions]
    found = {
        versions[label]: configured[label].compile(
            versions[label], naming, mistakes.below(label, "lifecycle")
        )
        for label in labels
    }
    following: dict[Version, Version] = {}
    for label in labels:
        named = configured[label].successor
        if named is not None:
            place = (label, "lifecycle", "successor")
            successor = mistakes.look_up(named, versions, "version", *place)
            if successor is None:
                continue
            wrong = _wrong_successor(found[versions[label]], successor, found.get(successor))
            if wrong is not None:
                mistakes.add(wrong, *place)
            if successor > versions[label]:
                following[versions[label]] = successor
    for version in found:
        chain = [version]
        while chain[-1] in following:  # the loop ends, since every successor is newer
            chain.append(following[chain[-1]])
        found[version] = replace(found[version], successor_versions=tuple(chain[1:]))
    return found


def _wrong_successor(
    ending: "VersionLifecycle", successor: Version, later: "VersionLifecycle | None"
) -> str | None:
    version = ending.version
    if successor <= version:
        return f"is not newer than version {version}; name a later one"
    until = inf if later is None else later.sunset
    if until == inf or until > ending.sunset:
        return None
    ends = "no sunset" if ending.sunset == inf else format_date(ending.sunset)
    return (
        f"version {successor} ends on {format_date(until)}, not after version {version} ({ends});"
        " name a version that ends later"
    )


@dataclass(frozen=True, slots=True)
class VersionLifecycle:
    """The lifecycle of a version, which is the same at every endpoint.

    Attributes:
        deprecated: When the version became deprecated, in seconds since 1970; None if it is not
            deprecated.
        sunset: When the version ends, in seconds since 1970; infinity without an end.
        exempt: The later end of the version for each exempt client, by client.
    """

    version: Version
    deprecated: float | None = None
    sunset: float = inf
    link: str | None = None
    exempt: Mapping[str, float] = field(default_factory=dict)
    successor_versions: tuple[Version, ...] = ()

    def ended(self, context: RequestContext) -> bool:
        return context.now >= self.sunset and context.now >= self.exempt.get(
            context.client, self.sunset
        )

    def header_fields(self, sunset: float, successor_link: str | None) -> FieldLines:
        """Return the header fields that announce the lifecycle; `sunset` may be infinity."""
        lines: list[tuple[bytes, bytes]] = []
        links: list[str] = []
        if self.deprecated is not None:
            # A date in structured fields (RFC 9745, section 2.1; RFC 9651, section 3.3.7).
            lines.append((b"Deprecation", b"@%d" % self.deprecated))
            links.append(f'<{self.link}>; rel="deprecation"')
        if sunset != inf:
            # An HTTP date (RFC 8594, section 3).
            lines.append((b"Sunset", formatdate(sunset, usegmt=True).encode()))
            links.append(f'<{self.link}>; rel="sunset"')
        if self.link is None:
            links.clear()
        if successor_link is not None:
            links.append(successor_link)
        if links:
            lines.append((b"Link", ", ".join(links).encode()))
        return tuple(lines)

    def at_endpoint(self, successors: "tuple[Successor, ...]") -> "EndpointLifecycle":
        link_parts: tuple[str, ...] = ()
        link: str | None = None
        has_port = any(successor.address.host is not None for successor in successors)
        moves = any(successor.conversions is not None for successor in successors)
        if successors:
            link = successors[0].link_template()
            if _DELIMITER in link:
                link_parts, link = tuple(link.split(_DELIMITER)), None
        exempt_fields = {
            client: self.header_fields(until, link) for client, until in self.exempt.items()
        }
        return EndpointLifecycle(
            self.version,
            self.deprecated,
            self.sunset,
            self.link,
            self.exempt,
            self.successor_versions,
            successors,
            self.header_fields(self.sunset, link),
            exempt_fields,
            link_parts,
            moves,
            has_port,
            not (exempt_fields or link_parts or moves or has_port),
        )


@dataclass(frozen=True, slots=True)
class Successor:
    """A later version to use instead, and how to request it at one endpoint.

    Links to it are filled in with link values: the raw captures of the path, the client's port (key
    PORT), and the path of the operation (key `operation_key`).

    Attributes:
        lifecycle: The lifecycle of the later version, which may also have ended; None without a
            lifecycle.
        conversions: The conversion of requests from the ending version, and of responses to it;
            None if every operation has the same path in both versions.
    """

    version: Version
    lifecycle: VersionLifecycle | None
    path: Template
    address: VersionAddress = IN_PATH
    conversions: tuple[Conversion, Conversion] | None = None

    @property
    def operation_key(self) -> str:
        """The key of the operation's path and query in link values.

        A capture cannot have this name.
        """
        return f":in {self.version}"

    def link_template(self) -> str:
        """Return the Link value for the successor version (RFC 5829, section 3.3).

        The value contains keys of link values between delimiters. If Accept names the version, the
        parameter `type` has its media type. Links have no parameter for any other request header
        field, so the title names that field for human readers (RFC 8288, section 3.4.1).

        A link to another host has no scheme, so it inherits the scheme that the client used (RFC
        3986, section 4.2). A proxy before the gateway may terminate TLS.
        """
        keys = self.path.captures if self.conversions is None else (self.operation_key,)
        values = {key: f"{_DELIMITER}{key}{_DELIMITER}" for key in (*keys, PORT)}
        hint = ""
        if self.address.media_type is not None:
            hint = f'; type="{self.address.media_type}"'
        elif self.address.header is not None:
            hint = f'; title="{self.address.header}"'
        host = "" if self.address.host is None else f"//{self.address.host}{values[PORT]}"
        return f'<{host}{self._target_path(values)}>; rel="successor-version"{hint}'

    def problem_members(self, link_values: Mapping[str, str]) -> dict[str, object]:
        values = {name: _uri_text(value) for name, value in link_values.items()}
        found: dict[str, object] = {"version": str(self.version), "path": self._target_path(values)}
        if self.address.host is not None:
            found["host"] = self.address.host + values.get(PORT, "")
        if self.address.header is not None:
            found["header"] = self.address.header
        return found

    def _target_path(self, values: Mapping[str, str]) -> str:
        if self.operation_key in values:
            return values[self.operation_key]
        return self.with_query(self.path.fill({**values, "version": str(self.version)}))

    def with_query(self, path: str) -> str:
        if self.address.query is None:
            return path
        return f"{path}{'&' if '?' in path else '?'}{self.address.query}"


@dataclass(frozen=True, slots=True)
class EndpointLifecycle(VersionLifecycle):
    """The lifecycle of a version with the links of one endpoint; created by `at_endpoint`.

    Attributes:
        successors: The successors of the version that have the endpoint, in the order of
            `successor_versions`.
        fields: The header fields of every response, except for exempt clients.
        exempt_fields: The header fields that replace `fields` for each exempt client, by client.
        link_parts: The parts of a successor link that depends on the request: literal strings that
            alternate with keys of link values. Empty if the link is constant.
    """

    successors: tuple[Successor, ...] = ()
    fields: FieldLines = ()
    exempt_fields: Mapping[str, FieldLines] = field(default_factory=dict)
    link_parts: tuple[str, ...] = ()
    operations_differ: bool = False
    has_port: bool = False
    is_constant: bool = False

    def link_values(self, captures: Mapping[str, str], head: RequestHead) -> Mapping[str, str]:
        if not self.has_port:
            return captures
        port = _PORT.search(head.authority)
        return {**captures, PORT: port[0] if port else ""}

    def fields_for(self, client: str, link_values: Mapping[str, str]) -> FieldLines:
        fields = self.exempt_fields.get(client, self.fields) if self.exempt_fields else self.fields
        if not self.link_parts:
            return fields
        parts = list(self.link_parts)
        for index in range(1, len(parts), 2):
            parts[index] = _uri_text(link_values[parts[index]])
        return (*fields, (b"Link", "".join(parts).encode()))

    def refusal(
        self, context: RequestContext, link_values: Mapping[str, str], offered: tuple[str, ...]
    ) -> Fault:
        successor = self.available_successor(context, link_values)
        advice = f"use {' or '.join(offered)}" if offered else "no version is left"
        if successor is not None:
            advice = f"use version {successor['version']}"
        day = formatdate(self.sunset, usegmt=True)[5:16]
        return Fault(
            FaultCode.VERSION_RETIRED,
            f"Version {self.version} was retired on {day}; {advice}.",
            supported=offered,
            successor=successor,
        )

    def available_successor(
        self, context: RequestContext, link_values: Mapping[str, str]
    ) -> dict[str, object] | None:
        for successor in self.successors:
            if successor.lifecycle is None or not successor.lifecycle.ended(context):
                return successor.problem_members(link_values)
        return None


def lifecycle_at(
    version: Version,
    lifecycles: Mapping[Version, VersionLifecycle],
    path: Template,
    readers: tuple[Reader, ...],
    convert: Callable[[Version, Version], Conversion | None],
    own: Collection[Version],
) -> EndpointLifecycle:
    """Return the lifecycle of a version with the links of one endpoint.

    `convert` returns None if the operations have the same paths in both versions.
    """
    successors = []
    for later in lifecycles[version].successor_versions:
        if later in own:
            # A link names the version only once, by the reader that a URI can express best.
            addresses = (reader.address(later) for reader in readers)
            address = min(addresses, key=lambda one: one.rank, default=IN_PATH)
            request, response = convert(version, later), convert(later, version)
            both = None if request is None or response is None else (request, response)
            successors.append(Successor(later, lifecycles.get(later), path, address, both))
    return lifecycles[version].at_endpoint(tuple(successors))


def _uri_text(raw: str) -> str:
    return raw if _VALID_URI.match(raw) else quote(raw, safe=_URI, errors="surrogateescape")


def compile_exemptions(
    exemptions: Sequence[SunsetExemption | BrownoutExemption],
    naming: ClientNaming | None,
    mistakes: Mistakes,
    sunset: float = -inf,
) -> dict[str, float]:
    """Return the end of each exemption by client name, in seconds since 1970.

    It is a mistake if an exemption does not end after the sunset, or if clients have no names.
    """
    if exemptions and naming is None:
        mistakes.add("clients have no names; add clients: { by: [ ... ] } at the top")
    ends: dict[str, float] = {}
    for index, exemption in enumerate(exemptions):
        until = inf
        if exemption.until is not None:
            found = mistakes.attempt(partial(parse_date, exemption.until), index, "until")
            until = inf if found is None else found
        if until <= sunset:
            mistakes.add(
                f"is not after the sunset, {format_date(sunset)}; use a later date, or remove it",
                index,
                "until",
            )
        client = exemption.client if naming is None else naming.known_as(exemption.client)
        if client in ends:
            mistakes.add("has two exemptions; remove one of them", index, "client")
        ends[client] = until
    return ends
