"""The target watch: which targets fail, as one serving process sees them.

It looks once a second, so that requests do nothing for it.
"""

import asyncio
import time
from collections.abc import Callable, Iterable

import msgspec

from gateway.http.upstream.balancer import Balancer, TargetState
from gateway.http.upstream.service import Service
from gateway.observe import log

# Seconds between two looks; an ejection lasts longer.
_INTERVAL = 1.0


class FailingTarget(msgspec.Struct, array_like=True, frozen=True):
    """A target that fails, or gets no requests, in one process.

    Attributes:
        service: the name of the service.
        target: the address of the target.
        state: how it is unwell.
        since: when that began, in seconds since 1970.
        error: what failed at last.
    """

    service: str
    target: str
    state: TargetState
    since: float
    error: str


ReportTargets = Callable[[list[FailingTarget]], None]
"""Takes all targets that fail in a process, whenever that has changed."""


class TargetWatch:
    """Reports the targets that fail, and logs when one begins to and when one is well again.

    Args:
        balancer: a function that returns the balancer of a service.
        report: takes the targets.
    """

    def __init__(self, balancer: Callable[[Service], Balancer], report: ReportTargets) -> None:
        self._balancer = balancer
        self._report = report
        self._known: dict[tuple[str, str], FailingTarget] = {}

    async def run(self, services: Callable[[], Iterable[Service]]) -> None:
        """Look at the targets of the services of the moment, until cancelled."""
        while True:
            self.look(services(), time.monotonic(), time.time())
            await asyncio.sleep(_INTERVAL)

    def look(self, services: Iterable[Service], now: float, clock: float) -> None:
        """Report and log what has changed since the last look.

        Args:
            services: those of the rules.
            now: the time of the balancers, in seconds.
            clock: the time in seconds since 1970.
        """
        found: dict[tuple[str, str], FailingTarget] = {}
        for service in services:
            balancer = self._balancer(service)
            for target in service.targets:
                state = balancer.state_of(target, now)
                if state is not None:
                    key = service.name, target.authority
                    known = self._known.get(key)
                    since = clock if known is None else known.since
                    health = balancer.healths[target]
                    error = health.cause.removeprefix(f"{target.authority}: ")
                    if state == "down":
                        error = f"health check: {health.down_cause}"
                    found[key] = FailingTarget(*key, state, since, error)
        if found != self._known:
            self._log(found)
            self._known = found
            self._report([*found.values()])

    def _log(self, found: dict[tuple[str, str], FailingTarget]) -> None:
        """Log what has changed; the health checks log themselves what they find."""
        for key, latest in found.items():
            former = self._known.get(key)
            if former is None or former.state != latest.state:
                about = {"service": key[0], "target": key[1], "reason": latest.error}
                if latest.state == "ejected":
                    log.event("target_ejected", "warning", **about)
                elif latest.state == "failing":
                    log.event("target_failing", "warning", **about)
        for (service, target), former in self._known.items():
            if (service, target) not in found and former.state != "down":
                log.event("target_recovered", service=service, target=target)
