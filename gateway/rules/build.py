"""Build: from a valid Config to a Snapshot, or to the mistakes that involve several sections."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from gateway.access.admin import OPEN_ACCESS
from gateway.access.clients import ClientNaming, address_source
from gateway.base import headers
from gateway.base.addresses import Network
from gateway.base.mistakes import Location, Mistakes, place
from gateway.base.notify import NO_NOTIFY
from gateway.base.overrides import VersionKey
from gateway.base.path_templates import Router
from gateway.http.limits_section import build_limits
from gateway.http.trusted_proxies_section import build_trusted_proxies
from gateway.http.upstream.service_section import build_service
from gateway.observe.tracing_section import build_tracing
from gateway.rollout.cutover import StickyBy, VersionCutover
from gateway.routing.api_section import ApiBuilder, told_services
from gateway.routing.cors_section import build_cors
from gateway.routing.snapshot import Api, Endpoint, Snapshot
from gateway.rules.root import Config
from gateway.store.state_section import build_forget_after, build_state
from gateway.versions.version_choice import VersionDefaults


def build(
    config: Config,
    mistakes: Mistakes,
    now: float,
    folder: Path,
    environment: Mapping[str, str],
) -> Snapshot:
    """Return the Snapshot of a configuration; it must not be used if there are mistakes.

    Args:
        config: the configuration.
        mistakes: collects the mistakes and the warnings.
        now: the time, in seconds since 1970; it decides which versions have ended. A Snapshot
            without mistakes at one time has none at a later time.
        folder: the folder that relative paths of files start from.
        environment: the environment variables.
    """
    told = {name for section in config.apis.values() for name in told_services(section)}
    spoken = Counter(
        version.service
        for section in config.apis.values()
        for version in (section.versions or {}).values()
    )
    services = {
        name: build_service(name, one, mistakes, is_told=name in told or spoken[name] > 1)
        for name, one in config.services.items()
    }
    trusted = build_trusted_proxies(config.trusted_proxies, mistakes)
    admin = OPEN_ACCESS
    if config.admin is not None:
        admin = config.admin.compile(folder, mistakes)
    if config.notify is not None:
        config.notify.check(mistakes)
    cors = None
    if config.cors is not None:
        cors = build_cors(config.cors, mistakes)
    naming = None
    if config.clients is not None:
        naming = config.clients.compile(trusted, folder, mistakes)
    defaults = VersionDefaults(
        config.default_version,
        config.version_header,
        () if config.clients is None else config.clients.vary,
    )
    apis: list[Api] = []
    endpoints: dict[Location, Endpoint] = {}
    for name, section in config.apis.items():
        built = ApiBuilder(name, section, defaults, services, naming, mistakes).build(now)
        if built is not None:
            apis.append(built[0])
            endpoints |= built[1]
    cutovers = _cutovers(endpoints)
    read = _request_fields(config, endpoints.values())
    tracing = build_tracing(config.tracing, environment, mistakes)
    if not config.state:
        _warn_of_lost_cutovers(cutovers, mistakes)
    return Snapshot(
        _router(endpoints, mistakes),
        services,
        build_limits(config.limits),
        trusted,
        config.workers,
        naming=naming or _naming_by_address(cutovers, trusted, mistakes),
        state=build_state(config.state, mistakes),
        cutovers=cutovers,
        apis=tuple(apis),
        compress=config.compress,
        withheld=headers.withheld(read),
        read=frozenset(name.lower().encode() for name in read),
        forget_after=build_forget_after(config.fleet),
        admin=admin,
        tracing=tracing,
        notify=config.notify or NO_NOTIFY,
        cors=cors,
    )


def _request_fields(config: Config, endpoints: Iterable[Endpoint]) -> set[str]:
    """Return the request headers that name versions or clients."""
    names = {
        name
        for endpoint in endpoints
        for reader in (() if endpoint.selector is None else endpoint.selector.readers)
        for name in reader.vary
    }
    return names | (set() if config.clients is None else {*config.clients.vary} - {"*"})


def _cutovers(endpoints: Mapping[Location, Endpoint]) -> dict[VersionKey, VersionCutover]:
    routes = [route for endpoint in endpoints.values() for route in endpoint.routes.values()]
    cutovers = [route.cutover.rule for route in routes if route.cutover is not None]
    return {cutover.key: cutover for cutover in cutovers}


def _warn_of_lost_cutovers(
    cutovers: Mapping[VersionKey, VersionCutover], mistakes: Mistakes
) -> None:
    for api, label in cutovers:
        mistakes.warn(
            "warning: how far it is would be forgotten at a restart; keep it in a file, with state:"
            " FILE at the top",
            *("apis", api, "versions", label, "cutover"),
        )


def _naming_by_address(
    cutovers: Mapping[VersionKey, VersionCutover], trusted: tuple[Network, ...], mistakes: Mistakes
) -> ClientNaming | None:
    """Return a naming by address if a cutover is sticky by client, for clients without names."""
    sticky = [key for key, cutover in cutovers.items() if cutover.sticky is StickyBy.CLIENT]
    for api, label in sticky:
        mistakes.warn(
            "warning: moves whole clients, and nothing names them, so that their addresses do;"
            " name what does with clients: { by: [ ... ] } at the top",
            *("apis", api, "versions", label, "cutover"),
        )
    return ClientNaming((address_source(trusted),)) if sticky else None


def _router(endpoints: Mapping[Location, Endpoint], mistakes: Mistakes) -> Router[Endpoint]:
    taken: dict[object, tuple[Location, Endpoint]] = {}
    for location, endpoint in endpoints.items():
        other, first = taken.setdefault(endpoint.template.shape, (location, endpoint))
        if first is not endpoint:
            mistakes.add(
                f"matches the same paths as that of {place(other)}; a path belongs to one endpoint",
                *location,
                "path",
            )
    return Router((endpoint.template, endpoint) for _, endpoint in taken.values())
