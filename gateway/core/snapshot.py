"""The Snapshot: everything compiled from one configuration. It never changes.

A reload builds a new one and swaps one reference; a request keeps the one that it began with.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from gateway.core import headers
from gateway.core.clients import ClientNaming, Network, trusts
from gateway.core.conversion.chain import Conversion, VersionLink
from gateway.core.cutover.cutover import Cutover
from gateway.core.cutover.shadow import Shadow
from gateway.core.headers import FieldLines
from gateway.core.lifecycle.brownout import Brownout
from gateway.core.lifecycle.lifecycle import Lifecycle, Terms
from gateway.core.overrides import VersionKey
from gateway.core.routing import Router, Template
from gateway.core.service import Service
from gateway.core.versions.rewriting import VersionRewrite
from gateway.core.versions.selection import Selector
from gateway.core.versions.version import Version

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class SchemaCheck:
    """How many of the converted answers are validated, and by what.

    Attributes:
        percent: of them, above 0 and up to 100.
        schema: where the OpenAPI document is: a URL, or the path of a file.
    """

    percent: float
    schema: str


@dataclass(frozen=True, slots=True)
class Route:
    """How one version is served at one endpoint.

    Attributes:
        version: the version that clients get; None where the API has no versions.
        service_version: the version that the service speaks; another one where a conversion
            stands between.
        service: who answers.
        upstream_path: the path to ask for there; None keeps the client's, byte for byte.
        request: from the client's version to the service's; None where they are the same.
        response: the way back.
        request_rewrite: names the service's version in what it is asked; None where nothing would.
        response_rewrite: names the client's version in what the service answers, likewise.
        content_type: what a JSON answer to who names this version is called here; None keeps the
            service's word.
        fields: header fields that every answer carries, refusals and faults included.
        overrules: names of the service's fields, in lower case, that the gateway's stand for.
        lifecycle: of the version, if it has any.
        brownout: of the version, if it has any.
        shadow: what is asked as well, in the background.
        cutover: which way some clients go instead.
        check: whether converted answers are validated; None validates none.
    """

    version: Version | None
    service_version: Version | None
    service: Service
    upstream_path: Template | None = None
    request: Conversion | None = None
    response: Conversion | None = None
    request_rewrite: VersionRewrite | None = None
    response_rewrite: VersionRewrite | None = None
    content_type: str | None = None
    fields: FieldLines = ()
    overrules: frozenset[bytes] = frozenset()
    lifecycle: Lifecycle | None = None
    brownout: Brownout | None = None
    shadow: "Alternative[Shadow] | None" = None
    cutover: "Alternative[Cutover] | None" = None
    check: SchemaCheck | None = None


@dataclass(frozen=True, slots=True)
class Alternative(Generic[R]):
    """Another way to serve a version, and the rule that says when it is taken."""

    rule: R
    route: Route


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A public path of an API.

    Attributes:
        api: the name of the API.
        template: the path.
        methods: what may be asked, HEAD included where it follows; None leaves it to the service.
            OPTIONS is answered by the gateway unless it is among them.
        selector: how a version is chosen; None where the API has no versions.
        routes: by version; the only key is None where the API has no versions.
        vary: the header fields that the choice depends on.
        max_body: bytes of a request body; None where the limit for all of them holds.
        retired: the lifecycles of the versions that nobody serves any more.
    """

    api: str
    template: Template
    methods: tuple[str, ...] | None
    selector: Selector | None
    routes: Mapping[Version | None, Route]
    vary: tuple[str, ...]
    max_body: int | None = None
    retired: Mapping[Version | None, Lifecycle] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Api:
    """A family of endpoints and what its versions promise.

    Attributes:
        name: of the API.
        versions: by label, the oldest first; empty where the API has none.
        served: for each version, the version whose service answers.
        links: the declared changes, by the older of the two versions.
        schemas: where the OpenAPI document of a version is: a URL, or the path of a file; a
            version that is served via another one may have none.
        endpoints: its public paths.
    """

    name: str
    versions: Mapping[str, Version]
    served: Mapping[Version, Version]
    links: Mapping[Version, Sequence[VersionLink]]
    schemas: Mapping[Version, str]
    endpoints: tuple[Endpoint, ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what clients may cost.

    Attributes:
        convert: bytes of a body that is converted, before and after its content coding is undone.
        body: bytes of a request body; None for no bound. An endpoint may have its own.
        target: bytes of a request target.
        header_bytes: bytes of all header fields of a request.
        header_fields: how many header fields a request may have.
        header_seconds: from the first byte of a request to the end of its header fields.
        idle_seconds: how long a connection is kept without a request.
        stall_seconds: how long a client may neither send nor take any of a body.
        connections: how many clients may be connected to one worker at a time.
        tunnels: how many of them may have switched to another protocol.
        tunnel_seconds: how long nothing may pass through such a connection.
    """

    convert: int = 16 * 1024 * 1024
    body: int | None = None
    target: int = 8 * 1024
    header_bytes: int = 64 * 1024
    header_fields: int = 128
    header_seconds: float = 10.0
    # Longer than clients and load balancers usually keep theirs.
    idle_seconds: float = 75.0
    stall_seconds: float = 60.0
    connections: int = 10_000
    tunnels: int = 1000
    tunnel_seconds: float = 3600.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One configuration, compiled.

    `state` is the path of the file that outlives the process; `withheld` are the names of request
    fields that are never passed on as they came, in lower case.
    """

    router: Router[Endpoint]
    services: Mapping[str, Service]
    limits: Limits = Limits()
    trusted_proxies: tuple[Network, ...] = ()
    workers: int | None = None
    naming: ClientNaming | None = None
    state: str | None = None
    cutovers: Mapping[VersionKey, Cutover] = field(default_factory=dict)
    apis: tuple[Api, ...] = ()
    withheld: frozenset[bytes] = headers.withheld()

    def trusts(self, peer: str) -> bool:
        """Whether a peer is a trusted proxy, whose forwarding fields are believed.

        Args:
            peer: its address; empty where it is not known, as after a reset.
        """
        return trusts(self.trusted_proxies, peer)

    def routes(self, key: VersionKey) -> Iterator[Route]:
        """Yield how a version is served, endpoint by endpoint."""
        api, version = key
        for endpoint in self.router:
            for label, route in endpoint.routes.items():
                if endpoint.api == api and str(label) == version:
                    yield route

    def terms(self, key: VersionKey) -> Terms | None:
        """Return how a version ends, whether it is still served or not; None if it does not."""
        api, version = key
        for endpoint in self.router:
            lifecycles = [route.lifecycle for route in endpoint.routes.values()]
            for lifecycle in (*lifecycles, *endpoint.retired.values()):
                if endpoint.api == api and lifecycle and str(lifecycle.terms.version) == version:
                    return lifecycle.terms
        return None

    @property
    def labels(self) -> dict[str, list[str]]:
        """The labels of the versions of each API, those included that are no longer served."""
        found: dict[str, dict[str, None]] = {}
        for endpoint in self.router:
            labels = found.setdefault(endpoint.api, {})
            labels |= {str(label): None for label in (*endpoint.retired, *endpoint.routes) if label}
        return {api: list(labels) for api, labels in found.items()}

    @property
    def summary(self) -> str:
        """Say in a few words what is in it."""
        return f"{len(self.services)} services, {len(self.router)} endpoints"
