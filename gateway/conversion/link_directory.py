"""The link directory: finds the endpoint that a path of a service belongs to.

Several endpoints may lead to the same path of a service. The client gets the one that it could have
asked for itself: of its own API, where the version is named as in its request.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple, Protocol

from gateway.base.path_templates import Router, Template, parse_template
from gateway.conversion.chain import Conversion
from gateway.http.upstream.service import CLIENT_HOST, TARGET_HOST, Service
from gateway.versions.reader import VersionRewrite
from gateway.versions.selection import Selector
from gateway.versions.version import Version


class OtherWay(Protocol):
    """A second route of a version; see `gateway.routing.snapshot.CutoverAlternative`."""

    @property
    def route(self) -> "ServedRoute":
        """The route."""
        ...


class LinkForm(StrEnum):
    """How the links of a version are written: with scheme and host, or from the path on."""

    ABSOLUTE = "absolute"
    RELATIVE = "relative"


class ServedRoute(Protocol):
    """The properties of a route that links depend on; see `gateway.routing.snapshot.Route`."""

    @property
    def version(self) -> Version | None:
        """The version that clients get."""
        ...

    @property
    def service_version(self) -> Version | None:
        """The version that the service implements."""
        ...

    @property
    def service(self) -> Service:
        """The service."""
        ...

    @property
    def upstream_path(self) -> Template | None:
        """The path of requests to the service; None keeps the client's path."""
        ...

    @property
    def request(self) -> Conversion | None:
        """The conversion of requests."""
        ...

    @property
    def response(self) -> Conversion | None:
        """The conversion of responses."""
        ...

    @property
    def link_form(self) -> LinkForm | None:
        """The form of links to clients; None keeps that of the service."""
        ...

    @property
    def request_rewrite(self) -> VersionRewrite | None:
        """The rewrite of version values in requests."""
        ...

    @property
    def response_rewrite(self) -> VersionRewrite | None:
        """The rewrite of version values in responses."""
        ...

    @property
    def substitutes(self) -> Mapping[tuple[str, Version], "ServedRoute"]:
        """The routes of operations that another service answers."""
        ...

    @property
    def shadow(self) -> OtherWay | None:
        """The route of the shadow."""
        ...

    @property
    def cutover(self) -> OtherWay | None:
        """The route of the cutover."""
        ...


class PublicEndpoint(Protocol):
    """The properties of an endpoint that links depend on; see `routing.snapshot.Endpoint`."""

    @property
    def api(self) -> str:
        """The name of the API."""
        ...

    @property
    def template(self) -> Template:
        """The template of the public path."""
        ...

    @property
    def selector(self) -> Selector | None:
        """The selector of the version."""
        ...

    @property
    def routes(self) -> Mapping[Version | None, ServedRoute]:
        """The route of each version."""
        ...


class PublicRouter(Protocol):
    """A map from public paths to endpoints; see `gateway.base.path_templates.Router`."""

    def find(self, path: str) -> tuple[PublicEndpoint, Mapping[str, str]] | None:
        """Return the endpoint that matches a path, with the raw captures, or None."""
        ...

    def __iter__(self) -> Iterator[PublicEndpoint]:
        """Yield the endpoints."""
        ...


class ServedPath(NamedTuple):
    """An endpoint, one route of it, and the path by which the service is asked there."""

    endpoint: PublicEndpoint
    route: ServedRoute
    path: Template


class LinkDirectory:
    """Finds endpoints by the paths and the authorities of services.

    Its maps are made when the first link needs them: most services write few links, or none.

    Args:
        router: The map from public paths to endpoints.
        services: The services by name.
    """

    __slots__ = ("_maps", "_owners", "_public", "_reached", "router", "services")

    def __init__(self, router: PublicRouter, services: Mapping[str, Service]) -> None:
        self.router = router
        self.services = services
        self._owners: dict[str, str] = {}
        self._reached: dict[str, list[PublicEndpoint]] = {}
        self._maps: dict[object, Router[ServedPath]] = {}
        self._public: dict[object, Router[Template]] = {}

    def owner(self, authority: str) -> Service | None:
        """Return the service that has an authority, of a target or as its `host`; None for none.

        Args:
            authority: A host and a port, in lower case.
        """
        if not self._owners:
            for service in self.services.values():
                for own in authorities_of(service):
                    self._owners.setdefault(with_port(own.lower()), service.name)
        name = self._owners.get(authority)
        return None if name is None else self.services[name]

    def find(
        self, service: Service, endpoint: PublicEndpoint, route: ServedRoute, path: str
    ) -> tuple[ServedPath, Mapping[str, str]] | None:
        """Return what a path of a service belongs to, with its raw captures; None for nothing.

        Args:
            service: The service whose path it is.
            endpoint: The endpoint of the client's request.
            route: The route of the client's request.
            path: The raw path.
        """
        mechanisms = mechanisms_of(endpoint)
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
            # Of several endpoints of one mechanism, the one that the client asked.
            return ServedPath(endpoint, route, own), _renamed(captures, own)
        return served, captures

    def public(
        self,
        endpoint: PublicEndpoint,
        version: Version,
        path: str,
        captures: Mapping[str, str],
    ) -> str | None:
        """Return the public path of what the service of a version is asked for by a path.

        Args:
            endpoint: The endpoint that the client asked; others of its API with the same
                mechanisms are looked at as well.
            version: The version.
            path: The raw path of the request to the service.
            captures: The raw captures of the path that the client asked for.
        """
        mechanisms = mechanisms_of(endpoint)
        key = endpoint.api, version, mechanisms
        known = self._public.get(key)
        if known is None:
            shapes: dict[object, tuple[Template, Template]] = {}
            for other in self.router:
                route = other.routes.get(version)
                if other.api == endpoint.api and route and mechanisms_of(other) == mechanisms:
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
        endpoint: PublicEndpoint,
        route: ServedRoute,
        mechanisms: frozenset[str],
    ) -> Iterator[ServedPath]:
        """Yield what the paths of a service belong to for a client, each shape of a path once."""
        ranked: list[tuple[int, ServedPath]] = []
        for other in self._endpoints(service):
            same = other.api == endpoint.api
            taken = _route_of(other, service, route, same_api=same)
            if taken is not None:
                rank = 0 if same and mechanisms_of(other) == mechanisms else 1 if same else 2
                ranked.append((rank, ServedPath(other, taken, served_path(other, taken))))
        ranked.sort(key=lambda pair: pair[0])
        seen: set[object] = set()
        for _, served in ranked:
            if served.path.shape not in seen:
                seen.add(served.path.shape)
                yield served

    def _endpoints(self, service: Service) -> Iterable[PublicEndpoint]:
        if not self._reached:
            for endpoint in self.router:
                names = {route.service.name for route in _all_routes(endpoint.routes.values())}
                for name in names:
                    self._reached.setdefault(name, []).append(endpoint)
        return self._reached.get(service.name, ())


def served_path(endpoint: PublicEndpoint, route: ServedRoute) -> Template:
    """Return the path by which a route asks its service, with the version filled in."""
    template = route.upstream_path or endpoint.template
    if "version" not in template.captures:
        return template
    return _filled(template.text, str(route.service_version))


@lru_cache(maxsize=1024)
def _filled(template: str, version: str) -> Template:
    return parse_template(template.replace("{version}", version))


def mechanisms_of(endpoint: PublicEndpoint) -> frozenset[str]:
    """Return the mechanisms by which an endpoint reads the version."""
    readers = () if endpoint.selector is None else endpoint.selector.readers
    return frozenset(reader.mechanism for reader in readers)


def with_port(authority: str, scheme: str = "http") -> str:
    """Return an authority with its port, which is that of the scheme where it names none."""
    host, colon, port = authority.rpartition(":")
    if colon and not port.endswith("]"):
        return authority if port else host + _PORTS[scheme]
    return authority + _PORTS[scheme]


_PORTS = {"http": ":80", "https": ":443"}


def authorities_of(service: Service) -> Iterator[str]:
    """Yield the authorities of a service: those of its targets, and its `host`."""
    for target in service.targets:
        yield target.authority
    if service.host not in (CLIENT_HOST, TARGET_HOST):
        yield service.host


def _all_routes(routes: Iterable[ServedRoute]) -> Iterator[ServedRoute]:
    for route in routes:
        yield route
        yield from route.substitutes.values()
        for other in (route.cutover, route.shadow):
            if other is not None:
                yield other.route
                yield from other.route.substitutes.values()


def _route_of(
    endpoint: PublicEndpoint, service: Service, route: ServedRoute, *, same_api: bool
) -> ServedRoute | None:
    """Return the route by which a client that takes `route` gets to a service at an endpoint."""
    named = [one for one in (endpoint.routes.get(route.version),) if one is not None]
    for one in _all_routes(named):
        if one.service.name == service.name and (
            not same_api or one.service_version == route.service_version
        ):
            return one
    if same_api:
        return None
    # Of another API, whose versions are others: the one that the service itself speaks.
    return next(
        one
        for one in endpoint.routes.values()
        if one.service.name == service.name and one.version == one.service_version
    )


def _renamed(captures: Mapping[str, str], template: Template) -> Mapping[str, str]:
    return dict(zip(template.captures, captures.values(), strict=True))
