"""Overrides: what a running gateway has been told over and above its rules."""

from collections.abc import Mapping
from dataclasses import dataclass, field

VersionKey = tuple[str, str]
"""The name of an API and the label of one of its versions."""


@dataclass(frozen=True, slots=True)
class Overrides:
    """What operators and gates have ordered; in force until they order otherwise.

    Attributes:
        paused: whose brownouts are paused.
        percents: the percentage of the cutovers that have another one than the rules say.
    """

    paused: frozenset[VersionKey] = frozenset()
    percents: Mapping[VersionKey, float] = field(default_factory=dict)


NO_OVERRIDES = Overrides()
