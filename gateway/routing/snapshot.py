"""The snapshot: everything that is compiled from one configuration. It is immutable."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from math import inf
from typing import NamedTuple

from gateway.access.access import AccessRule
from gateway.access.admin import OPEN_ACCESS, AdminAccess
from gateway.access.clients import ClientNaming
from gateway.access.rate_limits import VersionLimits
from gateway.base import headers
from gateway.base.access_log import DEFAULT_ACCESS_LOG, AccessLog
from gateway.base.addresses import Network, trusts
from gateway.base.files import ConfigFiles
from gateway.base.headers import FieldLines, FieldNames
from gateway.base.notify import NO_NOTIFY, Notify
from gateway.base.overrides import VersionKey
from gateway.base.path_templates import Router, Segment, Template, parse_template
from gateway.base.request import HeaderLookup
from gateway.conversion.additional import DocumentedVersion, OperationShapes
from gateway.conversion.chain import Conversion
from gateway.conversion.version_step import VersionLink
from gateway.http.client.listener import Listener
from gateway.http.limits import DEFAULT_LIMITS, Limits
from gateway.http.trace_parent import TRACE_FIELDS, Tracing
from gateway.http.upstream.service import CLIENT_HOST, TARGET_HOST, Service
from gateway.lifecycle.brownout import VersionBrownout
from gateway.lifecycle.lifecycle import EndpointLifecycle, VersionLifecycle
from gateway.rollout.cutover import VersionCutover
from gateway.rollout.shadow import VersionShadow
from gateway.routing.cors import CorsRules
from gateway.routing.errors import ErrorTemplate
from gateway.versions.reader import VersionRewrite
from gateway.versions.selection import Selector
from gateway.versions.version import Version

_REST = Segment("", "rest", tail=True)


class SchemaCheck(NamedTuple):
    """The validation of responses against an OpenAPI document.

    Attributes:
        percent: The percentage of converted responses to validate, at most 100.
        gated: Whether a sample of all responses is validated, for a gate of the cutover.
    """

    percent: float
    schema: str
    gated: bool = False


class LinkForm(StrEnum):
    ABSOLUTE = "absolute"
    RELATIVE = "relative"


@dataclass(frozen=True, slots=True)
class Route:
    """The service and the conversions of one version at one endpoint.

    Attributes:
        version: The version that clients get; None if the API has no versions.
        service_version: The version that the service implements. It differs from `version` if
            messages are converted.
        upstream_path: The path of requests to the service; None keeps the client's path, byte for
            byte.
        stripped: The prefix of the client's path that the path to the service lacks; None without
            such a prefix.
        request_rewrite: Replaces the client's version with the service's version in requests; None
            if the service does not read the version.
        unnamed_rewrite: Adds the service's version to requests that name no version; None if the
            service does not read the version.
        substitutes: The routes to other services that provide operations which a version lacks, by
            the name of the service and the version that has the operation.
        content_type: The Content-Type of JSON responses to requests that name this version; None
            keeps the Content-Type of the service.
        error_type: The Content-Type of JSON errors of the service; None keeps the Content-Type of
            the service.
        tag_key: The key of entity tags; None if responses are not converted.
        for_media_types: Returns the route for the header fields of a request, if conversions
            depend on the media types that a request names; otherwise None.
        overridden_fields: The lower-case names of the service's header fields that the gateway
            replaces with its own fields.
        documents: The documents of the older versions between the client's and the service's
            version; None if no conversion has `additional`.
        documented: Whether `schema` names the OpenAPI document of the version.
        written: The document of the service's version, if writes are merged into its documents.
        by_operation: The same route with the filters of these documents, by the operation of a
            request in each document; filled on first use.
        constant_fields: `fields`, and the fields of the lifecycle if they do not depend on the
            request.
        refuses_from: The time before which neither the sunset nor a brownout refuses requests, in
            seconds since 1970; infinity without a sunset or brownout.
        passed: Decides which header fields of unconverted responses are forwarded.
        prefix_line: The X-Forwarded-Prefix line for the service, which contains `stripped` and is
            appended to other header lines; empty if the prefix depends on the request.
    """

    version: Version | None
    service_version: Version | None
    service: Service
    upstream_path: Template | None = None
    stripped: Template | None = field(default=None, kw_only=True)
    request: Conversion | None = None
    response: Conversion | None = None
    request_rewrite: VersionRewrite | None = None
    unnamed_rewrite: VersionRewrite | None = None
    response_rewrite: VersionRewrite | None = None
    substitutes: "Mapping[tuple[str, Version], Route]" = field(default_factory=dict)
    content_type: str | None = None
    error_type: str | None = None
    link_form: LinkForm | None = None
    tag_key: bytes | None = None
    fields: FieldLines = ()
    overridden_fields: frozenset[bytes] = frozenset()
    lifecycle: EndpointLifecycle | None = None
    brownout: VersionBrownout | None = None
    shadow: "ShadowAlternative | None" = None
    cutover: "CutoverAlternative | None" = None
    check: SchemaCheck | None = None
    access: AccessRule | None = None
    for_media_types: "Callable[[HeaderLookup], Route] | None" = field(default=None, compare=False)
    documents: "Mapping[Version, DocumentedVersion] | None" = None
    documented: bool = False
    written: "DocumentedVersion | None" = None
    constant_fields: FieldLines = field(init=False, repr=False, compare=False)
    refuses_from: float = field(init=False, repr=False, compare=False)
    by_operation: "dict[tuple[OperationShapes, ...], Route]" = field(
        init=False, repr=False, compare=False
    )
    passed: FieldNames = field(init=False, repr=False, compare=False)
    prefix_line: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        line, stripped = b"", self.stripped
        if stripped is not None and not stripped.captures:
            line = headers.PREFIX_LINE + stripped.text.encode()
        object.__setattr__(self, "prefix_line", line)
        object.__setattr__(self, "by_operation", {})
        fields, begins = self.fields, inf
        if self.lifecycle is not None:
            begins = self.lifecycle.sunset
            if self.lifecycle.is_constant:
                fields += self.lifecycle.fields
        if self.brownout is not None:
            begins = min([begins, *(window.begins for window in self.brownout.windows)])
        object.__setattr__(self, "constant_fields", fields)
        object.__setattr__(self, "refuses_from", begins)
        object.__setattr__(
            self, "passed", headers.header_filter(self.overridden_fields | headers.REPLACED)
        )


@dataclass(frozen=True, slots=True)
class ShadowAlternative:
    """A second route of a version, and the rule that decides which requests are repeated there."""

    rule: VersionShadow
    route: Route


@dataclass(frozen=True, slots=True)
class CutoverAlternative:
    """A second route of a version, and the rule that decides which clients are moved there."""

    rule: VersionCutover
    route: Route


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A public path of an API.

    Attributes:
        methods: The allowed methods, with HEAD if GET implies it; None leaves the decision to the
            service. The gateway responds to OPTIONS itself unless the methods include it.
        max_body: The maximum size of a request body in bytes; None applies the gateway's limit.
        media_types: The format of converted bodies (`json`, `json_lines`, `yaml`, or `pass` without
            conversion), by media range in lower case or NO_TYPE.
        client_vary: Replaces `vary` for versions whose responses depend on the client.
        cors: Which scripts in browsers may use the API; None if services handle CORS.
    """

    api: str
    template: Template
    methods: tuple[str, ...] | None
    selector: Selector | None
    routes: Mapping[Version | None, Route]
    vary: tuple[str, ...]
    max_body: int | None = None
    retired: Mapping[Version | None, EndpointLifecycle] = field(default_factory=dict)
    errors: "Mapping[Version | None, ErrorTemplate]" = field(default_factory=dict)
    media_types: Mapping[str, str] = field(default_factory=dict)
    client_vary: Mapping[Version | None, tuple[str, ...]] = field(default_factory=dict)
    cors: CorsRules | None = None

    def vary_of(self, version: Version | None) -> tuple[str, ...]:
        """Return the names of the request header fields on which responses of a version depend.

        `*` means that responses depend on something other than header fields, such as the client's
        address.
        """
        return self.client_vary.get(version, self.vary)

    @property
    def converted(self) -> tuple[tuple[Version, Version], ...]:
        """The versions of clients and of the services that serve them, where they differ."""
        routes = list(self.routes.values())
        routes += [one.cutover.route for one in routes if one.cutover is not None]
        pairs = [(one.version, one.service_version) for one in routes]
        given = ((one, other) for one, other in pairs if one is not None and other is not None)
        return tuple(dict.fromkeys(pair for pair in given if pair[0] != pair[1]))

    def allowed(self, methods: Iterable[str]) -> list[str]:
        """Return the methods that the endpoint allows, for Allow (RFC 9110, section 10.2.1).

        If the endpoint lists its methods, OPTIONS is added, since the gateway responds to it.
        """
        if self.methods is None:
            return [*methods]
        return [*dict.fromkeys((*(one for one in methods if one in self.methods), "OPTIONS"))]


class _ServedPath(NamedTuple):
    endpoint: Endpoint
    route: Route
    path: Template


class LinkDirectory:
    """Finds endpoints by the paths and authorities of services, to map links.

    The maps are built when the first link needs them, since most services write few links or none.
    """

    __slots__ = ("_maps", "_owners", "_public", "_reached", "router", "services")

    def __init__(self, router: Router[Endpoint], services: Mapping[str, Service]) -> None:
        self.router = router
        self.services = services
        self._owners: dict[str, str] = {}
        self._reached: dict[str, list[Endpoint]] = {}
        self._maps: dict[object, Router[_ServedPath]] = {}
        self._public: dict[object, Router[Template]] = {}

    def owner(self, authority: str) -> Service | None:
        """Return the service whose target or `host` is an authority (lower case, with port)."""
        if not self._owners:
            for service in self.services.values():
                for own in authorities_of(service):
                    self._owners.setdefault(with_port(own.lower()), service.name)
        name = self._owners.get(authority)
        return None if name is None else self.services[name]

    def find(
        self, service: Service, endpoint: Endpoint, route: Route, path: str
    ) -> tuple[_ServedPath, Mapping[str, str]] | None:
        """Return the endpoint and route of a service's path with its raw captures, or None."""
        mechanisms = _mechanisms_of(endpoint)
        key = service.name, endpoint.api, route.version, route.service_version, mechanisms
        known = self._maps.get(key)
        if known is None:
            known = self._maps[key] = Router(
                (served.path, served)
                for served in self._served(service, endpoint, route, mechanisms)
            )
        found = known.find(path)
        if found is None:
            return None
        served, captures = found
        own = served_path(endpoint, route)
        if route.service.name == service.name and own.shape == served.path.shape:
            # Several endpoints may match. The endpoint of the client's request takes precedence.
            return _ServedPath(endpoint, route, own), _renamed(captures, own)
        return served, captures

    def public(
        self,
        endpoint: Endpoint,
        version: Version,
        path: str,
        captures: Mapping[str, str],
    ) -> str | None:
        """Return the public path for a path of a version's service; None without a public path.

        Args:
            endpoint: The endpoint of the client's request. Other endpoints of its API with the same
                mechanisms are also searched.
        """
        mechanisms = _mechanisms_of(endpoint)
        key = endpoint.api, version, mechanisms
        known = self._public.get(key)
        if known is None:
            shapes: dict[object, tuple[Template, Template]] = {}
            for other in self.router:
                route = other.routes.get(version)
                if other.api == endpoint.api and route and _mechanisms_of(other) == mechanisms:
                    asked = _filled((route.upstream_path or other.template).text, str(version))
                    shapes.setdefault(asked.shape, (asked, other.template))
            known = self._public[key] = Router((asked, to) for asked, to in shapes.values())
        found = known.find(path)
        if found is None:
            return None
        template, taken = found
        filled = {**captures, **taken, "version": str(version)}
        if any(name not in filled for name in template.captures):
            return None
        return template.fill(filled)

    def _served(
        self,
        service: Service,
        endpoint: Endpoint,
        route: Route,
        mechanisms: frozenset[str],
    ) -> Iterator[_ServedPath]:
        """Yield the endpoints and routes to which paths of a service belong, for one client.

        If several paths have the same shape, only the path with the best rank is yielded. The
        client's API comes first, and within it the endpoints with the same mechanisms.
        """
        ranked: list[tuple[int, _ServedPath]] = []
        for other in self._endpoints(service):
            same = other.api == endpoint.api
            taken = _route_of(other, service, route, same_api=same)
            if taken is not None:
                rank = 0 if same and _mechanisms_of(other) == mechanisms else 1 if same else 2
                ranked.append((rank, _ServedPath(other, taken, served_path(other, taken))))
        ranked.sort(key=lambda pair: pair[0])
        seen: set[object] = set()
        for _, served in ranked:
            if served.path.shape not in seen:
                seen.add(served.path.shape)
                yield served

    def _endpoints(self, service: Service) -> Iterable[Endpoint]:
        if not self._reached:
            for endpoint in self.router:
                names = {route.service.name for route in _all_routes(endpoint.routes.values())}
                for name in names:
                    self._reached.setdefault(name, []).append(endpoint)
        return self._reached.get(service.name, ())


def served_path(endpoint: Endpoint, route: Route) -> Template:
    template = route.upstream_path or endpoint.template
    if "version" not in template.captures:
        return template
    return _filled(template.text, str(route.service_version))


@lru_cache(maxsize=1024)
def _filled(template: str, version: str) -> Template:
    return parse_template(template.replace("{version}", version))


def _mechanisms_of(endpoint: Endpoint) -> frozenset[str]:
    readers = () if endpoint.selector is None else endpoint.selector.readers
    return frozenset(reader.mechanism for reader in readers)


def with_port(authority: str, scheme: str = "http") -> str:
    host, colon, port = authority.rpartition(":")
    if colon and not port.endswith("]"):
        return authority if port else host + _PORTS[scheme]
    return authority + _PORTS[scheme]


_PORTS = {"http": ":80", "https": ":443"}


def authorities_of(service: Service) -> Iterator[str]:
    for target in service.targets:
        yield target.authority
    if service.host not in (CLIENT_HOST, TARGET_HOST):
        yield service.host


def _all_routes(routes: Iterable[Route]) -> Iterator[Route]:
    for route in routes:
        yield route
        yield from route.substitutes.values()
        for other in (route.cutover, route.shadow):
            if other is not None:
                yield other.route
                yield from other.route.substitutes.values()


def _route_of(
    endpoint: Endpoint, service: Service, route: Route, *, same_api: bool
) -> Route | None:
    named = [one for one in (endpoint.routes.get(route.version),) if one is not None]
    for one in _all_routes(named):
        if one.service.name == service.name and (
            not same_api or one.service_version == route.service_version
        ):
            return one
    if same_api:
        return None
    # Another API has other versions, so this takes the version that the service itself implements.
    return next(
        one
        for one in endpoint.routes.values()
        if one.service.name == service.name and one.version == one.service_version
    )


def _renamed(captures: Mapping[str, str], template: Template) -> Mapping[str, str]:
    return dict(zip(template.captures, captures.values(), strict=True))


class Api(NamedTuple):
    """An API: its endpoints, its versions and the declared changes between them.

    Attributes:
        versions: The versions by label, the oldest first; empty if the API has no versions.
        served: For each version, the version whose service serves its requests.
        schemas: The URL or file path of each version's OpenAPI document. A version that is served
            via another version may have no document.
        documents: The loaded documents that conversions with `additional` need.
    """

    name: str
    versions: Mapping[str, Version]
    served: Mapping[Version, Version]
    links: Mapping[Version, Sequence[VersionLink]]
    schemas: Mapping[Version, str]
    endpoints: tuple[Endpoint, ...]
    errors: ErrorTemplate | None = None
    documents: Mapping[Version, DocumentedVersion] = {}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One compiled configuration.

    Attributes:
        state: The path of the state file, or the URL of the database; None does not store state
            across restarts.
        withheld: The lower-case names of the request header fields that are never forwarded as
            received.
        read: The lower-case names of the request header fields from which the gateway reads
            versions and client names.
        cors: Which scripts in browsers may read the gateway's own responses, unless the API has its
            own `cors`; None allows no script.
        listen: The addresses for client connections; empty uses the address in the environment.
        forget_after: The time after which a lost replica of a fleet is removed, in seconds.
        passed: Decides which header fields of unconverted requests are forwarded.
    """

    router: Router[Endpoint]
    services: Mapping[str, Service]
    limits: Limits = DEFAULT_LIMITS
    trusted_proxies: tuple[Network, ...] = ()
    workers: int | None = None
    naming: ClientNaming | None = None
    state: str | None = None
    cutovers: Mapping[VersionKey, VersionCutover] = field(default_factory=dict)
    apis: tuple[Api, ...] = ()
    compress: bool = True
    withheld: frozenset[bytes] = headers.unforwarded_names()
    read: frozenset[bytes] = frozenset()
    forget_after: float = 604_800.0
    admin: AdminAccess = OPEN_ACCESS
    access_log: AccessLog = DEFAULT_ACCESS_LOG
    tracing: Tracing | None = None
    notify: Notify = NO_NOTIFY
    cors: CorsRules | None = None
    rate_limits: VersionLimits | None = None
    listen: tuple[Listener, ...] = ()
    files: ConfigFiles = field(default_factory=ConfigFiles, compare=False, repr=False)
    links: LinkDirectory = field(init=False, repr=False, compare=False)
    brownouts: frozenset[VersionKey] = field(init=False, repr=False, compare=False)
    tolerates_unfit: bool = field(init=False, repr=False, compare=False)
    passed: FieldNames = field(init=False, repr=False, compare=False)
    passed_in_trace: FieldNames = field(init=False, repr=False, compare=False)
    errors: Router[ErrorTemplate | None] | None = field(init=False, repr=False, compare=False)
    derived: dict[str, object] = field(init=False, repr=False, compare=False)
    _routes: dict[VersionKey, list[Route]] = field(init=False, repr=False, compare=False)
    _terms: dict[VersionKey, VersionLifecycle] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        routes: dict[VersionKey, list[Route]] = {}
        terms: dict[VersionKey, VersionLifecycle] = {}
        for endpoint in self.router:
            for label, route in endpoint.routes.items():
                key = endpoint.api, "" if label is None else str(label)
                routes.setdefault(key, []).append(route)
            lifecycles = [route.lifecycle for route in endpoint.routes.values()]
            for lifecycle in (*lifecycles, *endpoint.retired.values()):
                if lifecycle:
                    key = endpoint.api, str(lifecycle.version)
                    terms.setdefault(key, lifecycle)
        browned = frozenset(
            key for key, found in routes.items() if any(route.brownout for route in found)
        )
        object.__setattr__(self, "_routes", routes)
        object.__setattr__(self, "_terms", terms)
        links = [link for api in self.apis for some in api.links.values() for link in some]
        tolerates = any(link.tolerates or link.additional for link in links)
        object.__setattr__(self, "tolerates_unfit", tolerates)
        object.__setattr__(self, "derived", {})
        object.__setattr__(self, "errors", _errors_by_prefix(self.apis))
        object.__setattr__(self, "brownouts", browned)
        object.__setattr__(self, "links", LinkDirectory(self.router, self.services))
        object.__setattr__(self, "passed", headers.header_filter(self.withheld))
        traced = headers.header_filter(self.withheld | TRACE_FIELDS)
        object.__setattr__(self, "passed_in_trace", traced)

    def errors_at(self, path: str) -> ErrorTemplate | None:
        """Return the format of errors for a path without endpoint; None for problem details.

        It is that of the only API, or of the API whose endpoints share most segments with the
        beginning of the path. If several APIs share them, errors are problem details.
        """
        if self.errors is None:
            return None
        if len(self.apis) == 1:
            return self.apis[0].errors
        found = self.errors.find(path)
        return None if found is None else found[0]

    def trusts(self, peer: str) -> bool:
        return trusts(self.trusted_proxies, peer)

    def routes(self, key: VersionKey) -> Iterator[Route]:
        """Return the routes of a version, one for each endpoint.

        For an API without versions, the label in the key is empty.
        """
        return iter(self._routes.get(key, ()))

    def terms(self, key: VersionKey) -> VersionLifecycle | None:
        return self._terms.get(key)

    @property
    def labels(self) -> dict[str, list[str]]:
        found: dict[str, dict[str, None]] = {}
        for endpoint in self.router:
            labels = found.setdefault(endpoint.api, {})
            labels |= {str(label): None for label in (*endpoint.retired, *endpoint.routes) if label}
        return {api: list(labels) for api, labels in found.items()}

    @property
    def summary(self) -> str:
        counts = {"service": len(self.services), "endpoint": len(self.router)}
        return ", ".join(f"{count} {noun}{'s' * (count != 1)}" for noun, count in counts.items())


def _errors_by_prefix(apis: Iterable[Api]) -> Router[ErrorTemplate | None] | None:
    """Return the errors of the APIs by the first segments of their endpoints; None without any."""
    apis = list(apis)
    if all(api.errors is None for api in apis):
        return None
    found: dict[object, tuple[Template, set[str], ErrorTemplate | None]] = {}
    for api in apis:
        for endpoint in api.endpoints:
            segments = endpoint.template.segments
            for count in range(1, len(segments) + 1):
                first = segments[:count]
                whole = () if first[-1].tail else ((*first, _REST),)
                for each in (first, *whole):
                    names = tuple(part.capture for part in each if part.capture is not None)
                    template = Template("".join(f"/{part.prefix}" for part in each), each, names)
                    known = found.setdefault(template.shape, (template, set(), api.errors))
                    known[1].add(api.name)
    return Router(
        (template, errors if len(names) == 1 else None)
        for template, names, errors in found.values()
    )
