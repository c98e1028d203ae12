"""`apis` in gateway.yaml: one API, its endpoints, its versions and the conversions between them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated

from pydantic import Field

from gateway.access.access import AccessRule, AnyAccess, compile_access
from gateway.access.clients import ClientNaming
from gateway.base.mistakes import Location, Mistakes
from gateway.base.model import BodyTypes, Name, Reading, Some
from gateway.conversion.additional import DocumentedVersion
from gateway.conversion.changes.registry import ChangeConfig
from gateway.conversion.declared.conversion import ConversionConfig, Part
from gateway.conversion.declared.links import DeclaredLinks
from gateway.conversion.declared.losses import EndpointUse
from gateway.conversion.version_step import VersionLink
from gateway.http.upstream.service import Service
from gateway.lifecycle.lifecycle import compile_lifecycles
from gateway.routing.cors import ApiCors
from gateway.routing.endpoint import ApiParts, EndpointModel, asked_paths
from gateway.routing.errors import Errors, ErrorTemplate
from gateway.routing.snapshot import Api, Endpoint, Route
from gateway.routing.version import ApiVersions, Routes, VersionModel
from gateway.versions.version import Version
from gateway.versions.version_choice import ChoiceDefaults, Label, VersionChoice


class ApiModel(VersionChoice):
    """An API: its public paths, its versions and its services."""

    endpoints: Some[EndpointModel]
    """The public paths of the API."""
    service: str | None = None
    """The name of the service, for an API without versions."""
    versions: Annotated[dict[Label, VersionModel], Field(min_length=1)] | None = None
    """The versions of the API by label, the oldest first. Whole numbers need no order. Without it,
    the API has no versions."""
    conversions: tuple[ConversionConfig, ...] = ()
    """The changes between neighbouring versions of the API. By default, there are none."""
    groups: dict[Name, tuple[ChangeConfig, ...]] = Field(default_factory=dict)
    """Named lists of changes to an object. `use` applies a list wherever such an object occurs. By
    default, there are none."""
    media_types: dict[BodyTypes, Reading] = Field(default_factory=dict)
    """The format of bodies for conversions, by media type: `json`, `json_lines`, `yaml`, or `pass`
    for no conversion. It applies to endpoints without their own `media_types`. `image/*` stands for
    all images and `none` for a missing Content-Type."""
    cors: ApiCors | None = None
    """The browser scripts that may use the API. The gateway responds to preflights, and replaces
    the CORS fields of the services. Without it, the services handle CORS."""
    access: AnyAccess | None = None
    """The clients that may use the API, or `open` for every client. The default is access at the
    top."""
    errors: Errors | None = None
    """The format of the gateway's errors for the API, also before a version is known. `errors` of a
    version replaces it for clients of the version. By default, errors are problem details (RFC
    9457)."""
    upstream_path: str | None = None
    """The path of requests to services. `{version}` stands for the service's version. The default
    is the path of the client's request."""

    def compile(
        self,
        name: str,
        services: Mapping[str, Service],
        defaults: ChoiceDefaults,
        now: float,
        mistakes: Mistakes,
        access: AnyAccess | None = None,
    ) -> tuple[Api, dict[Location, Endpoint]] | None:
        """Return the API and its endpoints, or None if it has versions but no valid label.

        `now` is in seconds since 1970 and determines which versions have ended.
        """
        here, models = mistakes.below("apis", name), self.versions or {}
        versions = self.compile_versions(models, here)
        if models and not versions:
            return None  # the mistakes in the labels are already reported
        lifecycles = {label: one.lifecycle for label, one in models.items() if one.lifecycle}
        endings = compile_lifecycles(lifecycles, versions, defaults.naming, here.below("versions"))
        conversions = None
        if versions and (self.conversions or self.groups):
            conversions = DeclaredLinks(
                self.conversions, self.groups, versions, services, self._check_paths, here
            )
        links = {} if conversions is None else conversions.links
        routes: Routes = {}
        schemas: dict[Version, str] = {}
        if self.versions is None:
            routes = self._unversioned(services, here)
        elif self.service is not None:
            text = (
                "is not valid together with versions, which name their own services;"
                " remove service or versions"
            )
            here.add(text, "service")
        else:
            routes, schemas = ApiVersions(
                name, models, versions, links, endings, services, defaults.naming, here
            ).compile(now)
        documents = self._documents(versions, links, schemas, routes.values(), here)
        has_versions = self.versions is not None
        choice = self.compile_choice(versions if has_versions else None, defaults, here)
        parts = ApiParts(
            name,
            self.upstream_path,
            self.media_types,
            versions,
            links,
            routes,
            choice,
            endings,
            self._errors(versions, here),
            None if self.cors is None else self.cors.compile(here.below("cors")),
            self._access(versions, access, defaults.naming, here),
            defaults.naming,
            documents,
        )
        endpoints: dict[Location, Endpoint] = {}
        for index, model in enumerate(self.endpoints):
            place = here.below("endpoints", index)
            endpoint = model.compile(parts, place)
            if endpoint is not None:
                endpoints[place.at] = endpoint
        if conversions is not None:
            reached = endpoints.values()
            conversions.check(
                [(one.template, path) for one in reached for path in asked_paths(one)],
                [EndpointUse(one.template.text, one.methods, one.converted) for one in reached],
            )
        served = {
            route.version: route.service_version
            for route in routes.values()
            if route.version is not None and route.service_version is not None
        }
        errors, ends = parts.errors.get(None), tuple(endpoints.values())
        api = Api(name, versions, served, links, schemas, ends, errors, documents)
        return api, endpoints

    def _documents(
        self,
        versions: Mapping[str, Version],
        links: Mapping[Version, Sequence[VersionLink]],
        schemas: Mapping[Version, str],
        routes: Iterable[Route],
        mistakes: Mistakes,
    ) -> dict[Version, DocumentedVersion]:
        hiding = [
            link.older
            for some in links.values()
            for link in some
            if link.additional is not None and not link.additional.passes
        ]
        for index, conversion in enumerate(self.conversions):
            older = versions.get(conversion.between[0])
            if conversion.additional is not None and older in hiding and older not in schemas:
                text = (
                    f"needs the OpenAPI document of version {older}; add schema: FILE or URL to it"
                )
                mistakes.add(text, "conversions", index, "additional")
        # Merged writes leave out the readOnly fields of the service's version.
        ways = [
            one for each in routes for one in (each, each.cutover and each.cutover.route) if one
        ]
        writing = [
            one.service_version
            for one in ways
            if one.service_version is not None and one.request is not None and one.request.merges
        ]
        # The service of a version without `schema` may publish no document.
        named = {versions[label] for label, one in (self.versions or {}).items() if one.schema_}
        required = named.union(hiding)
        return {
            one: DocumentedVersion(one, one in required)
            for one in (*hiding, *writing)
            if one in schemas
        }

    def parts(self, api: Api) -> list[Part]:
        links = {older: iter(declared) for older, declared in api.links.items()}
        return [
            Part(
                conversion,
                ("apis", api.name, "conversions", index),
                next(links[api.versions[conversion.between[0]]]),
                self.groups,
            )
            for index, conversion in enumerate(self.conversions)
        ]

    def services_told_versions(self) -> Iterator[str]:
        models = self.versions or {}
        reached = [*self.pins.values()]
        for version in models.values():
            reached += [
                one.via for one in (version, version.shadow, version.cutover) if one and one.via
            ]
        for label in reached:
            service = _service_of(label, models)
            if service is not None:
                yield service
        for conversion in self.conversions:
            for operation in conversion.operations or ():
                if not isinstance(operation, str) and operation.service is not None:
                    yield operation.service

    def _errors(
        self, versions: Mapping[str, Version], mistakes: Mistakes
    ) -> dict[Version | None, ErrorTemplate]:
        found: dict[Version | None, ErrorTemplate] = {}
        if self.errors is not None:
            common = self.errors.compile(mistakes.below("errors"), of_version=False)
            found = dict.fromkeys((None, *versions.values()), common)
        for label, model in (self.versions or {}).items():
            here = mistakes.below("versions", label)
            if model.errors is not None and label in versions:
                found[versions[label]] = model.errors.compile(here.below("errors"))
            if model.shadow is not None and model.shadow.dry_run is not None:
                paths = model.shadow.dry_run.paths or ()
                self._check_paths(paths, here.below("shadow", "dry_run"))
        return found

    @property
    def has_access(self) -> bool:
        own = [self.access, *(one.access for one in self.endpoints)]
        own += [one.access for one in (self.versions or {}).values()]
        return any(access is not None for access in own)

    def _access(
        self,
        versions: Mapping[str, Version],
        common: AnyAccess | None,
        naming: ClientNaming | None,
        mistakes: Mistakes,
    ) -> dict[Version | None, AccessRule | None]:
        if self.access is None:
            rule = compile_access(common, mistakes.at[-1], naming, Mistakes())
        else:
            rule = compile_access(self.access, mistakes.at[-1], naming, mistakes)
        found: dict[Version | None, AccessRule | None] = {None: rule}
        for label, version in versions.items():
            own, here = (self.versions or {})[label].access, mistakes.below("versions", label)
            found[version] = rule
            if own is not None:
                found[version] = compile_access(own, mistakes.at[-1], naming, here)
        return found

    def _unversioned(self, services: Mapping[str, Service], mistakes: Mistakes) -> Routes:
        if self.service is None:
            mistakes.add(
                "no service is named; add `versions`, or `service` for an API without versions"
            )
            return {}
        if self.conversions:
            text = "without versions, nothing is converted; remove it"
            mistakes.add(text, "conversions")
        service = mistakes.look_up(self.service, services, "service", "service")
        return {} if service is None else {None: Route(None, None, service)}

    def _check_paths(self, paths: Sequence[str], mistakes: Mistakes) -> None:
        known = {endpoint.path: endpoint for endpoint in self.endpoints}
        for index, path in enumerate(paths):
            mistakes.look_up(path, known, "endpoint", "paths", index)


def _service_of(label: str, models: Mapping[str, VersionModel]) -> str | None:
    seen: set[str] = set()
    while label in models and label not in seen:
        seen.add(label)
        version = models[label]
        if version.service is not None or version.via is None:
            return version.service
        label = version.via
    return None
