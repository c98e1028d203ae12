"""The key `apis.NAME.versions` of gateway.yaml: the service of each version of an API."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from gateway.access.access import AnyAccess
from gateway.access.clients import ClientNaming
from gateway.base.dates import format_date
from gateway.base.mistakes import Mistakes
from gateway.base.model import NumberText, SectionModel
from gateway.conversion.chain import compose
from gateway.conversion.version_step import VersionLink
from gateway.http.upstream.service import Service
from gateway.lifecycle.brownout import Brownout
from gateway.lifecycle.lifecycle import Lifecycle, VersionLifecycle
from gateway.rollout.cutover import Cutover
from gateway.rollout.shadow import Shadow
from gateway.routing.errors import Errors
from gateway.routing.snapshot import (
    CutoverAlternative,
    LinkForm,
    Route,
    SchemaCheck,
    ShadowAlternative,
)
from gateway.versions.version import Version

_LIVE = "live"
Routes = dict[Version | None, Route]


class Check(SectionModel):
    """A share of the converted responses is validated. Violations are counted and logged."""

    percent: Annotated[float, Field(gt=0, le=100), NumberText]
    """The percentage of converted responses to validate, above 0."""


class VersionModel(SectionModel):
    """The service of a version: its own one, or that of another version (`via`)."""

    service: str | None = None
    """The name of the service that implements this version. A version has either this or via."""
    via: str | None = None
    """The version whose service serves this version, through the conversions between the two."""
    lifecycle: Lifecycle | None = None
    """The dates of the version's deprecation and end. A version that has ended needs neither
    service nor via."""
    brownout: Brownout | None = None
    """The times before the end in which requests for the version are refused."""
    shadow: Shadow | None = None
    """The version to which requests are repeated in the background, to compare the responses."""
    cutover: Cutover | None = None
    """The version whose service serves a growing share of the clients."""
    schema_: Annotated[str | None, Field(alias="schema", min_length=1)] = None
    """The OpenAPI document (3.0, 3.1 or Swagger 2.0) of the version: a URL, a file, or `live`,
    which is /openapi.json of its service. The default is live if the version has a service, and
    otherwise none."""
    errors: Errors | None = None
    """The format of errors for clients of the version. Without it, the gateway's own errors are
    problem details (RFC 9457)."""
    links: Literal["absolute", "relative"] | None = None
    """The form of links to the gateway for clients of the version, if another version's service
    serves it: with scheme and host (absolute), or only the path (relative). Without this setting,
    links keep the form that the service uses."""
    access: AnyAccess | None = None
    """The clients that may use the version, or `open` for every client. The default is access of
    the API."""
    check: Check | None = None
    """The validation of converted responses against the OpenAPI document, in the background.
    Without this setting, responses are not validated."""


class ApiVersions(NamedTuple):
    """Compiles the routes of an API's versions. The labels in `models` may be invalid."""

    api: str
    models: Mapping[str, VersionModel]
    versions: Mapping[str, Version]
    links: Mapping[Version, Sequence[VersionLink]]
    endings: Mapping[Version, VersionLifecycle]
    services: Mapping[str, Service]
    naming: ClientNaming | None
    mistakes: Mistakes

    def compile(self, now: float) -> tuple[Routes, dict[Version, str]]:
        """Return the routes of the versions, and the locations of their OpenAPI documents.

        Args:
            now: The time in seconds since 1970. A version without a service gets no route if it has
                ended.
        """
        routes: Routes = {}
        for label, version in self.versions.items():
            if self._is_retired(label, now):
                continue
            route = self._route(label, label, "via")
            if route is not None:
                routes[version] = self._with_alternatives(label, self._with_brownout(label, route))
        schemas = self._schemas(routes)
        for label, version in self.versions.items():
            if version in routes:
                checked = self._with_check(label, routes[version], schemas)
                route = self._with_document(label, checked, schemas)
                documented = self.models[label].schema_ is not None
                routes[version] = replace(route, documented=True) if documented else route
        return routes, schemas

    def _schemas(self, routes: Routes) -> dict[Version, str]:
        schemas = {}
        for label, version in self.versions.items():
            route, model = routes.get(version), self.models[label]
            if route is None or not route.service.targets:
                continue  # the mistakes in this section are reported elsewhere
            location = model.schema_
            if location is None and model.via is None:
                location = _LIVE
            if location == _LIVE:
                if model.via is not None:
                    self._at(label).add(
                        "served via another version, it has no service that could publish it;"
                        " name a file or a URL",
                        "schema",
                    )
                    continue
                location = f"http://{route.service.targets[0].authority}/openapi.json"
            if location is not None:
                schemas[version] = location
        return schemas

    def _with_check(self, label: str, route: Route, schemas: Mapping[Version, str]) -> Route:
        model, here = self.models[label], self._at(label)
        gates = None if route.cutover is None else route.cutover.rule.gates
        gated = gates is not None and gates.violations is not None
        if model.check is None and not gated:
            return route
        if model.check is not None and route.response is None and model.cutover is None:
            here.add(
                "applies to converted responses, and the responses of this version are not"
                ' converted; remove it, or write via: "VERSION" or a cutover',
                "check",
            )
            return route
        document = schemas.get(self.versions[label])
        if document is None:
            if model.schema_ is None:
                here.add(
                    "there is no document to validate against; add schema: FILE or URL", "check"
                )
            return route
        percent = 0.0 if model.check is None else model.check.percent
        check = SchemaCheck(percent, document, gated)
        cutover = route.cutover and replace(
            route.cutover, route=replace(route.cutover.route, check=check)
        )
        return replace(route, check=check, cutover=cutover)

    def _with_document(self, label: str, route: Route, schemas: Mapping[Version, str]) -> Route:
        shadow = self.models[label].shadow
        if shadow is None or not shadow.validate_ or route.shadow is None:
            return route
        served = route.shadow.route.service_version
        # A version with a service has a document, unless there are mistakes in its section.
        document = None if served is None else schemas.get(served)
        rule = route.shadow.rule._replace(document=document)
        return replace(route, shadow=replace(route.shadow, rule=rule))

    def _at(self, label: str) -> Mistakes:
        return self.mistakes.below("versions", label)

    def _is_retired(self, label: str, now: float) -> bool:
        ending = self.endings.get(self.versions[label])
        if ending is None or not self._is_unserved(label):
            return False
        last = max((ending.sunset, *ending.exempt.values()))
        if last > now:
            self._at(label).add(
                f"does not end before {format_date(last)}; until then, write"
                ' { service: NAME } or { via: "VERSION" } as well',
            )
        if self.models[label].brownout is not None:
            self._at(label).add("no service serves the version; remove it", "brownout")
        return True

    def _is_unserved(self, label: str) -> bool:
        model = self.models[label]
        ends = model.lifecycle is not None and model.lifecycle.sunset is not None
        return ends and model.service is None and model.via is None

    def _with_brownout(self, label: str, route: Route) -> Route:
        model = self.models[label].brownout
        if model is None:
            return route
        ending = self.endings.get(self.versions[label])
        sunset = inf if ending is None else ending.sunset
        here = self._at(label).below("brownout")
        compiled = model.compile((self.api, label), sunset, self.naming, here)
        return replace(route, brownout=compiled)

    def _with_alternatives(self, label: str, route: Route) -> Route:
        key, model, here = (self.api, label), self.models[label], self._at(label)
        if model.shadow is not None and self._is_alternative(label, "shadow", model.shadow.via):
            other = self._route(label, model.shadow.via, "shadow", "via")
            shadow = model.shadow.compile(key, (*here.at, "shadow"), here.root)
            if other is not None:
                route = replace(route, shadow=ShadowAlternative(shadow, other))
        if model.cutover is not None and self._is_alternative(label, "cutover", model.cutover.via):
            other = self._route(label, model.cutover.via, "cutover", "via")
            cutover = model.cutover.compile(
                key, (*here.at, "cutover"), here.root, compared=model.shadow is not None
            )
            if other is not None and cutover is not None and other.service_version is not None:
                route = replace(route, cutover=CutoverAlternative(cutover, other))
        return route

    def _is_alternative(self, label: str, key: str, via: str) -> bool:
        here = self._at(label).below(key)
        if self.models[label].service is None:
            here.add(
                "is only valid for a version with its own service, and this version is served via "
                "another;"
                f" give it a service, or remove {key}",
            )
            return False
        if via == label:
            here.add("names the version itself; name the version that replaces it", "via")
            return False
        return here.look_up(via, self.models, "version", "via") is not None

    def _route(self, label: str, via: str, *location: str) -> Route | None:
        served = self._served_version(via)
        if served is None or served not in self.versions:
            return None
        name = self.models[served].service or ""
        service = self._at(served).look_up(name, self.services, "service", "service")
        if service is None:
            return None
        version, service_version = self.versions[label], self.versions[served]
        if version == service_version:
            return Route(version, version, service)
        ascending = tuple(self.versions.values())
        form = self.models[label].links
        try:
            return Route(
                version,
                service_version,
                service,
                request=compose(ascending, self.links, version, service_version),
                response=compose(ascending, self.links, service_version, version),
                link_form=None if form is None else LinkForm(form),
            )
        except LookupError as error:
            older, newer = error.args
            self._at(label).add(
                f"converting to version {service_version} requires a conversion between {older} and"
                f' {newer}; declare it: - between: ["{older}", "{newer}"]',
                *location,
            )
            return None

    def _served_version(self, label: str) -> str | None:
        path = [label]
        while True:
            here, model = self._at(path[-1]), self.models[path[-1]]
            if (model.service is None) == (model.via is None):
                here.add(
                    "a version has a service of its own or is served via another;"
                    ' write { service: NAME } or { via: "VERSION" }',
                )
                return None
            if model.via is None:
                return path[-1]
            if here.look_up(model.via, self.models, "version", "via") is None:
                return None
            if self._is_unserved(model.via):
                here.add(
                    f"version {model.via} ends and is not served; name a version that is served",
                    "via",
                )
                return None
            if model.via in path:
                circle = " -> ".join((*path, model.via))
                here.add(f"forms a cycle ({circle}); add a service to one of these versions", "via")
                return None
            path.append(model.via)
