"""Overrides: settings of operators and gates that take precedence over the configuration."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

VersionKey = tuple[str, str]


class SetAside(NamedTuple):
    """The reason why a client does not count for retirement, and the end in seconds since 1970."""

    until: float
    why: str


@dataclass(frozen=True, slots=True)
class Overrides:
    """The overrides in force. Each one stays in force until it is changed or cleared.

    Attributes:
        set_aside: The clients that do not count for retirement, also those whose time is over.
    """

    paused: frozenset[VersionKey] = frozenset()
    percents: Mapping[VersionKey, float] = field(default_factory=dict)
    set_aside: Mapping[str, SetAside] = field(default_factory=dict)

    def aside(self, now: float) -> Mapping[str, SetAside]:
        """Return the clients that are set aside at a time."""
        return {name: each for name, each in self.set_aside.items() if each.until > now}


NO_OVERRIDES = Overrides()
