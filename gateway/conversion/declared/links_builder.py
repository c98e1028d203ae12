"""The links between the versions of one API, from its conversions and groups."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gateway.base.mistakes import Location, Mistakes
from gateway.conversion.changes.registry import ChangeConfig
from gateway.conversion.declared.clashes import find_clashes
from gateway.conversion.declared.conversion_section import ConversionConfig
from gateway.conversion.declared.links import build_groups, build_link
from gateway.conversion.declared.meeting import AskedPaths, Meeting
from gateway.conversion.declared.operations import OperationsBuilder
from gateway.conversion.declared.part import Part
from gateway.conversion.version_link import VersionLink
from gateway.http.upstream.service import Service
from gateway.versions.version import Version


@dataclass(frozen=True, slots=True)
class LinksBuilder:
    """Builds the links between the versions of one API; mistakes go to `mistakes`.

    Attributes:
        conversions: the conversions of the API as configured.
        groups: the groups of the API as configured, by name.
        versions: the versions of the API, the oldest first, by label.
        services: the services by name.
        api: the location of the API.
        check_paths: a function that checks the paths which a conversion names, at its location.
        mistakes: collects the mistakes.
        operations: the operations of the conversions.
    """

    conversions: Sequence[ConversionConfig]
    groups: Mapping[str, Sequence[ChangeConfig]]
    versions: Mapping[str, Version]
    services: Mapping[str, Service]
    api: Location
    check_paths: Callable[[Sequence[str], Location], None]
    mistakes: Mistakes
    operations: OperationsBuilder = field(init=False)
    _parts: dict[Version, list[Part]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        at = (*self.api, "conversions")
        configs = [(config, (*at, index)) for index, config in enumerate(self.conversions)]
        builder = OperationsBuilder(configs, self.services, self.mistakes)
        object.__setattr__(self, "operations", builder)

    def build(self) -> dict[Version, list[VersionLink]]:
        """Return the declared changes between neighbouring versions, by the older version."""
        ladder = list(self.versions.values())
        groups = build_groups(self.groups, (*self.api, "groups"), self.mistakes)
        applied = self.operations.build()
        for index, conversion in enumerate(self.conversions):
            at = (*self.api, "conversions", index)
            older, newer = (
                self.mistakes.look_up(label, self.versions, "version", *at, "between", place)
                for place, label in enumerate(conversion.between)
            )
            if older is None or newer is None:
                continue
            if older >= newer or ladder.index(newer) != ladder.index(older) + 1:
                self.mistakes.add(
                    "name two neighbours, the older one first; the versions are"
                    f" {', '.join(self.versions)}",
                    *at,
                    "between",
                )
            else:
                self.check_paths(conversion.paths or (), at)
                link = build_link(
                    conversion, older, newer, at, self.mistakes, groups, applied[index]
                )
                parts = self._parts.setdefault(older, [])
                parts.append(Part(conversion, at, link, groups.configs))
        return self._links

    def check(self, asked: AskedPaths) -> None:
        """Report links that do not go together, and warn of operations that nothing leads to.

        Args:
            asked: the paths of the endpoints, each with the one that services are asked for.
        """
        ways = dict.fromkeys(asked)
        self.operations.warn_unreached(path for _, path in ways)
        meeting = Meeting(ways, self._links)
        for parts in self._parts.values():
            for index, part in enumerate(parts):
                before = [one for one in parts[:index] if meeting.meet(one.link, part.link)]
                find_clashes(part, before, self.mistakes)

    @property
    def _links(self) -> dict[Version, list[VersionLink]]:
        return {older: [part.link for part in some] for older, some in self._parts.items()}
