"""Parts: an entry of `conversions:` in gateway.yaml, with the link of the core that it became."""

from collections.abc import Iterator
from types import MappingProxyType
from typing import NamedTuple

from gateway.base.mistakes import Location
from gateway.conversion.declared.conversion_section import ConversionConfig
from gateway.conversion.declared.groups import DeclaredChange, GroupConfigs, declared_changes
from gateway.conversion.version_link import VersionLink


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
