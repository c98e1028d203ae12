"""The root model of gateway.yaml, which compiles to the Snapshot."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import Field

from gateway.access.access import AnyAccess, compile_access
from gateway.access.admin import OPEN_ACCESS, Admin
from gateway.access.clients import ClientNaming, Clients, address_source
from gateway.access.rate_limits import RateLimit, compile_limits
from gateway.base import headers
from gateway.base.access_log import DEFAULT_ACCESS_LOG, AccessLog
from gateway.base.addresses import Network, parse_network
from gateway.base.files import ConfigFiles
from gateway.base.mistakes import Location, Mistakes, place
from gateway.base.model import FieldName, Name, NonEmptyText, NumberText, SectionModel
from gateway.base.notify import NO_NOTIFY, Notify
from gateway.base.overrides import VersionKey
from gateway.base.path_templates import Router
from gateway.http.client.listener import Listen, Listener
from gateway.http.limits import Limits
from gateway.http.upstream.service import ServiceModel
from gateway.observe.tracing import NO_TRACING, TracingModel
from gateway.rollout.cutover import VersionCutover
from gateway.routing.api import ApiModel
from gateway.routing.cors import Cors
from gateway.routing.snapshot import Api, Endpoint, Snapshot
from gateway.store.state_location import Fleet, parse_state
from gateway.versions.version_choice import ChoiceDefaults


class Config(SectionModel):
    """The configuration of a version gateway, gateway.yaml."""

    include: tuple[NonEmptyText, ...] = ()
    """Further files with `services` and `apis`, as paths relative to this file or as patterns such
    as teams/*.yaml. By default, there are none."""
    services: dict[Name, ServiceModel]
    """The backends to which requests are forwarded, by name."""
    apis: dict[Name, ApiModel]
    """The APIs that the gateway serves, by name."""
    workers: Annotated[int, Field(ge=1, le=256), NumberText] | None = None
    """The number of worker processes. Without it, one process runs for each CPU core. A change
    takes effect at a restart."""
    listen: tuple[Listen, ...] = ()
    """The addresses on which clients connect. Without it, clients connect to GATEWAY_HOST and
    GATEWAY_PORT over plain HTTP."""
    limits: Limits = Limits()
    """The limits on what clients send and on how long they take."""
    state: str | None = None
    """The store that preserves usage, overrides, cutovers and the audit log across restarts. It is
    a file (its path, or sqlite:///PATH) or a database that several gateways share
    (postgresql://USER:PASSWORD@HOST:PORT/DATABASE). Without it, or if it is empty, this data is
    stored in memory only. A change takes effect at a restart."""
    fleet: Fleet = Fleet()
    """The settings for gateways that share their state in PostgreSQL."""
    admin: Admin | None = None
    """The access to the admin port. Without it, everybody who reaches the port may read, and
    commands on the same machine may operate."""
    notify: Notify | None = None
    """The receivers of notifications, for example about a rollback. Without it, no notifications
    are sent."""
    clients: Clients | None = None
    """The sources of client names. Without it, clients have no names."""
    access: AnyAccess | None = None
    """The clients that may use the APIs without their own `access`, or `open` for every client.
    Without it, every client may use them, and a credential only names its client."""
    default_version: str | None = None
    """The version for requests that name no version, in each API without its own default_version.
    Without it, such requests are refused."""
    version_header: FieldName | None = None
    """The response header that names the served version, in each API without its own
    version_header. Without it, responses have no such header."""
    cors: Cors | None = None
    """The browser scripts that may read the gateway's own responses, such as refusals, for each API
    without its own `cors`. Without it, scripts get a network error instead. For responses of
    services, the services themselves handle CORS."""
    rate_limits: tuple[RateLimit, ...] = ()
    """The limits on how many requests clients send in a time. A request must be within all limits
    that apply to it. By default, requests are not limited."""
    compress: bool = True
    """Whether converted responses are compressed with a coding that the client accepts: zstd, gzip
    or br. The default is true."""
    access_log: AccessLog = DEFAULT_ACCESS_LOG
    """The selection of requests for the log, and the file of their lines. Without it, every request
    has a line on standard output."""
    tracing: TracingModel | None = None
    """The requests to trace, and the collector for their spans, by OpenTelemetry. Without it, no
    request is traced, unless OTEL_EXPORTER_OTLP_ENDPOINT is set."""
    trusted_proxies: tuple[str, ...] = ()
    """The networks (CIDR) of trusted proxies. Their Forwarded and X-Forwarded-* fields are used and
    forwarded. By default, no proxy is trusted."""

    def compile(
        self, mistakes: Mistakes, now: float, files: ConfigFiles, environment: Mapping[str, str]
    ) -> Snapshot:
        """Return the Snapshot of the configuration, which must not be used if there are mistakes.

        Args:
            now: the time in seconds since 1970, which determines the versions that have ended. A
                configuration that is valid now is valid at any later time.
        """
        with_versions = {
            name for api in self.apis.values() for name in api.services_told_versions()
        }
        uses = Counter(
            version.service
            for api in self.apis.values()
            for version in (api.versions or {}).values()
        )
        services = {
            name: one.compile(
                name, files, mistakes, is_told=name in with_versions or uses[name] > 1
            )
            for name, one in self.services.items()
        }
        trusted = mistakes.attempt_each(parse_network, self.trusted_proxies, "trusted_proxies")
        if self.notify is not None:
            self.notify.check(mistakes)
        naming, client_fields = None, tuple[str, ...]()
        if self.clients is not None:
            naming = self.clients.compile(trusted, files, mistakes)
            client_fields = self.clients.vary
        defaults = ChoiceDefaults(self.default_version, self.version_header, client_fields, naming)
        compile_access(self.access, "", naming, mistakes)
        if naming is not None:
            self._check_credentials(naming, mistakes)
        apis: list[Api] = []
        endpoints: dict[Location, Endpoint] = {}
        for name, model in self.apis.items():
            compiled = model.compile(name, services, defaults, now, mistakes, self.access)
            if compiled is not None:
                apis.append(compiled[0])
                endpoints |= compiled[1]
        cutovers = _cutovers(endpoints)
        labels = {api.name: api.versions for api in apis}
        if not self.state:
            _warn_of_lost_cutovers(cutovers, mistakes)
        read = _request_fields(endpoints.values()) | ({*client_fields} - {"*"})
        return Snapshot(
            _router(endpoints, mistakes),
            services,
            self.limits,
            trusted,
            self.workers,
            naming=naming or _naming_by_address(cutovers, trusted, mistakes),
            state=parse_state(self.state, mistakes),
            cutovers=cutovers,
            apis=tuple(apis),
            compress=self.compress,
            withheld=headers.unforwarded_names(read),
            read=frozenset(name.lower().encode() for name in read),
            forget_after=self.fleet.forget_after_seconds,
            admin=OPEN_ACCESS if self.admin is None else self.admin.compile(files, mistakes),
            tracing=(self.tracing or NO_TRACING).compile(environment, mistakes),
            access_log=self.access_log.located(files, mistakes.below("access_log")),
            notify=self.notify or NO_NOTIFY,
            cors=None if self.cors is None else self.cors.compile(mistakes.below("cors")),
            rate_limits=compile_limits(self.rate_limits, labels, naming, mistakes),
            listen=self._listeners(files, mistakes),
            files=files,
        )

    def _check_credentials(self, naming: ClientNaming, mistakes: Mistakes) -> None:
        verifies = any(
            each.tls is not None and each.tls.client_certificates is not None
            for each in self.listen
        )
        assert self.clients is not None
        for index, source in enumerate(self.clients.by):
            if source.certificate is not None and not verifies:
                mistakes.add(
                    "no address in listen verifies client certificates; add client_certificates:"
                    " { ca: FILE } to its tls",
                    *("clients", "by", index, "certificate"),
                )
        demanded = self.access is not None or any(api.has_access for api in self.apis.values())
        if naming.verified and not demanded:
            mistakes.warn(
                "warning: credentials are verified, but no access requires them, so requests with"
                " an invalid one are served; add access: {} at the top or to an API, or"
                " access: open",
                "clients",
            )

    def _listeners(self, files: ConfigFiles, mistakes: Mistakes) -> tuple[Listener, ...]:
        known: dict[str, Listener] = {}
        for index, each in enumerate(self.listen):
            here = mistakes.below("listen", index)
            listener = each.compile(files, here)
            if known.setdefault(listener.address, listener) is not listener:
                here.add("has the same address as another entry; remove one of them", "address")
        return tuple(known.values())


def _request_fields(endpoints: Iterable[Endpoint]) -> set[str]:
    selectors = (endpoint.selector for endpoint in endpoints)
    return {
        name
        for selector in selectors
        if selector is not None
        for reader in selector.readers
        for name in reader.vary
    }


def _cutovers(endpoints: Mapping[Location, Endpoint]) -> dict[VersionKey, VersionCutover]:
    routes = [route for endpoint in endpoints.values() for route in endpoint.routes.values()]
    cutovers = [route.cutover.rule for route in routes if route.cutover is not None]
    return {cutover.key: cutover for cutover in cutovers}


def _warn_of_lost_cutovers(
    cutovers: Mapping[VersionKey, VersionCutover], mistakes: Mistakes
) -> None:
    for api, label in cutovers:
        mistakes.warn(
            "warning: its percentage would be lost in a restart; store it in a file, with state:"
            " FILE at the top",
            *("apis", api, "versions", label, "cutover"),
        )


def _naming_by_address(
    cutovers: Mapping[VersionKey, VersionCutover], trusted: tuple[Network, ...], mistakes: Mistakes
) -> ClientNaming | None:
    """Return client naming by address if a cutover needs client names but none are configured."""
    sticky = [key for key, cutover in cutovers.items() if cutover.sticky == "client"]
    for api, label in sticky:
        mistakes.warn(
            "warning: moves whole clients, but clients have no names, so their"
            " addresses are used; add clients: { by: [ ... ] } at the top",
            *("apis", api, "versions", label, "cutover"),
        )
    return ClientNaming((address_source(trusted),)) if sticky else None


def _router(endpoints: Mapping[Location, Endpoint], mistakes: Mistakes) -> Router[Endpoint]:
    taken: dict[object, tuple[Location, Endpoint]] = {}
    for location, endpoint in endpoints.items():
        other, first = taken.setdefault(endpoint.template.shape, (location, endpoint))
        if first is not endpoint:
            mistakes.add(
                f"matches the same paths as the path of {place(other)}; a path can belong to only "
                f"one endpoint",
                *location,
                "path",
            )
    return Router((endpoint.template, endpoint) for _, endpoint in taken.values())
