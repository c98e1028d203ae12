"""The snapshot: everything that is compiled from one configuration; it is immutable.

A reload builds a new snapshot and swaps one reference. A request uses one snapshot to its end.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from gateway.access.admin import OPEN_ACCESS, AdminAccess
from gateway.access.clients import ClientNaming
from gateway.base import headers
from gateway.base.addresses import Network, trusts
from gateway.base.headers import FieldFates, FieldLines
from gateway.base.notify import NO_NOTIFY, Notify
from gateway.base.overrides import VersionKey
from gateway.base.path_templates import Router, Template
from gateway.conversion.chain import Conversion
from gateway.conversion.entity_tags import EntityTags
from gateway.conversion.links import LinkDirectory, LinkForm
from gateway.conversion.version_step import VersionLink
from gateway.http.limits import DEFAULT_LIMITS, Limits
from gateway.http.trace_parent import TRACE_FIELDS, Tracing
from gateway.http.upstream.service import Service
from gateway.lifecycle.brownout import VersionBrownout
from gateway.lifecycle.lifecycle import EndpointLifecycle, VersionLifecycle
from gateway.rollout.cutover import VersionCutover
from gateway.rollout.shadow import VersionShadow
from gateway.routing.cors import CorsRules
from gateway.routing.errors import ErrorTemplate
from gateway.versions.reader import VersionRewrite
from gateway.versions.selection import Selector
from gateway.versions.version import Version


class SchemaCheck(NamedTuple):
    """The validation of responses against an OpenAPI document.

    Attributes:
        percent: The percentage of converted responses to validate, at most 100.
        schema: The URL or the file path of the OpenAPI document.
        gated: Whether samples of all responses are validated, for a gate of the cutover.
    """

    percent: float
    schema: str
    gated: bool = False


@dataclass(frozen=True, slots=True)
class Route:
    """How one version is served at one endpoint: by which service and with which conversions.

    Attributes:
        version: The version that clients get; None where the API has no versions.
        service_version: The version that the service implements; it differs from `version` where
            a conversion lies between them.
        service: The service that answers the requests.
        upstream_path: The path of requests to the service; None keeps the client's path, byte for
            byte.
        stripped: The beginning of the client's path, for its version, that the path of requests to
            the service lacks; None where it lacks nothing.
        request: The conversion of requests from the client's version to the service's; None where
            the two versions are the same.
        response: The conversion of responses from the service's version to the client's; None
            where the two versions are the same.
        request_rewrite: The rewrite of version values in requests to the service's version; None
            where the service reads none.
        unnamed_rewrite: The same for requests that name no version; it adds one.
        response_rewrite: The rewrite of version values in responses to the client's version; None
            where responses carry no version value to rewrite.
        substitutes: The routes by which other services answer operations that a version on the way
            lacks, by the service and the version that has the operation.
        content_type: The Content-Type of JSON responses to requests that name this version; None
            keeps the Content-Type of the service.
        error_type: The Content-Type of JSON errors of the service; None keeps it.
        link_form: The form of links to clients; None keeps that of the service.
        tags: The translation of entity tags; None where responses are not converted.
        fields: The header fields of every response, refusals and faults included.
        overrules: The names of the service's header fields, in lower case, that the gateway
            replaces by its own.
        lifecycle: The lifecycle of the version; None where it has none.
        brownout: The brownouts of the version; None where it has none.
        shadow: The route to which requests are repeated in the background; None repeats none.
        cutover: The route to which some clients are moved; None moves none.
        check: The validation of responses; None validates none.
        steady_fields: `fields`, and those of the lifecycle if they do not depend on the request.
        refuses_from: The time before which neither the sunset nor a brownout refuses requests, in
            seconds since 1970; infinite where nothing ever does.
        passed: Which header fields of responses without a conversion are forwarded.
        prefix_line: The line of `stripped` for the service, behind the end of another line; empty
            where it depends on the request.
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
    tags: EntityTags | None = None
    fields: FieldLines = ()
    overrules: frozenset[bytes] = frozenset()
    lifecycle: EndpointLifecycle | None = None
    brownout: VersionBrownout | None = None
    shadow: "ShadowAlternative | None" = None
    cutover: "CutoverAlternative | None" = None
    check: SchemaCheck | None = None
    steady_fields: FieldLines = field(init=False, repr=False, compare=False)
    refuses_from: float = field(init=False, repr=False, compare=False)
    passed: FieldFates = field(init=False, repr=False, compare=False)
    prefix_line: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        line, stripped = b"", self.stripped
        if stripped is not None and not stripped.captures:
            line = headers.PREFIX_LINE + stripped.text.encode()
        object.__setattr__(self, "prefix_line", line)
        fields, begins = self.fields, inf
        if self.lifecycle is not None:
            begins = self.lifecycle.sunset
            if self.lifecycle.is_constant:
                fields += self.lifecycle.fields
        if self.brownout is not None:
            begins = min([begins, *(window.begins for window in self.brownout.windows)])
        object.__setattr__(self, "steady_fields", fields)
        object.__setattr__(self, "refuses_from", begins)
        object.__setattr__(self, "passed", headers.fates(self.overrules | headers.REPLACED))


@dataclass(frozen=True, slots=True)
class ShadowAlternative:
    """Another route for a version, and the rule that decides which requests are repeated there."""

    rule: VersionShadow
    route: Route


@dataclass(frozen=True, slots=True)
class CutoverAlternative:
    """Another route for a version, and the rule that decides which clients are moved there."""

    rule: VersionCutover
    route: Route


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A public path of an API.

    Attributes:
        api: The name of the API.
        template: The template of the path.
        methods: The allowed methods, with HEAD where GET implies it; None leaves the decision to
            the service. The gateway answers OPTIONS itself unless the methods include it.
        selector: The selector of the version; None where the API has no versions.
        routes: The route of each version; the only key is None where the API has no versions.
        vary: The names of the header fields that the choice of the version depends on.
        max_body: The maximum of bytes of a request body; None applies the limit of the gateway.
        retired: The lifecycles of the versions that have no route any more.
        errors: The shapes of the gateway's own errors, of the versions that have such a shape.
        media_types: How bodies are read where a conversion applies, by media range in lower case,
            or by NO_TYPE: as `json` or `json_lines`, or not at all (`pass`).
        client_vary: Replaces `vary` for the versions whose responses depend on the client.
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

    def vary_of(self, version: Version | None) -> tuple[str, ...]:
        """Return the names of the request header fields that responses of a version depend on.

        The name `*` stands for the address of the client.
        """
        return self.client_vary.get(version, self.vary)

    def allowed(self, methods: Iterable[str]) -> list[str]:
        """Return those of a version's methods that are allowed here (RFC 9110, section 10.2.1).

        Where the endpoint names its methods, the gateway answers OPTIONS itself.
        """
        if self.methods is None:
            return [*methods]
        return [*dict.fromkeys((*(one for one in methods if one in self.methods), "OPTIONS"))]


class Api(NamedTuple):
    """An API: its endpoints, its versions and the declared changes between them.

    Attributes:
        name: The name of the API.
        versions: The versions by label, the oldest first; empty where the API has no versions.
        served: For each version, the version whose service answers its requests.
        links: The declared changes between adjacent versions, by the older of the two.
        schemas: The URL or the file path of the OpenAPI document of each version; a version that
            is served via another one may have none.
        endpoints: The public paths of the API.
    """

    name: str
    versions: Mapping[str, Version]
    served: Mapping[Version, Version]
    links: Mapping[Version, Sequence[VersionLink]]
    schemas: Mapping[Version, str]
    endpoints: tuple[Endpoint, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One compiled configuration.

    Attributes:
        router: The map from paths to endpoints.
        services: The services by name.
        limits: The limits on the resources that clients may use.
        trusted_proxies: The networks of the proxies whose forwarding fields the gateway trusts.
        workers: The number of worker processes; None where it is not configured.
        naming: The rules by which clients are named; None where none are configured.
        state: The path of the file that keeps state across restarts, or the URL of the database;
            None keeps none.
        cutovers: The cutovers by version.
        apis: The APIs.
        compress: Whether converted responses are compressed as clients accept.
        withheld: The names of the request header fields that are never forwarded as received, in
            lower case.
        read: The names of the request header fields from which the gateway reads versions and
            clients, in lower case.
        tracing: Which requests are traced, and where their spans go; None traces none.
        cors: Which scripts in browsers may read the gateway's own answers; None lets none.
        links: Finds the endpoints of the links that services write.
        forget_after: The seconds after which a lost replica of a fleet is forgotten.
        admin: Who may ask the admin port.
        notify: The receivers of messages about events.
        brownouts: The versions that have brownouts.
        passed: Which header fields of requests without a conversion are forwarded.
        passed_in_trace: The same where the gateway writes the fields of a trace.
        derived: What reports compute from this configuration once, by a name of their own.
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
    withheld: frozenset[bytes] = headers.withheld()
    read: frozenset[bytes] = frozenset()
    forget_after: float = 604_800.0
    admin: AdminAccess = OPEN_ACCESS
    tracing: Tracing | None = None
    notify: Notify = NO_NOTIFY
    cors: "CorsRules | None" = None
    links: LinkDirectory = field(init=False, repr=False, compare=False)
    brownouts: frozenset[VersionKey] = field(init=False, repr=False, compare=False)
    passed: FieldFates = field(init=False, repr=False, compare=False)
    passed_in_trace: FieldFates = field(init=False, repr=False, compare=False)
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
        object.__setattr__(self, "derived", {})
        object.__setattr__(self, "brownouts", browned)
        object.__setattr__(self, "links", LinkDirectory(self.router, self.services))
        object.__setattr__(self, "passed", headers.fates(self.withheld))
        traced = headers.fates(self.withheld | TRACE_FIELDS)
        object.__setattr__(self, "passed_in_trace", traced)

    def trusts(self, peer: str) -> bool:
        """Return whether an address, empty where it is unknown, is that of a trusted proxy."""
        return trusts(self.trusted_proxies, peer)

    def routes(self, key: VersionKey) -> Iterator[Route]:
        """Return the routes of a version, endpoint by endpoint.

        The label of an API without versions is empty.
        """
        return iter(self._routes.get(key, ()))

    def terms(self, key: VersionKey) -> VersionLifecycle | None:
        """Return the lifecycle of a version, served or retired; None if it has no lifecycle."""
        return self._terms.get(key)

    @property
    def labels(self) -> dict[str, list[str]]:
        """The labels of the versions of each API, retired versions included."""
        found: dict[str, dict[str, None]] = {}
        for endpoint in self.router:
            labels = found.setdefault(endpoint.api, {})
            labels |= {str(label): None for label in (*endpoint.retired, *endpoint.routes) if label}
        return {api: list(labels) for api, labels in found.items()}

    @property
    def summary(self) -> str:
        """The numbers of services and endpoints, as a short text for the log."""
        counts = {"service": len(self.services), "endpoint": len(self.router)}
        return ", ".join(f"{count} {noun}{'s' * (count != 1)}" for noun, count in counts.items())
