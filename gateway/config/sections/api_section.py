"""`apis` in gateway.yaml: one API, its endpoints, its versions and the conversions between them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from gateway.config.changes.change_list import ChangeConfig
from gateway.config.conversions.clashes import Part, find_clashes
from gateway.config.conversions.conversion_section import ConversionConfig
from gateway.config.conversions.links import build_groups, build_link
from gateway.config.sections.endpoint_section import EndpointBuilder, EndpointConfig
from gateway.config.sections.version_choice import (
    ChoiceBuilder,
    VersionChoiceConfig,
    VersionDefaults,
)
from gateway.config.sections.versions.lifecycle_section import LifecycleBuilder, VersionEnd
from gateway.config.sections.versions.version_section import VersionConfig, VersionsBuilder
from gateway.config.shape import Name, Some
from gateway.config.text.mistakes import Location, Mistakes
from gateway.core.clients import ClientNaming
from gateway.core.conversion.chain import VersionLink
from gateway.core.service import Service
from gateway.core.snapshot import Api, Endpoint, Route
from gateway.core.versions.version import Version

BuiltApi = tuple[Api, dict[Location, Endpoint]]
"""An API, and its endpoints by their locations in gateway.yaml."""


class ApiConfig(VersionChoiceConfig):
    """An API: its public paths, its versions, and the services behind them."""

    endpoints: Some[EndpointConfig]
    """The public paths of the API."""
    service: str | None = None
    """The name of the service, for an API without versions."""
    versions: Annotated[dict[str, VersionConfig], Field(min_length=1)] | None = None
    """The versions of the API, by label. Without it, the API has no versions."""
    conversions: tuple[ConversionConfig, ...] = ()
    """The changes between neighbouring versions of the API. By default, there are none."""
    groups: dict[Name, tuple[ChangeConfig, ...]] = Field(default_factory=dict)
    """Named changes of an object, which conversions `use` wherever such an object occurs. By
    default, there are none."""
    upstream_path: str | None = None
    """The path that services are asked for; `{version}` is the version that the service speaks.
    Without it, it is the path that the client asks for."""


@dataclass(frozen=True, slots=True)
class ApiBuilder:
    """Builds one API; mistakes go to `mistakes`.

    Attributes:
        name: the name of the API.
        config: the API as configured.
        defaults: what holds for every API that has no setting of its own.
        services: the services by name.
        naming: how clients get their names; None where they have none.
        mistakes: collects the mistakes.
    """

    name: str
    config: ApiConfig
    defaults: VersionDefaults
    services: Mapping[str, Service]
    naming: ClientNaming | None
    mistakes: Mistakes

    @property
    def at(self) -> Location:
        """Return the location of the API."""
        return ("apis", self.name)

    def build(self, now: float) -> BuiltApi | None:
        """Return the API and its endpoints, or None if none of its versions has a right label.

        Args:
            now: the time, in seconds since 1970; it decides which versions have ended.
        """
        choice_builder = ChoiceBuilder(
            self.name,
            self.config,
            has_versions=self.config.versions is not None,
            defaults=self.defaults,
            naming=self.naming,
            mistakes=self.mistakes,
        )
        versions = choice_builder.versions(self.config.versions or ())
        if self.config.versions and not versions:
            return None  # the mistakes in the labels are enough
        endings = self._endings(versions)
        links = self._links(versions) if versions else {}
        routes, schemas = self._routes(versions, links, endings, now)
        choice = choice_builder.build(versions)
        endpoints: dict[Location, Endpoint] = {}
        for index, config in enumerate(self.config.endpoints):
            at = (*self.at, "endpoints", index)
            endpoint = EndpointBuilder(
                self.name,
                self.config.upstream_path,
                config,
                versions,
                routes,
                choice,
                endings,
                at,
                self.mistakes,
            ).build()
            if endpoint is not None:
                endpoints[at] = endpoint
        served = {
            route.version: route.service_version
            for route in routes.values()
            if route.version is not None and route.service_version is not None
        }
        api = Api(self.name, versions, served, links, schemas, tuple(endpoints.values()))
        return api, endpoints

    def _endings(self, versions: Mapping[str, Version]) -> dict[Version, VersionEnd]:
        configs = {
            label: config.lifecycle
            for label, config in (self.config.versions or {}).items()
            if config.lifecycle is not None
        }
        at = (*self.at, "versions")
        return LifecycleBuilder(versions, configs, self.naming, at, self.mistakes).endings()

    def _routes(
        self,
        versions: Mapping[str, Version],
        links: Mapping[Version, Sequence[VersionLink]],
        endings: Mapping[Version, VersionEnd],
        now: float,
    ) -> tuple[dict[Version | None, Route], dict[Version, str]]:
        """Return the route of each version, and the locations of their OpenAPI documents."""
        if self.config.versions is None:
            return self._unversioned(), {}
        if self.config.service is not None:
            self.mistakes.add(
                "stands beside versions, which name their services; keep one of the two",
                *self.at,
                "service",
            )
            return {}, {}
        builder = VersionsBuilder(
            self.name,
            self.config.versions,
            self.services,
            self.naming,
            versions,
            links,
            endings,
            self.mistakes,
        )
        routes = builder.routes(now)
        schemas = builder.schemas(routes)
        return builder.checked(routes, schemas), schemas

    def _unversioned(self) -> dict[Version | None, Route]:
        if self.config.service is None:
            self.mistakes.add(
                "nobody serves it; add versions or, if it has none, service", *self.at
            )
            return {}
        if self.config.conversions:
            self.mistakes.add(
                "without versions, nothing is converted; remove it", *self.at, "conversions"
            )
        service = self.mistakes.look_up(
            self.config.service, self.services, "service", *self.at, "service"
        )
        return {} if service is None else {None: Route(None, None, service)}

    def _links(self, versions: Mapping[str, Version]) -> dict[Version, list[VersionLink]]:
        """Return the declared changes between neighbouring versions, by the older version."""
        ladder = list(versions.values())
        parts: dict[Version, list[Part]] = {}
        groups = build_groups(self.config.groups, (*self.at, "groups"), self.mistakes)
        for index, conversion in enumerate(self.config.conversions):
            at = (*self.at, "conversions", index)
            older, newer = (
                self.mistakes.look_up(label, versions, "version", *at, "between", place)
                for place, label in enumerate(conversion.between)
            )
            if older is None or newer is None:
                continue
            if older >= newer or ladder.index(newer) != ladder.index(older) + 1:
                self.mistakes.add(
                    "name two neighbours, the older one first; the versions are"
                    f" {', '.join(versions)}",
                    *at,
                    "between",
                )
            else:
                self._check_paths(conversion, at)
                link = build_link(conversion, older, newer, at, self.mistakes, groups)
                part = Part(conversion, at, link, groups.configs)
                find_clashes(part, parts.setdefault(older, []), self.mistakes)
                parts[older].append(part)
        return {older: [part.link for part in some] for older, some in parts.items()}

    def _check_paths(self, conversion: ConversionConfig, at: Location) -> None:
        known = {endpoint.path: endpoint for endpoint in self.config.endpoints}
        for index, path in enumerate(conversion.paths or ()):
            self.mistakes.look_up(path, known, "endpoint", *at, "paths", index)
