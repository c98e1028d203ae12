"""Cutover: a growing share of a version's clients is moved to the conversion, the same ones always.

Every client has a bucket, one of 10,000, that depends on its name, the API and the version alone.
Those whose bucket lies below the percentage are moved: a higher percentage moves more of them and
none back.
"""

from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b

from gateway.core.context import RequestContext
from gateway.core.cutover.gates import Gates
from gateway.core.overrides import Overrides, VersionKey

BUCKETS = 10_000


class CutoverRoute(StrEnum):
    """Which way a request goes."""

    OLD = "old"
    NEW = "new"


class StickyBy(StrEnum):
    """What is moved as a whole: all that a client asks, or each request by itself."""

    CLIENT = "client"
    REQUEST = "request"


@dataclass(frozen=True, slots=True)
class Cutover:
    """What the rules say of one cutover.

    Attributes:
        key: the API, and the label of the version that is moved.
        via: the label of the version whose service answers those who are moved.
        percent: how many are moved at most, from 0 to 100.
        sticky: what is moved as a whole.
        gates: what holds it or rolls it back; None leaves it to the operator.
        steps: percentages to climb, the last of them `percent`; empty goes there at once.
        every: how long each of them lasts at least, in seconds.
    """

    key: VersionKey
    via: str
    percent: float
    sticky: StickyBy = StickyBy.CLIENT
    gates: Gates | None = None
    steps: tuple[float, ...] = ()
    every: float = 600.0

    def route_for(self, context: RequestContext) -> CutoverRoute:
        """Return which way a request goes.

        A client without a name cannot be known again, so it is moved with the last of them: at
        100 percent.
        """
        percent = in_force(self, context.overrides)
        if percent >= 100:
            return CutoverRoute.NEW
        if percent <= 0:
            return CutoverRoute.OLD
        if self.sticky is StickyBy.REQUEST:
            return CutoverRoute.NEW if context.cutover_draw * 100 < percent else CutoverRoute.OLD
        if not context.client:
            return CutoverRoute.OLD
        below = bucket(self.key, context.client) < percent * (BUCKETS / 100)
        return CutoverRoute.NEW if below else CutoverRoute.OLD


def in_force(cutover: Cutover, overrides: Overrides) -> float:
    """Return the percentage that holds: what was ordered, or else what the rules begin with."""
    ordered = overrides.percents.get(cutover.key)
    return first(cutover) if ordered is None else ordered


def first(cutover: Cutover) -> float:
    """Return the percentage that a cutover begins with."""
    return cutover.steps[0] if cutover.steps else cutover.percent


def bucket(key: VersionKey, client: str) -> int:
    """Return the bucket of a client, from 0 to 9,999; every version has a shuffle of its own."""
    api, version = key
    name = f"{api}\0{version}\0{client}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(name, digest_size=8).digest()) % BUCKETS
