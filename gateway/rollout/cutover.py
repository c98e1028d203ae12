"""`cutover` in gateway.yaml: gradually moves the clients of a version to another service."""

from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field

from gateway.base.mistakes import Location, Mistakes
from gateway.base.model import Percent, SectionModel
from gateway.base.overrides import Overrides, VersionKey
from gateway.base.request import RequestContext
from gateway.rollout.gates import (
    Duration,
    GateLimits,
    Gates,
    seconds_of,
)

BUCKETS = 10_000


class CutoverRoute(StrEnum):
    OLD = "old"
    NEW = "new"


StickyBy = Literal["client", "request"]


class Cutover(SectionModel):
    """The service of another version already serves a part of this version's clients."""

    via: str
    """The version whose service serves the moved clients, through the conversions between the
    two."""
    percent: Percent | None = None
    """The percentage of clients that move. A cutover has either percent or steps."""
    steps: Annotated[tuple[Percent, ...], Field(min_length=1)] | None = None
    """The percentages of moved clients, one for each step, such as 1, 5, 25 and 100."""
    every: Duration = "10m"
    """The minimum time that each step lasts, in seconds, minutes or hours: 30s, 5m, 1h. The default
    is 10m."""
    sticky_by: StickyBy = "client"
    """The unit that moves: all requests of a client, or each request separately. The default is
    client."""
    gates: Gates | None = None
    """The limits that hold the cutover or roll it back. Without gates, only operators hold it or
    roll it back."""

    def compile(
        self, key: VersionKey, at: Location, mistakes: Mistakes, *, compared: bool
    ) -> "VersionCutover | None":
        if (self.percent is None) == (self.steps is None):
            mistakes.add("needs either percent: 25 or steps: [1, 5, 25, 100]", *at)
            return None
        steps = self.steps or ()
        for index, (step, following) in enumerate(pairwise(steps), 1):
            if following <= step:
                text = "is not above the previous step; write the percentages in ascending order"
                mistakes.add(text, *at, "steps", index)
        only_with_steps = "is only valid together with steps; remove it, or add steps"
        if "every" in self.model_fields_set and not steps:
            mistakes.add(only_with_steps, *at, "every")
        limits = None
        if self.gates is not None:
            if "inconclusive" in self.gates.model_fields_set and not steps:
                mistakes.add(only_with_steps, *at, "gates", "inconclusive")
            limits = self.gates.compile(key, (*at, "gates"), mistakes, compared=compared)
        percent = steps[-1] if self.percent is None else self.percent
        every = seconds_of(self.every)
        return VersionCutover(key, self.via, percent, self.sticky_by, limits, steps, every)


@dataclass(frozen=True, slots=True)
class VersionCutover:
    """The cutover of one version.

    Attributes:
        percent: The final percentage of moved clients or requests, from 0 to 100.
        steps: The percentages in ascending order, up to `percent`. Without steps, the cutover
            begins at `percent`.
        every: The minimum duration of a step in seconds.
    """

    key: VersionKey
    via: str
    percent: float
    sticky: StickyBy = "client"
    gates: GateLimits | None = None
    steps: tuple[float, ...] = ()
    every: float = 600.0

    def route_for(self, context: RequestContext) -> CutoverRoute:
        """Return the route of a request. Without a client name, it is new only at 100 percent."""
        percent = percent_in_force(self, context.overrides)
        if percent >= 100:
            return CutoverRoute.NEW
        if percent <= 0:
            return CutoverRoute.OLD
        if self.sticky == "request":
            return CutoverRoute.NEW if context.cutover_draw * 100 < percent else CutoverRoute.OLD
        if not context.client:
            return CutoverRoute.OLD
        below = bucket(self.key, context.client) < percent * (BUCKETS / 100)
        return CutoverRoute.NEW if below else CutoverRoute.OLD


def percent_in_force(cutover: VersionCutover, overrides: Overrides) -> float:
    ordered = overrides.percents.get(cutover.key)
    return first_percent(cutover) if ordered is None else ordered


def first_percent(cutover: VersionCutover) -> float:
    return cutover.steps[0] if cutover.steps else cutover.percent


def bucket(key: VersionKey, client: str) -> int:
    """Return the bucket of a client, from 0 to 9,999. Each version has its own hash."""
    api, version = key
    name = f"{api}\0{version}\0{client}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(name, digest_size=8).digest()) % BUCKETS
