"""Orders: what a running gateway has been told over and above its rules."""

from collections.abc import Mapping
from dataclasses import dataclass, field

Served = tuple[str, str]
"""The name of an API and the label of one of its versions."""


@dataclass(frozen=True, slots=True)
class Orders:
    """What operators and gates have ordered; in force until they order otherwise.

    Attributes:
        paused: whose brownouts are paused.
        percents: the percentage of the cutovers that have another one than the rules say.
    """

    paused: frozenset[Served] = frozenset()
    percents: Mapping[Served, float] = field(default_factory=dict)


NO_ORDERS = Orders()
