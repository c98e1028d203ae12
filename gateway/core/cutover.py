"""Cutover: a growing share of a version's clients is moved to the conversion, the same ones always.

Every client has a bucket, one of 10,000, that depends on its name, the API and the version alone.
Those whose bucket lies below the percentage are moved: a higher percentage moves more of them and
none back.
"""

from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b

from gateway.core.asker import Asker
from gateway.core.gates import Gates
from gateway.core.orders import Orders, Served

BUCKETS = 10_000


class Arm(StrEnum):
    """Which way a request goes."""

    OLD = "old"
    NEW = "new"


class Sticky(StrEnum):
    """What is moved as a whole: all that a client asks, or each request by itself."""

    CLIENT = "client"
    REQUEST = "request"


@dataclass(frozen=True, slots=True)
class Cutover:
    """What the rules say of one cutover.

    Attributes:
        served: the API, and the label of the version that is moved.
        via: the label of the version whose service answers those who are moved.
        percent: how many are moved at most, from 0 to 100.
        sticky: what is moved as a whole.
        gates: what holds it or rolls it back; None leaves it to the operator.
        steps: percentages to climb, the last of them `percent`; empty goes there at once.
        every: how long each of them lasts at least, in seconds.
    """

    served: Served
    via: str
    percent: float
    sticky: Sticky = Sticky.CLIENT
    gates: Gates | None = None
    steps: tuple[float, ...] = ()
    every: float = 600.0

    def arm(self, asker: Asker) -> Arm:
        """Return which way a request goes.

        A client without a name cannot be known again, so it is moved with the last of them: at
        100 percent.
        """
        percent = in_force(self, asker.orders)
        if percent >= 100:
            return Arm.NEW
        if percent <= 0:
            return Arm.OLD
        if self.sticky is Sticky.REQUEST:
            # The digits behind those by which a brownout meets some, so that each meets its share.
            chance = asker.chance * BUCKETS % 1 if asker.chance < 1 else 1.0
            return Arm.NEW if chance * 100 < percent else Arm.OLD
        if not asker.client:
            return Arm.OLD
        below = bucket(self.served, asker.client) < percent * (BUCKETS / 100)
        return Arm.NEW if below else Arm.OLD


def in_force(cutover: Cutover, orders: Orders) -> float:
    """Return the percentage that holds: what was ordered, or else what the rules begin with."""
    ordered = orders.percents.get(cutover.served)
    return first(cutover) if ordered is None else ordered


def first(cutover: Cutover) -> float:
    """Return the percentage that a cutover begins with."""
    return cutover.steps[0] if cutover.steps else cutover.percent


def bucket(served: Served, client: str) -> int:
    """Return the bucket of a client, from 0 to 9,999; every version has a shuffle of its own."""
    api, version = served
    name = f"{api}\0{version}\0{client}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(name, digest_size=8).digest()) % BUCKETS
