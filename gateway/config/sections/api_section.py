"""One API: its versions, and who serves each of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf

from gateway.config.conversions.clashes import Part, find_clashes
from gateway.config.conversions.conversion_section import ConversionConfig
from gateway.config.conversions.links import build_link
from gateway.config.sections import root_section
from gateway.config.sections.alternatives_section import AlternativesBuilder
from gateway.config.sections.brownout_section import BrownoutBuilder
from gateway.config.sections.lifecycle_section import LifecycleBuilder, VersionEnd
from gateway.config.sections.version_choice import read_version
from gateway.config.text.dates import format_date
from gateway.config.text.mistakes import Location, Mistakes
from gateway.core.clients import ClientNaming
from gateway.core.conversion.chain import VersionLink, compose
from gateway.core.service import Service
from gateway.core.snapshot import Route, SchemaCheck
from gateway.core.versions.version import Version

_LIVE = "live"


@dataclass(frozen=True, slots=True)
class ApiBuilder:
    """Builds the versions of one API; what is wrong goes to `mistakes`."""

    name: str
    config: root_section.ApiConfig
    services: Mapping[str, Service]
    naming: ClientNaming | None
    mistakes: Mistakes

    @property
    def at(self) -> Location:
        """Return where the API stands."""
        return ("apis", self.name)

    def versions(self) -> dict[str, Version]:
        """Return the versions by label, the oldest first; empty where the API has none."""
        versions = {}
        for label in self.config.versions or {}:
            version = self.mistakes.attempt(
                partial(read_version, label, self.config), *self.at, "versions", label
            )
            if version is not None:
                versions[label] = version
        return dict(sorted(versions.items(), key=lambda item: item[1]))

    def endings(self, versions: Mapping[str, Version]) -> dict[Version, VersionEnd]:
        """Return how versions end, of those that do."""
        configs = {
            label: entry.lifecycle
            for label, entry in (self.config.versions or {}).items()
            if entry.lifecycle is not None
        }
        at = (*self.at, "versions")
        return LifecycleBuilder(versions, configs, self.naming, at, self.mistakes).endings()

    def routes(
        self,
        versions: Mapping[str, Version],
        links: Mapping[Version, Sequence[VersionLink]],
        endings: Mapping[Version, VersionEnd],
        now: float,
    ) -> dict[Version | None, Route]:
        """Return how each version is served, but for those that have ended and nobody serves.

        Args:
            versions: by label.
            links: the changes between them, by the older one.
            endings: how they end.
            now: in seconds since 1970.
        """
        if self.config.service is not None and self.config.versions is not None:
            self.mistakes.add(
                "stands beside versions, which name their services; keep one of the two",
                *self.at,
                "service",
            )
            return {}
        if self.config.versions is None and self.config.service is None:
            self.mistakes.add(
                "nobody serves it; add versions or, if it has none, service", *self.at
            )
            return {}
        if self.config.service is not None:
            if self.config.conversions:
                self.mistakes.add(
                    "without versions, nothing is converted; remove it", *self.at, "conversions"
                )
            service = self._service(self.config.service, "service")
            return {} if service is None else {None: Route(None, None, service)}
        routes: dict[Version | None, Route] = {}
        for label, version in versions.items():
            ending = endings.get(version)
            if self._is_retired(label, ending, now):
                continue
            route = self._route(label, versions, links)
            if route is not None:
                routes[version] = self._browned_out(label, route, ending)
        return routes

    def _is_retired(self, label: str, ending: VersionEnd | None, now: float) -> bool:
        if ending is None or not self._is_unserved(label):
            return False
        at = (*self.at, "versions", label)
        last = max((ending.terms.sunset, *ending.terms.exempt.values()))
        if last > now:
            self.mistakes.add(
                f"does not end before {format_date(last)}; until then, write"
                ' { service: NAME } or { via: "VERSION" } as well',
                *at,
            )
        if self._entry(label).brownout is not None:
            self.mistakes.add("nobody serves the version; remove it", *at, "brownout")
        return True

    def _is_unserved(self, label: str) -> bool:
        """Whether nobody serves a version, as nobody needs to once it has ended."""
        entry = self._entry(label)
        ends = entry.lifecycle is not None and entry.lifecycle.sunset is not None
        return ends and entry.service is None and entry.via is None

    def _browned_out(self, label: str, route: Route, ending: VersionEnd | None) -> Route:
        config = self._entry(label).brownout
        if config is None:
            return route
        sunset = inf if ending is None else ending.terms.sunset
        at = (*self.at, "versions", label, "brownout")
        builder = BrownoutBuilder(
            (self.name, label), config, sunset, self.naming, at, self.mistakes
        )
        return replace(route, brownout=builder.build())

    def schemas(
        self, versions: Mapping[str, Version], routes: Mapping[Version | None, Route]
    ) -> dict[Version, str]:
        """Return where the OpenAPI document of each version is, for those that have one."""
        schemas = {}
        for label, entry in (self.config.versions or {}).items():
            version = versions.get(label)
            route = routes.get(version)
            if route is None or version is None or not route.service.targets:
                continue  # which is said elsewhere
            location = entry.schema_
            if location is None and entry.via is None:
                location = _LIVE
            if location == _LIVE:
                if entry.via is not None:
                    self.mistakes.add(
                        "served via another version, it has no service that could publish it;"
                        " name a file or a URL",
                        *self.at,
                        "versions",
                        label,
                        "schema",
                    )
                    continue
                location = f"http://{route.service.targets[0].authority}/openapi.json"
            if location is not None:
                schemas[version] = location
        return schemas

    def checked(
        self,
        versions: Mapping[str, Version],
        routes: Mapping[Version | None, Route],
        schemas: Mapping[Version, str],
    ) -> dict[Version | None, Route]:
        """Return how each version is served, and whether its converted answers are validated."""
        checked = dict(routes)
        for label, entry in (self.config.versions or {}).items():
            version = versions.get(label)
            if entry.check is None or version is None or version not in checked:
                continue
            route = checked[version]
            if route.response is None and entry.cutover is None:
                self.mistakes.add(
                    "of converted answers, and this version's are its service's own; remove it,"
                    ' or write via: "VERSION" or a cutover',
                    *self.at,
                    "versions",
                    label,
                    "check",
                )
            elif version in schemas:
                check = SchemaCheck(entry.check.percent, schemas[version])
                moved = route.cutover and replace(
                    route.cutover, route=replace(route.cutover.route, check=check)
                )
                checked[version] = replace(route, check=check, cutover=moved)
            elif entry.schema_ is None:
                self.mistakes.add(
                    "there is no document to check by; add schema: FILE or URL",
                    *self.at,
                    "versions",
                    label,
                    "check",
                )
        return checked

    def _route(
        self,
        label: str,
        versions: Mapping[str, Version],
        links: Mapping[Version, Sequence[VersionLink]],
    ) -> Route | None:
        def way(via: str, *location: str) -> Route | None:
            return self._way(label, via, versions, links, *location)

        route = way(label, "via")
        if route is None:
            return None
        at = (*self.at, "versions", label)
        return AlternativesBuilder(
            (self.name, label), self._entry(label), self.config.versions or {}, at, self.mistakes
        ).beside(route, way)

    def _way(
        self,
        label: str,
        via: str,
        versions: Mapping[str, Version],
        links: Mapping[Version, Sequence[VersionLink]],
        *location: str,
    ) -> Route | None:
        served = self._served(via)
        if served is None or served not in versions:
            return None
        service = self._service(self._entry(served).service or "", "versions", served, "service")
        if service is None:
            return None
        version, speaks = versions[label], versions[served]
        if version == speaks:
            return Route(version, version, service)
        ladder = tuple(versions.values())
        try:
            return Route(
                version,
                speaks,
                service,
                request=compose(ladder, links, version, speaks),
                response=compose(ladder, links, speaks, version),
            )
        except LookupError as error:
            older, newer = error.args
            self.mistakes.add(
                f"the way to version {speaks} has no conversion between {older} and {newer};"
                f' declare it: - between: ["{older}", "{newer}"]',
                *self.at,
                "versions",
                label,
                *location,
            )
            return None

    def _served(self, label: str) -> str | None:
        """Follow `via` to the version that has a service of its own."""
        path = [label]
        while True:
            at = (*self.at, "versions", path[-1])
            entry = self._entry(path[-1])
            if (entry.service is None) == (entry.via is None):
                self.mistakes.add(
                    "a version has a service of its own or is served via another;"
                    ' write { service: NAME } or { via: "VERSION" }',
                    *at,
                )
                return None
            if entry.via is None:
                return path[-1]
            if (
                self.mistakes.look_up(entry.via, self.config.versions or {}, "version", *at, "via")
                is None
            ):
                return None
            if self._is_unserved(entry.via):
                self.mistakes.add(
                    f"nobody serves version {entry.via}, which ends; name one that is served",
                    *at,
                    "via",
                )
                return None
            if entry.via in path:
                circle = " -> ".join((*path, entry.via))
                self.mistakes.add(
                    f"goes round in a circle ({circle}); give one of them a service", *at, "via"
                )
                return None
            path.append(entry.via)

    def _entry(self, label: str) -> root_section.VersionConfig:
        return (self.config.versions or {})[label]

    def _service(self, name: str, *location: str) -> Service | None:
        return self.mistakes.look_up(name, self.services, "service", *self.at, *location)

    def links(self, versions: Mapping[str, Version]) -> dict[Version, list[VersionLink]]:
        """Return the declared changes between neighbours, by the older version."""
        ladder = list(versions.values())
        parts: dict[Version, list[Part]] = {}
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
                link = build_link(conversion, older, newer, at, self.mistakes)
                part = Part(conversion, at, link)
                find_clashes(part, parts.setdefault(older, []), self.mistakes)
                parts[older].append(part)
        return {older: [part.link for part in some] for older, some in parts.items()}

    def _check_paths(self, conversion: ConversionConfig, at: Location) -> None:
        known = {endpoint.path: endpoint for endpoint in self.config.endpoints}
        for index, path in enumerate(conversion.paths or ()):
            self.mistakes.look_up(path, known, "endpoint", *at, "paths", index)
