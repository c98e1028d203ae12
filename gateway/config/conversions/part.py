"""Parts: an entry of `conversions:` in gateway.yaml, with the link of the core that it became."""

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import NamedTuple

from gateway.config.conversions.conversion_section import ConversionConfig
from gateway.config.conversions.groups import DeclaredChange, GroupConfigs, declared_changes
from gateway.config.text.mistakes import Location
from gateway.core.conversion.version_link import VersionLink
from gateway.core.snapshot import Api


class Part(NamedTuple):
    """A part of a conversion: as it is declared, where, and the link that it became."""

    config: ConversionConfig
    at: Location
    link: VersionLink
    groups: GroupConfigs = MappingProxyType({})

    def changes(self) -> Iterator[DeclaredChange]:
        """Yield the changes of bodies, with those of the groups that are used."""
        groups_at = (*self.at[:-2], "groups")
        return declared_changes(self.config.changes, (*self.at, "changes"), self.groups, groups_at)


def parts_of(api: Api, conversions: Sequence[ConversionConfig], groups: GroupConfigs) -> list[Part]:
    """Return the parts of all conversions of an API, in the order of their declarations."""
    links = {older: iter(declared) for older, declared in api.links.items()}
    return [
        Part(conversion, ("apis", api.name, "conversions", index), next(links[older]), groups)
        for index, conversion in enumerate(conversions)
        for older in (api.versions[conversion.between[0]],)
    ]
