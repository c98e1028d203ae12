"""Build: from a valid Config to a Snapshot, or to every mistake that only the whole can tell."""

import re
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import urlsplit

from gateway.config.sections import root_section
from gateway.config.sections.api_section import ApiBuilder
from gateway.config.sections.client_section import build_naming
from gateway.config.sections.endpoint_section import EndpointBuilder
from gateway.config.sections.version_choice import build_choice
from gateway.config.text.mistakes import Location, Mistakes, place
from gateway.core import headers
from gateway.core.clients import AddressName, ClientNaming, Network
from gateway.core.cutover.cutover import Cutover, StickyBy
from gateway.core.overrides import VersionKey
from gateway.core.routing import Router
from gateway.core.service import Capacity, Ejection, Health, Service, Target, Timeouts
from gateway.core.snapshot import Api, Endpoint, Limits, Snapshot

# An http URL (RFC 9110, section 4.2.1) of a host that can be connected to, and of nothing more.
_TARGET = re.compile(
    r"http://(?:(?P<name>[A-Za-z0-9._-]+)|\[(?P<address>[0-9A-Fa-f:.]+)\])(?::[0-9]+)?/?\Z"
)


def build(config: root_section.Config, mistakes: Mistakes, now: float, folder: Path) -> Snapshot:
    """Return the Snapshot that a configuration describes.

    What is wrong goes to `mistakes`; where there is any, the Snapshot must not be used. What is
    right at a time `now`, in seconds since 1970, stays so: it matters to what has ended by then.
    The paths of files start from `folder`.
    """
    services = {
        name: _service(name, service, ("services", name), mistakes)
        for name, service in config.services.items()
    }
    trusted = _networks(config.trusted_proxies, mistakes)
    naming = build_naming(config.clients, trusted, folder, mistakes)
    endpoints: list[tuple[Location, Endpoint]] = []
    apis = []
    for name, api in config.apis.items():
        builder = ApiBuilder(name, api, services, naming, mistakes)
        versions = builder.versions()
        if api.versions and not versions:
            continue  # what is wrong with them says all there is to say
        endings = builder.endings(versions)
        links = builder.links(versions) if versions else {}
        routes = builder.routes(versions, links, endings, now)
        schemas = builder.schemas(versions, routes)
        routes = builder.checked(versions, routes, schemas)
        choice = build_choice(name, config, versions, naming, mistakes)
        own = []
        for index, endpoint in enumerate(api.endpoints):
            at = (*builder.at, "endpoints", index)
            built = EndpointBuilder(
                name, api.upstream_path, endpoint, versions, routes, choice, endings, at, mistakes
            ).build()
            if built is not None:
                endpoints.append((at, built))
                own.append(built)
        served = {
            route.version: route.service_version
            for route in routes.values()
            if route.version is not None and route.service_version is not None
        }
        apis.append(Api(name, versions, served, links, schemas, tuple(own)))
    cutovers = _cutovers(endpoints)
    for named, label in () if config.state else cutovers:
        mistakes.warn(
            "warning: how far it is would be forgotten at a restart; keep it in a file, with state:"
            " FILE at the top",
            *("apis", named, "versions", label, "cutover"),
        )
    return Snapshot(
        _router(endpoints, mistakes),
        services,
        Limits(**config.limits.model_dump()),
        trusted,
        config.workers,
        naming or _by_address(cutovers, trusted, mistakes),
        config.state or None,
        cutovers,
        tuple(apis),
        headers.withheld(_read(config)),
    )


def _read(config: root_section.Config) -> set[str]:
    """Return the request fields that say which version is asked for, and who asks."""
    names = {
        reader.name
        for api in config.apis.values()
        for endpoint in api.endpoints
        for reader in endpoint.readers
        if isinstance(reader, root_section.HeaderVersion)
    }
    for by in () if config.clients is None else config.clients.by:
        names |= {each.header for each in (by, by.api_key, by.jwt) if each and each.header}
    return names


def _cutovers(endpoints: list[tuple[Location, Endpoint]]) -> dict[VersionKey, Cutover]:
    routes = [route for _, endpoint in endpoints for route in endpoint.routes.values()]
    cutovers = [route.cutover.rule for route in routes if route.cutover is not None]
    return {cutover.key: cutover for cutover in cutovers}


def _by_address(
    cutovers: dict[VersionKey, Cutover], trusted: tuple[Network, ...], mistakes: Mistakes
) -> ClientNaming | None:
    """Return what tells clients apart where nothing names them, but a cutover moves whole ones."""
    whole = [key for key, cutover in cutovers.items() if cutover.sticky is StickyBy.CLIENT]
    for api, label in whole:
        mistakes.warn(
            "warning: moves whole clients, and nothing names them, so that their addresses do;"
            " say what does with clients: { by: [ ... ] } at the top",
            *("apis", api, "versions", label, "cutover"),
        )
    return ClientNaming((AddressName(trusted=trusted),)) if whole else None


def _router(endpoints: list[tuple[Location, Endpoint]], mistakes: Mistakes) -> Router[Endpoint]:
    taken: dict[object, tuple[Location, Endpoint]] = {}
    for location, endpoint in endpoints:
        other, first = taken.setdefault(endpoint.template.shape, (location, endpoint))
        if first is not endpoint:
            mistakes.add(
                f"matches the same paths as that of {place(other)}; a path belongs to one endpoint",
                *location,
                "path",
            )
    return Router((endpoint.template, endpoint) for _, endpoint in taken.values())


def _service(
    name: str, config: root_section.ServiceConfig, at: Location, mistakes: Mistakes
) -> Service:
    targets = (
        mistakes.attempt(partial(_target, url), *at, "targets", index)
        for index, url in enumerate(config.targets)
    )
    return Service(
        name,
        tuple(target for target in targets if target is not None),
        config.host,
        Timeouts(**config.timeouts.model_dump(exclude_none=True)),
        Ejection(**config.ejection.model_dump()),
        Capacity(**config.capacity.model_dump()),
        None if config.health is None else Health(**config.health.model_dump()),
    )


def _target(url: str) -> Target:
    right = "write http://host:port"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(f"not a URL with a port from 1 to 65535; {right}") from None
    if parts.scheme != "http":
        raise ValueError(f"a target is reached over plain HTTP; {right}")
    if "@" in parts.netloc:
        raise ValueError(f"a target carries no user name or password; {right}")
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError(f"a target has no path (an API has its upstream_path); {right}")
    if port == 0:
        raise ValueError(f"no service listens on port 0; {right}")
    match = _TARGET.match(url)
    if match is None:
        raise ValueError(f"not a host that can be connected to; {right}")
    return Target(match["name"] or match["address"], port or 80)


def _networks(texts: tuple[str, ...], mistakes: Mistakes) -> tuple[Network, ...]:
    networks = (
        mistakes.attempt(partial(_network, text), "trusted_proxies", index)
        for index, text in enumerate(texts)
    )
    return tuple(network for network in networks if network is not None)


def _network(text: str) -> Network:
    try:
        return ip_network(text)
    except ValueError:
        raise ValueError(
            "not a network, or its address does not begin it; write one like 10.0.0.0/8"
        ) from None
