"""One API: its versions, and who serves each of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from gateway.config import model
from gateway.config.choice import read_version
from gateway.config.declared import build_link
from gateway.config.report import Location, Mistakes
from gateway.core.conversion.chain import Link, compose
from gateway.core.service import Service
from gateway.core.snapshot import Leg
from gateway.core.version import Version


@dataclass(frozen=True, slots=True)
class ApiBuilder:
    """Builds the versions of one API; what is wrong goes to `mistakes`."""

    name: str
    config: model.ApiConfig
    services: Mapping[str, Service]
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

    def legs(self, versions: Mapping[str, Version]) -> dict[Version | None, Leg]:
        """Return how each version is served."""
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
            return {} if service is None else {None: Leg(None, None, service)}
        links = self._links(versions)
        legs = (self._leg(label, versions, links) for label in versions)
        return {leg.version: leg for leg in legs if leg is not None}

    def _leg(
        self, label: str, versions: Mapping[str, Version], links: Mapping[Version, Link]
    ) -> Leg | None:
        served = self._served(label)
        if served is None or served not in versions:
            return None
        service = self._service(self._entry(served).service or "", "versions", served, "service")
        if service is None:
            return None
        version, speaks = versions[label], versions[served]
        if version == speaks:
            return Leg(version, version, service)
        ladder = tuple(versions.values())
        try:
            return Leg(
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
                "via",
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
            if entry.via in path:
                circle = " -> ".join((*path, entry.via))
                self.mistakes.add(
                    f"goes round in a circle ({circle}); give one of them a service", *at, "via"
                )
                return None
            path.append(entry.via)

    def _entry(self, label: str) -> model.VersionConfig:
        return (self.config.versions or {})[label]

    def _service(self, name: str, *location: str) -> Service | None:
        return self.mistakes.look_up(name, self.services, "service", *self.at, *location)

    def _links(self, versions: Mapping[str, Version]) -> dict[Version, Link]:
        ladder = list(versions.values())
        links: dict[Version, Link] = {}
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
            elif older in links:
                self.mistakes.add(
                    f"{older} and {newer} have a conversion already; put the changes together",
                    *at,
                    "between",
                )
            else:
                links[older] = build_link(conversion, older, newer, at, self.mistakes)
        return links
