"""Cutover: the gradual move of a version's clients to another version's service.

Every client has one of 10,000 buckets, which depends on its name, the API and the version alone.
The clients whose bucket lies below the percentage are moved, so a client always takes the same
route: a higher percentage moves more clients and none back.
"""

from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b

from gateway.base.context import RequestContext
from gateway.base.overrides import Overrides, VersionKey
from gateway.rollout.gates import Gates
from gateway.rollout.route_outcomes import UNCELLED

BUCKETS = 10_000


class CutoverRoute(StrEnum):
    """The route that a request takes: the version's own service, or the new one."""

    OLD = "old"
    NEW = "new"


class StickyBy(StrEnum):
    """The unit that a cutover moves: all requests of a client, or each request by itself."""

    CLIENT = "client"
    REQUEST = "request"


@dataclass(frozen=True, slots=True)
class Cutover:
    """The configuration of one cutover.

    Attributes:
        key: The API and the label of the version whose clients are moved.
        via: The label of the version whose service answers the moved clients.
        percent: The percentage of clients or requests to move in the end, from 0 to 100.
        sticky: The unit that is moved.
        gates: The limits that hold the cutover or roll it back; None leaves that to the operator.
        steps: The ascending percentages of the cutover, of which the last is `percent`; without
            steps, the cutover begins at `percent`.
        every: The minimum of seconds that each step lasts.
    """

    key: VersionKey
    via: str
    percent: float
    sticky: StickyBy = StickyBy.CLIENT
    gates: Gates | None = None
    steps: tuple[float, ...] = ()
    every: float = 600.0

    def route_for(self, context: RequestContext) -> CutoverRoute:
        """Return the route that a request takes.

        A client without a name cannot be recognised in its next request, so it is moved at 100
        percent only.
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

    def cell_of(self, client: str) -> int:
        """Return the hundredth of all clients to which a client belongs; UNCELLED for none.

        A percentage moves whole cells, so the outcomes of a cell are those of the same clients,
        before and after. No client belongs to a cell where each request is moved by itself.
        """
        if self.sticky is StickyBy.REQUEST or not client:
            return UNCELLED
        return bucket(self.key, client) // (BUCKETS // 100)


def in_force(cutover: Cutover, overrides: Overrides) -> float:
    """Return the percentage in force: an override, or else the configured first percentage."""
    ordered = overrides.percents.get(cutover.key)
    return first(cutover) if ordered is None else ordered


def first(cutover: Cutover) -> float:
    """Return the percentage that a cutover begins with."""
    return cutover.steps[0] if cutover.steps else cutover.percent


def bucket(key: VersionKey, client: str) -> int:
    """Return the bucket of a client, from 0 to 9,999; it is independent for every version."""
    api, version = key
    name = f"{api}\0{version}\0{client}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(name, digest_size=8).digest()) % BUCKETS
