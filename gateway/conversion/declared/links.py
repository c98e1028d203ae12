"""All `conversions` of one API, compiled to the links between its versions."""

from collections.abc import Callable, Mapping, Sequence

from gateway.base.mistakes import Location, Mistakes
from gateway.conversion.declared.conflicts import AskedPaths, LinkOverlap, find_conflicts
from gateway.conversion.declared.conversion import ConversionConfig, Part
from gateway.conversion.declared.groups import GroupConfigs, compile_groups
from gateway.conversion.declared.operations import DeclaredOperations
from gateway.conversion.version_step import VersionLink
from gateway.http.upstream.service import Service
from gateway.versions.version import Version


class DeclaredLinks:
    """The links between neighbouring versions of one API.

    Args:
        versions: The versions of the API, the oldest first, by label.
        check_paths: Checks the paths that a conversion names, at its location.

    Attributes:
        links: The links, by the older version.
    """

    def __init__(
        self,
        conversions: Sequence[ConversionConfig],
        groups: GroupConfigs,
        versions: Mapping[str, Version],
        services: Mapping[str, Service],
        api: Location,
        check_paths: Callable[[Sequence[str], Location], None],
        mistakes: Mistakes,
    ) -> None:
        self._mistakes = mistakes
        self._parts: dict[Version, list[Part]] = {}
        located = [
            (conversion, (*api, "conversions", index))
            for index, conversion in enumerate(conversions)
        ]
        compiled = compile_groups(groups, (*api, "groups"), mistakes)
        self._operations = DeclaredOperations(located, services, mistakes)
        ladder = list(versions.values())
        for (conversion, at), applied in zip(located, self._operations.applied, strict=True):
            older, newer = (
                mistakes.look_up(label, versions, "version", *at, "between", place)
                for place, label in enumerate(conversion.between)
            )
            if older is None or newer is None:
                continue
            if older >= newer or ladder.index(newer) != ladder.index(older) + 1:
                text = "name two neighbours, the older one first; the versions are"
                mistakes.add(f"{text} {', '.join(versions)}", *at, "between")
                continue
            check_paths(conversion.paths or (), at)
            link = conversion.compile(older, newer, at, mistakes, compiled, applied)
            self._parts.setdefault(older, []).append(Part(conversion, at, link, groups))
        self.links: dict[Version, list[VersionLink]] = {
            older: [part.link for part in some] for older, some in self._parts.items()
        }

    def check(self, asked: AskedPaths) -> None:
        """Report conflicts of links, and warn of operations that no endpoint leads to."""
        paths = dict.fromkeys(asked)
        self._operations.warn_unreached(path for _, path in paths)
        overlap = LinkOverlap(paths, self.links)
        for parts in self._parts.values():
            for index, part in enumerate(parts):
                before = [one for one in parts[:index] if overlap.overlap(one.link, part.link)]
                find_conflicts(part, before, self._mistakes)
