"""Overrides: settings of operators and gates that take precedence over the configuration."""

from collections.abc import Mapping
from dataclasses import dataclass, field

VersionKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Overrides:
    """The overrides in force. Each one stays in force until it is changed or cleared."""

    paused: frozenset[VersionKey] = frozenset()
    percents: Mapping[VersionKey, float] = field(default_factory=dict)


NO_OVERRIDES = Overrides()
