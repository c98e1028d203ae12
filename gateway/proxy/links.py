"""Maps URLs in responses and requests to the version and host of the receiver.

Location, Content-Location, Link (RFC 8288), Refresh and the paths in Set-Cookie (RFC 6265) are
mapped in every response. URLs in bodies are mapped if a conversion has a `link` change.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from gateway.base import headers
from gateway.base.errors import Fault, FaultCode, FaultError, method_not_allowed
from gateway.base.headers import FieldLines, HeaderFields
from gateway.base.path_templates import has_dot_segment
from gateway.http.client.public_origin import public_origin
from gateway.http.cookie import map_cookie
from gateway.http.upstream.upstream import failure
from gateway.proxy.exchange import Exchange
from gateway.routing.links import (
    LinkMapper,
    MappedLink,
    map_link_field,
    map_refresh,
    split_url,
)
from gateway.routing.options import client_methods, methods_elsewhere
from gateway.routing.plan import Plan
from gateway.routing.snapshot import with_port
from gateway.versions.version import Version

_NAMES = {
    b"location": "Location",
    b"content-location": "Content-Location",
    b"link": "Link",
    b"refresh": "Refresh",
    b"set-cookie": "Set-Cookie",
}
_FIELD_MAPPERS = {"Link": map_link_field, "Refresh": map_refresh}
_ITS_PORT = re.compile(r"(?::[0-9]*)?\Z")
# Non-empty path segments (RFC 3986, section 3.3), without commas, which separate prefixes.
_PREFIX = re.compile(r"(?:/[A-Za-z0-9\-._~%!$&'()*+;=:@]+)+\Z")
_SUCCESSOR = re.compile(rb"<(//[^/>]*|)(/[^>]*)>(?=; rel=\"successor-version\")")
_LINK_PORT = re.compile(rb":[0-9]*\Z")
_ANY_METHOD = "*"  # the wildcard in Access-Control-Allow-Methods (Fetch, section 3.2.3)
# The maximum number of links in the header fields of one response, including the parameters of
# links and cookies. Each takes some microseconds, during which other requests wait.
_MOST_PARTS = 2000


def map_response_fields(exchange: Exchange, plan: Plan, fields: HeaderFields) -> HeaderFields:
    """Map URLs in header fields for the client; raises FaultError if there are too many links."""
    mapper = link_mapper(exchange, plan)
    mapped: HeaderFields = []
    parts = 0
    for line in fields:
        place = _NAMES.get(line[0].lower())
        if place is not None:
            parts += line[1].count(b"<") + line[1].count(b";")
            if parts > _MOST_PARTS:
                what = f"the links in its header fields have more than {_MOST_PARTS} parts"
                raise failure(FaultCode.UPSTREAM_PROTOCOL, exchange.target or "", what)
            line = _mapped_line(line, place, mapper, partial(_noting_field, exchange))
        mapped.append(line)
    return mapped


def inform(exchange: Exchange, plan: Plan, status: int, fields: HeaderFields) -> None:
    """Forward an interim response, such as 103; raises FaultError if there are too many links."""
    exchange.inform(status, map_response_fields(exchange, plan, fields))


def map_offline_fields(
    mapper: LinkMapper | None,
    fields: HeaderFields,
    status: int | None,
    link: Callable[[str], str],
) -> HeaderFields:
    """Map the URLs in the header fields of an offline message, as for a client.

    `link` leaves a URL unchanged that it has already mapped, and that a conversion has then moved
    from the body to a Link field.
    """
    if mapper is None or status is None:
        return fields
    places = [_NAMES.get(line[0].lower()) for line in fields]
    return [
        line
        if place is None
        else _mapped_line(
            line, place, mapper, lambda place, way: link if place == "Link" else _text_of(way)
        )
        for line, place in zip(fields, places, strict=True)
    ]


def offline_link(mapper: LinkMapper | None, status: int | None) -> Callable[[str], str]:
    if mapper is None:
        return str
    return _once(_text_of(mapper.to_service if status is None else mapper.to_client), set())


def _text_of(map_link: Callable[[str], MappedLink]) -> Callable[[str], str]:
    return lambda link: map_link(link).text


def _mapped_line(
    line: tuple[bytes, bytes],
    place: str,
    mapper: LinkMapper,
    noting: Callable[[str, Callable[[str], MappedLink]], Callable[[str], str]],
) -> tuple[bytes, bytes]:
    value = line[1].decode("latin-1")
    if place == "Set-Cookie":
        written = map_cookie(value, noting(place, mapper.cookie_path), mapper.keeps_domain)
    else:
        link, map_field = noting(place, mapper.to_client), _FIELD_MAPPERS.get(place)
        written = link(value) if map_field is None else map_field(value, link)
    return line if written == value else (line[0], written.encode("latin-1"))


def map_allow(exchange: Exchange, plan: Plan, fields: HeaderFields) -> HeaderFields:
    """Convert the methods in Allow, of a 405 or of a response to OPTIONS, if operations differ."""
    if plan.operation_path is None:
        return fields
    for name in (b"allow", b"access-control-allow-methods"):
        fields = _mapped_methods(exchange, plan, fields, name)
    return fields


def _mapped_methods(
    exchange: Exchange, plan: Plan, fields: HeaderFields, field: bytes
) -> HeaderFields:
    route, operation_path = plan.route, plan.operation_path
    given = [line for line in fields if line[0].lower() == field]
    allowed = [part.strip() for _, value in given for part in value.decode("latin-1").split(",")]
    if operation_path is None or route.request is None or route.response is None:
        return fields
    if not given or _ANY_METHOD in allowed:
        return fields
    conversions = route.request, route.response
    path, query = asked(exchange, plan)
    methods = client_methods(conversions, path, query, operation_path.path, allowed)
    others = [line for line in fields if line not in given]
    return [*others, (given[0][0], ", ".join(methods).encode())]


def check_method(exchange: Exchange, plan: Plan) -> None:
    """Raise FaultError (405) if the service returned 404 for a method that the version lacks.

    If all operations of a path are at other paths of the service, the service has nothing at this
    path. The service then cannot know that the path exists in the client's version.
    """
    route, operation_path = plan.route, plan.operation_path
    if operation_path is None or route.request is None or route.response is None:
        return
    if any(operation_path.operations) or exchange.method == "OPTIONS":
        return
    path, query = asked(exchange, plan)
    methods = methods_elsewhere((route.request, route.response), path, query, operation_path.path)
    if methods:
        raise FaultError(method_not_allowed(", ".join(plan.endpoint.allowed(methods))))


def asked(exchange: Exchange, plan: Plan) -> tuple[Callable[[Version], str], str | None]:
    """Return the client's query, after a function for the path of the request to a service.

    The function returns the path for a service that implements the given version.
    """
    captures = link_mapper(exchange, plan).captures
    template = plan.route.upstream_path or plan.endpoint.template

    def path(version: Version) -> str:
        return template.fill({**captures, "version": str(version)})

    return path, exchange.message.path.partition("?")[2] or None


def response_links(exchange: Exchange, mapper: LinkMapper) -> Callable[[str], str]:
    if exchange.mapped_links is None:
        exchange.mapped_links = set[str]()
    return _once(_noting(exchange, "body", mapper.to_client), exchange.mapped_links)


def request_links(exchange: Exchange, mapper: LinkMapper) -> Callable[[str], str]:
    return _once(_noting(exchange, "request", mapper.to_service), set())


def public_link(exchange: Exchange, plan: Plan, link: str) -> str:
    """Map a URL with the address of a service to the client's URL; keep other strings."""
    scheme, authority, *_ = split_url(link)
    if scheme is None or not authority:
        return link
    owner = exchange.snapshot.links.owner(with_port(authority.lower(), scheme.lower()))
    return link if owner is None else link_mapper(exchange, plan).to_client(link).text


def _noting_field(
    exchange: Exchange, place: str, map_link: Callable[[str], MappedLink]
) -> Callable[[str], str]:
    """Return a function that maps URLs in a header field.

    A conversion may have moved a URL from the body to a Link field. Such a URL is already mapped,
    and stays unchanged.
    """
    noting, made = _noting(exchange, place, map_link), exchange.mapped_links
    if not made or place != "Link":
        return noting
    return lambda link: link if link in made else noting(link)


def _noting(
    exchange: Exchange, place: str, map_link: Callable[[str], MappedLink]
) -> Callable[[str], str]:
    def mapped(link: str) -> str:
        text, fits = map_link(link)
        if not fits:
            counts = exchange.unmapped_links or {}
            exchange.unmapped_links = {**counts, place: counts.get(place, 0) + 1}
            exchange.unmapped_link = exchange.unmapped_link or link
        return text

    return mapped


def _once(map_link: Callable[[str], str], made: set[str]) -> Callable[[str], str]:
    """Return a function that maps each URL in a body only once, and adds the result to `made`.

    Several version steps may have a `link` change for the same field. After the first of these
    steps, the URL is already mapped.
    """
    known: dict[str, str] = {}

    def mapped(link: str) -> str:
        if link in made:
            return link
        if link not in known:
            known[link] = map_link(link)
            made.add(known[link])
        return known[link]

    return mapped


def link_mapper(exchange: Exchange, plan: Plan) -> LinkMapper:
    path, captures = _path(exchange)
    public = public_prefix(exchange)
    scheme, authority = public_origin(exchange)
    return LinkMapper(
        exchange.snapshot.links,
        plan.endpoint,
        plan.route,
        plan.chosen_by,
        captures,
        path,
        plan.target.partition("?")[0],
        exchange.authority,
        scheme,
        authority,
        public,
        _sent_prefix(plan, public, captures),
    )


def _path(exchange: Exchange) -> tuple[str, Mapping[str, str]]:
    target = exchange.message.path
    if not target.startswith("/"):  # the absolute form (RFC 9112, section 3.2.2)
        target = "/" + target.partition("://")[2].partition("/")[2]
    path = target.partition("?")[0]
    found = exchange.snapshot.router.find(path)
    return path, {} if found is None else found[1]


def _sent_prefix(plan: Plan, public: str, captures: Mapping[str, str]) -> str:
    """Return the X-Forwarded-Prefix for the service: the prefix that proxies or gateway removed."""
    stripped = plan.route.stripped
    if stripped is None:
        return public
    if not stripped.captures:
        return public + stripped.text
    # Do not send a prefix that would make the service create links to other hosts.
    own = _plain(stripped.fill(captures))
    return f"{public}{own}" if own else ""


def public_prefix(exchange: Exchange) -> str:
    """Return the prefix that trusted proxies removed from the client's path; empty if unknown."""
    if not exchange.snapshot.trusted_proxies or not exchange.snapshot.trusts(exchange.peer):
        return ""
    given = exchange.message.headers.getall("X-Forwarded-Prefix", ())
    parts = (part.strip(" \t").rstrip("/") for value in given for part in value.split(","))
    return _plain("".join(parts))


def prefix_line(exchange: Exchange, plan: Plan) -> bytes:
    """Return the X-Forwarded-Prefix line for the head, or b"" if no prefix was removed."""
    stripped = plan.route.stripped
    captures = _path(exchange)[1] if stripped is not None and stripped.captures else {}
    prefix = _sent_prefix(plan, public_prefix(exchange), captures)
    return headers.PREFIX_LINE + prefix.encode() if prefix else b""


def public_successor(exchange: Exchange, fields: FieldLines) -> FieldLines:
    """Map the successor links in the lifecycle header fields to URLs that the client can request.

    A trusted proxy may have removed a path prefix, or may use another port. The links then need
    this prefix and port.
    """
    if not exchange.snapshot.trusts(exchange.peer):
        return fields
    prefix, port = public_prefix(exchange).encode(), _port(exchange).encode()

    def public(match: re.Match[bytes]) -> bytes:
        host = match[1] and _LINK_PORT.sub(b"", match[1]) + port
        return b"<%b%b%b>" % (host, prefix, match[2])

    return tuple(
        (name, _SUCCESSOR.sub(public, value)) if name == b"Link" else (name, value)
        for name, value in fields
    )


def public_fault(exchange: Exchange, fault: Fault) -> Fault:
    successor = fault.successor
    if successor is None:
        return fault
    own: dict[str, object] = {"path": f"{public_prefix(exchange)}{successor['path']}"}
    if "host" in successor:
        own["host"] = _ITS_PORT.sub("", str(successor["host"])) + _port(exchange)
    return replace(fault, successor={**successor, **own})


def _port(exchange: Exchange) -> str:
    """Return the port that the client used, with a colon; empty for the default port."""
    port = _ITS_PORT.search(public_origin(exchange)[1])
    return "" if port is None else port[0]


def _plain(prefix: str) -> str:
    """Return the prefix if it is safe in links, or an empty string.

    A safe prefix cannot lead to another host or to a parent folder.
    """
    return prefix if _PREFIX.match(prefix) and not has_dot_segment(prefix) else ""
