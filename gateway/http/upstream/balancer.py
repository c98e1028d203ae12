"""The balancer: chooses the available target of a service with the fewest requests in flight.

A target that fails several times in a row gets no requests for a period (passive ejection, as in
Envoy's outlier detection), and then a single trial request (half open); another failure doubles the
period. The last available target is never ejected, so that clients see the failures of a backend.
Active health checks, where configured, are separate: a target that they find down gets no requests.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

from gateway.http.upstream.service import Ejection, Service, Target

# So many seconds after its last failure, or its ejection, a target that got no request since is not
# known to fail any more: it may be well, and nobody has tried.
_KNOWN_SECONDS = 300.0

TargetState = Literal["ejected", "failing", "down"]
"""How a target is unwell: it is ejected, or on trial after that; it has failed as often, and gets
requests, as no other target is available; or health checks find it down."""


@dataclass(slots=True)
class TargetHealth:
    """The health of a target.

    Attributes:
        in_flight: the number of requests in flight.
        failures: the number of failures in a row.
        ejected_until: the time at which the ejection ends; 0 if the target is not ejected.
        seconds: the length of the last ejection in seconds; 0 if there was none.
        trial: whether the trial request after an ejection is under way.
        down: whether active health checks find the target down.
        down_cause: why the health check failed that found it down; empty if it is not down.
        failed: the time of the last failure.
        cause: what failed then; empty if nothing has.
    """

    in_flight: int = 0
    failures: int = 0
    ejected_until: float = 0.0
    seconds: float = 0.0
    trial: bool = False
    down: bool = False
    down_cause: str = ""
    failed: float = 0.0
    cause: str = ""

    def available(self, now: float) -> bool:
        """Whether a request may be sent to the target."""
        return not self.down and now >= self.ejected_until and not self.trial


@dataclass(slots=True)
class Balancer:
    """Chooses among the targets of one service; callers pass the time `now`, in seconds."""

    service: Service
    healths: dict[Target, TargetHealth] = field(default_factory=dict)
    turn: int = 0

    def choose(self, now: float, tried: Collection[Target] = ()) -> Target | None:
        """Return the target to send a request to, or None if none is available."""
        targets = self.service.targets
        if len(targets) == 1:
            only = targets[0]
            if tried:
                return None
            known = self.healths.get(only)
            if known is not None and known.ejected_until == 0.0 and not known.down:
                return only  # the fast path for a healthy single target
            return only if self.health_of(only).available(now) else None
        self.turn += 1
        best: Target | None = None
        least = 0
        for step in range(len(targets)):
            target = targets[(self.turn + step) % len(targets)]
            health = self.health_of(target)
            if target in tried or not health.available(now):
                continue
            if best is None or health.in_flight < least:
                best, least = target, health.in_flight
        return best

    def health_of(self, target: Target) -> TargetHealth:
        """Return the health of a target."""
        health = self.healths.get(target)
        if health is None:
            health = self.healths[target] = TargetHealth()
        return health

    def forget(self, targets: Collection[Target]) -> None:
        """Forget the health of all other targets, except those with requests in flight."""
        self.healths = {
            target: health
            for target, health in self.healths.items()
            if target in targets or health.in_flight
        }

    def began(self, target: Target) -> None:
        """Record that a request was sent to a target."""
        health = self.healths.get(target) or self.health_of(target)
        health.in_flight += 1
        health.trial = health.ejected_until > 0

    def ended(self, target: Target, now: float, *, failed: bool | None, cause: str = "") -> None:
        """Record the end of a request.

        Args:
            target: the target that it was sent to.
            now: the time.
            failed: whether the target failed; None if the request shows nothing of it.
            cause: what failed, for the log.
        """
        health = self.healths[target]
        health.in_flight -= 1
        health.trial = False
        if failed is None:
            return
        if not failed:
            health.failures = 0
            health.ejected_until = health.seconds = 0.0
            return
        health.failures += 1
        health.failed, health.cause = now, cause
        ejection = self.service.ejection
        if health.ejected_until or health.failures >= ejection.failures:
            self._eject(health, ejection, now)

    def state_of(self, target: Target, now: float) -> TargetState | None:
        """Return how a target is unwell; None if it is well, or nothing is known of it."""
        health = self.healths.get(target)
        if health is None:
            return None
        if health.down:
            return "down"
        if not health.ejected_until and health.failures < self.service.ejection.failures:
            return None
        if now - max(health.failed, health.ejected_until) > _KNOWN_SECONDS:
            return None
        return "ejected" if health.ejected_until else "failing"

    def _eject(self, health: TargetHealth, ejection: Ejection, now: float) -> None:
        others = (self.health_of(target) for target in self.service.targets)
        if any(other is not health and other.available(now) for other in others):
            health.seconds = min(max(ejection.seconds, health.seconds * 2), ejection.longest)
            health.ejected_until = now + health.seconds
