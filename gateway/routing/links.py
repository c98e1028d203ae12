"""Maps links: URLs in bodies and header fields, between the paths of services and of clients."""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from gateway.base.urls import browser_authority, without_authority
from gateway.conversion.chain import Conversion
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.operation_path import find_link
from gateway.conversion.parameter_change import LINK
from gateway.conversion.version_step import path_moved
from gateway.http.cookie import covers_only_services, path_above
from gateway.http.upstream.service import CLIENT_HOST, TARGET_HOST
from gateway.routing.snapshot import (
    Endpoint,
    LinkDirectory,
    LinkForm,
    Route,
    authorities_of,
    served_path,
    with_port,
)
from gateway.versions.selection import UNNAMED

# RFC 3986, appendix B.
_URL = re.compile(
    r"(?:([A-Za-z][A-Za-z0-9+.\-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(#.*)?", re.DOTALL
)


def _in_form(link: str, form: LinkForm, scheme: str, authority: str, base: str) -> str:
    """Write a link to the client's own host in the given form. Other links are unchanged."""
    link_scheme, link_authority, path, query, fragment = split_url(link)
    if link_authority is None:
        if form is LinkForm.RELATIVE or link_scheme is not None or (not path and query is None):
            return link
        whole = resolved(base, path)
        return f"{scheme}://{authority}{whole}{_query_and_fragment(query, fragment)}"
    if form is LinkForm.ABSOLUTE or link_authority.lower() != authority.lower():
        return link
    return without_authority(f"{path or '/'}{_query_and_fragment(query, fragment)}")


def split_url(link: str) -> tuple[str | None, str | None, str, str | None, str]:
    """Split a link into scheme, authority, path, query and fragment.

    A missing scheme, authority or query is None. The fragment includes its `#`.
    """
    match = _URL.match(link)
    assert match is not None  # the pattern matches every string
    scheme, authority, path, query, fragment = match.groups()
    return scheme, authority, path, query, fragment or ""


def _query_and_fragment(query: str | None, fragment: str) -> str:
    return fragment if query is None else f"?{query}{fragment}"


def resolved(base: str, path: str, *, absolute: bool = False) -> str:
    """Resolve the path of a reference, and remove dot segments (RFC 3986, section 5.2)."""
    if not path:
        return base if not absolute else "/"
    if not path.startswith("/"):
        path = f"{base.rpartition('/')[0]}/{path}"
    if "/." not in path:
        return path
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


_HTTP = frozenset({"http", "https"})
# Matches the target of a link, its anchor, or any other quoted string, in which neither may be
# found (RFC 8288, section 3). A search takes linear time even if a closing bracket or quote is
# missing: a URL has no angle bracket, and an open quote extends to the end of the field.
_LINK = re.compile(
    r"<([^<>]*)>|(;[ \t]*[Aa][Nn][Cc][Hh][Oo][Rr][ \t]*=[ \t]*)\"([^\"\\]*)\""
    r"|\"(?:[^\"\\]|\\.)*+(?:\"|\\?\Z)",
    re.DOTALL,
)
# Seconds, then a URL, which may be quoted.
_REFRESH = re.compile(
    r"([0-9.]+[ \t]*[;,][ \t]*(?:url[ \t]*=[ \t]*)?[\"']?)([^\"']+)", re.IGNORECASE
)
_PORT = re.compile(r":[0-9]*\Z")
# A query never contains this character, since it begins a fragment.
_NO_LABEL = "#"


class MappedLink(NamedTuple):
    """A mapped link.

    `fits` is false if the link belongs neither to an endpoint nor to another host.
    """

    text: str
    fits: bool = True


class LinkMapper(NamedTuple):
    """Maps the links in one request and in its response.

    Attributes:
        chosen_by: The mechanism or rule that chose the version; None if the API has no versions.
        path: The raw path of the client's request, as the gateway received it.
        authority: The host and port in the request that the gateway received.
        public_authority: The host and port that the client used. They differ from `authority` if a
            trusted proxy forwards requests under another host name.
        public_prefix: The path prefix that a trusted proxy removed from the client's path.
        sent_prefix: The X-Forwarded-Prefix that the service receives: the prefixes that proxies and
            the gateway removed.
    """

    directory: LinkDirectory
    endpoint: Endpoint
    route: Route
    chosen_by: str | None
    captures: Mapping[str, str]
    path: str
    target: str
    authority: str
    public_scheme: str
    public_authority: str
    public_prefix: str = ""
    sent_prefix: str = ""

    def to_client(self, link: str) -> MappedLink:
        text, fits = self._mapped_back(link)
        form = self.route.link_form
        if form is not None and fits:
            origin = self.public_scheme, self.public_authority
            text = _in_form(text, form, *origin, self.public_prefix + self.path)
        return MappedLink(text, fits)

    def _mapped_back(self, link: str) -> MappedLink:
        scheme, authority, path, query, fragment = split_url(link)
        unmapped = _unmapped(link, scheme, authority)
        if unmapped is not None:
            return unmapped
        service, prefix, foreign = self.route.service, "", False
        if authority is not None:
            port = with_port(authority.lower(), (scheme or self.public_scheme).lower())
            if port not in self._own(scheme):
                owner = self.directory.owner(port)
                if owner is None:
                    return MappedLink(link)
                service, foreign = owner, True
            prefix = self._prefix(scheme, authority)
        elif not path and query is None:
            return MappedLink(link)  # only a fragment: a location in the same document
        whole = resolved("" if foreign else self.target, path, absolute=authority is not None)
        if self.sent_prefix and whole.startswith(self.sent_prefix):  # the service has added it
            whole = _without(self.sent_prefix, whole)
        at: tuple[Endpoint, Route] | None
        moved = _Moved(whole, None)
        if service.name == self.route.service.name:
            moved = _moved(self.route, self.route.response, self.route.request, whole, query)
        found = self.directory.find(service, self.endpoint, self.route, moved.path)
        if found is not None:
            served, captures = found
            at, endpoint, route = served[:2], served.endpoint, served.route
            filled = {**self.captures, **captures, "version": str(route.version)}
            missing = any(name not in filled for name in endpoint.template.captures)
            mapped = None if missing else endpoint.template.fill(filled)
        else:
            mapped, at = self._public(moved.path)
        if mapped is None:
            return MappedLink(
                f"{prefix}{path}{_query_and_fragment(query, fragment)}" if prefix else link, False
            )
        try:
            public_query = query if at is None else self._client_query(*at, query, moved.query)
        except ConversionError:
            mapped = self.public_prefix + mapped
            return MappedLink(_joined(prefix, mapped, query, fragment), False)
        relative = authority is None and not path.startswith("/")
        if relative and public_query == query and resolved(self.path, path) == mapped:
            return MappedLink(link)
        mapped = self.public_prefix + mapped
        return MappedLink(_joined(prefix, mapped, public_query, fragment))

    def cookie_path(self, path: str) -> MappedLink:
        """Map the Path of a service's cookie to the path at which the client needs the cookie."""
        public_path = path
        if self.sent_prefix and path.startswith(self.sent_prefix):
            path = _without(self.sent_prefix, path)
        prefix = path.rstrip("/")
        if not prefix:
            return MappedLink(public_path)
        # Operations may have different paths in the two versions. Then the cookie's path is a
        # prefix of the endpoint's path, or a prefix that all operations below it share in the
        # client's version.
        template = self.route.upstream_path or self.endpoint.template
        own = template.fill({**self.captures, "version": str(self.route.version)})
        asked = served_path(self.endpoint, self.route).fill(self.captures)
        back = self.route.response
        moved = prefix if back is None else path_moved(back.version_steps, prefix)
        for served, above in ((self.target, prefix), (asked, prefix), (own, moved)):
            public = path_above(self.path, served, above)
            if public is not None:
                end = "" if public == "/" or above != prefix else path[len(prefix) :]
                return MappedLink(f"{self.public_prefix}{public}{end}")
        text, fits = self._mapped_back(prefix)
        if not fits:
            return MappedLink(public_path, False)
        return MappedLink(f"{text.partition('?')[0]}{path[len(prefix) :]}")

    def keeps_domain(self, domain: str) -> bool:
        """Return whether the Domain of a cookie is valid for the client, not only for services."""
        own = {*self._own(None), *(name.lower() for name in authorities_of(self.route.service))}
        hosts = [with_port(name).rpartition(":")[0] for name in own]
        public = with_port(self.public_authority.lower()).rpartition(":")[0]
        return not covers_only_services(domain, public, hosts)

    def to_service(self, link: str) -> MappedLink:
        """Map a link of the client to the service's form. A relative link is unchanged."""
        scheme, authority, path, query, fragment = split_url(link)
        unmapped = _unmapped(link, scheme, authority)
        if unmapped is not None:
            return unmapped
        prefix = ""
        if authority is not None:
            port = with_port(authority.lower(), (scheme or self.public_scheme).lower())
            if port not in self._own(scheme):
                return MappedLink(link)
            if self.route.link_form is not LinkForm.ABSOLUTE:
                prefix = self._service_prefix(scheme, authority)
        elif not path.startswith("/"):
            return MappedLink(link)
        path = _without(self.public_prefix, path) if self.public_prefix else path
        found = self.directory.router.find(path)
        if found is None:
            return MappedLink(link, False)
        endpoint, captures = found
        route = self.route
        if endpoint.template is not self.endpoint.template:
            other = endpoint.routes.get(self.route.version)
            if other is None or other.service.name != self.route.service.name:
                return MappedLink(link, False)
            route = other
        if route.upstream_path is not None:
            path = route.upstream_path.fill({**captures, "version": str(route.service_version)})
        sent = _service_link(route, path, query)
        if sent is None:
            return MappedLink(link, False)
        path, query = sent
        if route.request_rewrite is not None:
            query = route.request_rewrite.query(query)
        return MappedLink(_joined(prefix, path, query, fragment))

    def _own(self, scheme: str | None) -> set[str]:
        scheme = (scheme or self.public_scheme).lower()
        names = {self.authority, self.public_authority}
        if self.public_authority != self.authority:  # the service may omit the port
            names.add(_PORT.sub("", self.public_authority))
        if self.route.request_rewrite is not None:
            names |= {self.route.request_rewrite.authority(name) for name in names}
        return {with_port(name.lower(), scheme) for name in names}

    def _prefix(self, scheme: str | None, authority: str) -> str:
        colon = "" if scheme is None else f"{scheme}:"
        if authority.lower() == self.public_authority.lower():
            return f"{colon}//{authority}"
        colon = "" if scheme is None else f"{self.public_scheme}:"
        return f"{colon}//{self.public_authority}"

    def _service_prefix(self, scheme: str | None, authority: str) -> str:
        policy = self.route.service.host
        colon = "" if scheme is None else f"{scheme}:"
        if policy == CLIENT_HOST:
            rewrite = self.route.request_rewrite
            return f"{colon}//{authority if rewrite is None else rewrite.authority(authority)}"
        own = self.route.service.targets[0].authority if policy == TARGET_HOST else policy
        return f"{'' if scheme is None else 'http:'}//{own}"

    def _public(self, path: str) -> tuple[str | None, tuple[Endpoint, Route] | None]:
        found = self.directory.router.find(path)
        if found is None:
            return None, None
        endpoint, captures = found
        if endpoint.api != self.endpoint.api:
            return path, None
        if "version" in captures:
            if endpoint.selector is None or captures["version"] not in endpoint.selector.supported:
                return None, None
            path = endpoint.template.fill({**captures, "version": str(self.route.version)})
        return path, (endpoint, endpoint.routes.get(self.route.version, self.route))

    def _client_query(
        self,
        endpoint: Endpoint,
        route: Route,
        query: str | None,
        moved: tuple[str | None] | None,
    ) -> str | None:
        if moved is not None:
            (query,) = moved
        elif route.response is not None:
            query = route.response.query("GET", query, LINK)
        if route.response_rewrite is not None:
            query = route.response_rewrite.query(query)
        if endpoint.selector is None:
            return query
        version, missing = route.version, None
        assert version is not None  # an endpoint with a selector has versions
        for reader in endpoint.selector.readers:
            address = reader.address(version)
            if address.query is None:
                if reader.reads_path or address.host or reader.mechanism is self.chosen_by:
                    return query  # the version is named elsewhere
            elif not query or reader.rewrite_query(query, _NO_LABEL) == query:
                missing = address.query
        if missing is None or self.chosen_by in UNNAMED:
            return query
        return f"{query}&{missing}" if query else missing


def _unmapped(link: str, scheme: str | None, authority: str | None) -> MappedLink | None:
    if browser_authority(link) != authority:
        return MappedLink(link, False)  # browsers and the mapper read different hosts in this link
    if scheme is not None and (authority is None or scheme.lower() not in _HTTP):
        return MappedLink(link)
    return None


def _without(prefix: str, path: str) -> str:
    rest = path.removeprefix(prefix)
    return path if rest and not rest.startswith("/") else rest or "/"


def _joined(prefix: str, path: str, query: str | None, fragment: str) -> str:
    rest = f"{path}{_query_and_fragment(query, fragment)}"
    return f"{prefix}{rest}" if prefix else without_authority(rest)


class _Moved(NamedTuple):
    """The path of a link in the other version.

    Attributes:
        path: The path; empty if the other version lacks the operation.
        query: The converted query in a tuple, or None if the query is not converted yet.
    """

    path: str
    query: tuple[str | None] | None


def _moved(
    route: Route,
    conversion: Conversion | None,
    back: Conversion | None,
    path: str,
    query: str | None,
) -> _Moved:
    if conversion is None or back is None or not conversion.has_operations:
        return _Moved(path, None)
    try:
        found = find_link(conversion, back, lambda _: path, query)
    except ConversionError:
        found = None
    if found is None:
        return _Moved("", None)
    assert route.service_version is not None  # a conversion has two versions
    return _Moved(found.path_of(route.service_version), (found.query,))


def _service_link(route: Route, path: str, query: str | None) -> tuple[str, str | None] | None:
    moved = _moved(route, route.request, route.response, path, query)
    if not moved.path:
        return None
    if moved.query is not None:
        return moved.path, moved.query[0]
    try:
        return moved.path, query if route.request is None else route.request.query(
            "GET", query, LINK
        )
    except ConversionError:
        return None


def map_refresh(value: str, link: Callable[[str], str]) -> str:
    """Map the URL in the value of a Refresh field, such as `5; url=/done` (WHATWG HTML)."""
    match = _REFRESH.match(value)
    return value if match is None else f"{match[1]}{link(match[2])}{value[match.end() :]}"


def map_link_field(value: str, link: Callable[[str], str]) -> str:
    """Map the targets and anchors in the value of a Link field (RFC 8288)."""

    def mapped(match: re.Match[str]) -> str:
        target, before, anchor = match.groups()
        if target is not None:
            return f"<{link(target)}>"
        return match[0] if anchor is None else f'{before}"{link(anchor)}"'

    return _LINK.sub(mapped, value)
