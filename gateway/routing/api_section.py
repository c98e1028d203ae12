"""`apis` in gateway.yaml: one API, its endpoints, its versions and the conversions between them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, NamedTuple

from pydantic import Field

from gateway.access.clients import ClientNaming
from gateway.base.mistakes import Location, Mistakes
from gateway.base.model import BodyTypes, Name, Reading, Some
from gateway.conversion.changes.registry import ChangeConfig
from gateway.conversion.declared.conversion import ConversionConfig
from gateway.conversion.declared.links import LinksBuilder
from gateway.conversion.version_link import VersionLink
from gateway.http.upstream.service import Service
from gateway.lifecycle.lifecycle import VersionLifecycle, compile_lifecycles
from gateway.routing.endpoint_section import (
    EndpointBuilder,
    EndpointConfig,
    asked_paths,
)
from gateway.routing.error_template import ErrorTemplate
from gateway.routing.errors_section import build_errors
from gateway.routing.snapshot import Api, Endpoint, Route
from gateway.routing.version_section import VersionConfig, VersionsBuilder
from gateway.versions.version import Version
from gateway.versions.version_choice import (
    ChoiceBuilder,
    VersionChoiceConfig,
    VersionDefaults,
)

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
    media_types: dict[BodyTypes, Reading] = Field(default_factory=dict)
    """How bodies are read for conversions, by media type, at every endpoint that has none of its
    own: `json`, `json_lines`, or `pass` for those that pass without conversion. `image/*` is any
    image, `none` a missing Content-Type."""
    upstream_path: str | None = None
    """The path that services are asked for; `{version}` is the version that the service speaks.
    Without it, it is the path that the client asks for."""


class ApiBuilder(NamedTuple):
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
        convertible = self._links(versions)
        links = convertible.build() if convertible is not None and versions else {}
        routes, schemas = self._routes(versions, links, endings, now)
        self._check_dry_runs()
        choice = choice_builder.build(versions)
        errors = self._errors(versions)
        endpoints: dict[Location, Endpoint] = {}
        for index, config in enumerate(self.config.endpoints):
            at = (*self.at, "endpoints", index)
            endpoint = EndpointBuilder(
                self.name,
                self.config.upstream_path,
                self.config.media_types,
                config,
                versions,
                links,
                routes,
                choice,
                endings,
                errors,
                at,
                self.mistakes,
            ).build()
            if endpoint is not None:
                endpoints[at] = endpoint
        if convertible is not None:
            convertible.check(
                (endpoint.template, path)
                for endpoint in endpoints.values()
                for path in asked_paths(endpoint)
            )
        served = {
            route.version: route.service_version
            for route in routes.values()
            if route.version is not None and route.service_version is not None
        }
        api = Api(self.name, versions, served, links, schemas, tuple(endpoints.values()))
        return api, endpoints

    def _errors(self, versions: Mapping[str, Version]) -> "dict[Version | None, ErrorTemplate]":
        """Return the shapes of errors, of the versions that have one of their own."""
        configs = self.config.versions or {}
        shapes: dict[Version | None, ErrorTemplate] = {}
        for label, version in versions.items():
            if (errors := configs[label].errors) is not None:
                at = (*self.at, "versions", label, "errors")
                shapes[version] = build_errors(errors, at, self.mistakes)
        return shapes

    def _endings(self, versions: Mapping[str, Version]) -> dict[Version, VersionLifecycle]:
        configs = {
            label: config.lifecycle
            for label, config in (self.config.versions or {}).items()
            if config.lifecycle is not None
        }
        at = (*self.at, "versions")
        return compile_lifecycles(configs, versions, self.naming, at, self.mistakes)

    def _routes(
        self,
        versions: Mapping[str, Version],
        links: Mapping[Version, Sequence[VersionLink]],
        endings: Mapping[Version, VersionLifecycle],
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
        return builder.validated(builder.checked(routes, schemas), schemas), schemas

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

    def _links(self, versions: Mapping[str, Version]) -> "LinksBuilder | None":
        if not self.config.conversions and not self.config.groups:
            return None

        return LinksBuilder(
            self.config.conversions,
            self.config.groups,
            versions,
            self.services,
            self.at,
            self._check_paths,
            self.mistakes,
        )

    def _check_dry_runs(self) -> None:
        for label, version in (self.config.versions or {}).items():
            if version.shadow is not None and version.shadow.dry_run is not None:
                at = (*self.at, "versions", label, "shadow", "dry_run")
                self._check_paths(version.shadow.dry_run.paths or (), at)

    def _check_paths(self, paths: Sequence[str], at: Location) -> None:
        known = {endpoint.path: endpoint for endpoint in self.config.endpoints}
        for index, path in enumerate(paths):
            self.mistakes.look_up(path, known, "endpoint", *at, "paths", index)


def told_services(config: ApiConfig) -> Iterator[str]:
    """Yield the names of the services to which a conversion or a pin of an API leads."""
    versions = config.versions or {}
    reached = [*config.pins.values()]
    for version in versions.values():
        reached += [
            one.via for one in (version, version.shadow, version.cutover) if one and one.via
        ]
    for label in reached:
        service = _service_of(label, versions)
        if service is not None:
            yield service
    for conversion in config.conversions:
        for operation in conversion.operations or ():
            if not isinstance(operation, str) and operation.service is not None:
                yield operation.service


def _service_of(label: str, versions: Mapping[str, VersionConfig]) -> str | None:
    """Return the name of the service that answers for a version; None if there is none."""
    seen: set[str] = set()
    while label in versions and label not in seen:
        seen.add(label)
        version = versions[label]
        if version.service is not None or version.via is None:
            return version.service
        label = version.via
    return None
