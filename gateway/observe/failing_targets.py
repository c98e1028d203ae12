"""Failing targets: detected by each serving process, and reported by service.

A process checks its targets once a second, so that requests cause no extra work.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from gateway.http.upstream.pool import Pool, TargetState
from gateway.http.upstream.service import Service
from gateway.observe import log

# Seconds between checks. An ejection always lasts longer.
_INTERVAL = 1.0


class FailingTarget(msgspec.Struct, array_like=True, frozen=True):
    """An address of a failing target, as seen by one process.

    Attributes:
        address: the target, followed by the resolved IP address if the target is a host name.
        state: the kind of failure, such as "down" or "ejected".
        since: the start of the failure, in seconds since 1970.
    """

    service: str
    target: str
    address: str
    addresses: int
    state: TargetState
    since: float
    error: str


ReportTargets = Callable[[list[FailingTarget]], None]
"""Receives all failing targets of a process whenever the list has changed."""


class TargetWatch:
    """Reports failing targets, and logs when a target starts to fail and when it recovers."""

    def __init__(self, pool: Pool, report: ReportTargets) -> None:
        self._pool = pool
        self._report = report
        self._known: dict[tuple[str, str], FailingTarget] = {}

    async def run(self, services: Callable[[], Iterable[Service]]) -> None:
        while True:
            self.look(services(), time.monotonic(), time.time())
            await asyncio.sleep(_INTERVAL)

    def look(self, services: Iterable[Service], now: float, clock: float) -> None:
        """`now` is on the pool's monotonic clock, and `clock` the wall clock, both in seconds."""
        found: dict[tuple[str, str], FailingTarget] = {}
        for service in services:
            for target, label, count, state, error in self._unwell(service, now):
                key = service.name, label
                known = self._known.get(key)
                since = clock if known is None else known.since
                found[key] = FailingTarget(service.name, target, label, count, state, since, error)
        if found != self._known:
            self._log(found)
            self._known = found
            self._report([*found.values()])

    def _unwell(
        self, service: Service, now: float
    ) -> Iterator[tuple[str, str, int, TargetState, str]]:
        addresses = self._pool.addresses(service)
        for each in addresses:
            state = each.state(service.ejection, now)
            if state is not None:
                error = each.cause.removeprefix(f"{each.label}: ")
                if state == "down":
                    error = f"health check: {each.down_cause}"
                yield each.target.authority, each.label, len(addresses), state, error
        for target in service.targets:
            reason = self._pool.unresolved(target)
            if reason is not None:
                name = target.authority
                yield name, name, max(1, len(addresses)), "unresolved", reason

    def _log(self, found: dict[tuple[str, str], FailingTarget]) -> None:
        """Log changes that are not logged by health checks and lookups."""
        for key, latest in found.items():
            former = self._known.get(key)
            if former is None or former.state != latest.state:
                about = {"service": key[0], "target": key[1], "reason": latest.error}
                if latest.state == "ejected":
                    log.event("target_ejected", "warning", **about)
                elif latest.state == "failing":
                    log.event("target_failing", "warning", **about)
        for (service, target), former in self._known.items():
            if (service, target) not in found and former.state in ("ejected", "failing"):
                log.event("target_recovered", service=service, target=target)


# The maximum number of targets listed with their errors.
_LISTED = 3
# Error texts are truncated to this length.
_ERROR = 200


class TargetError(msgspec.Struct, array_like=True, frozen=True):
    """A failing target, the start of the failure in seconds since 1970, and its latest error."""

    target: str
    since: float
    error: str


class FailingService(msgspec.Struct, array_like=True, frozen=True):
    """`since` is when the latest failure began; `listed` has the three longest-failing targets."""

    service: str
    targets: int
    failing: int
    since: float
    listed: list[TargetError]

    @property
    def whole(self) -> bool:
        return self.failing >= self.targets


def failing_services(
    targets: Iterable[FailingTarget], services: Mapping[str, Service], ahead: float = 0.0
) -> Iterator[FailingService]:
    """`targets` may have a target once per process; the fleet's clock is `ahead` seconds ahead."""
    found: dict[str, dict[str, FailingTarget]] = {}
    for each in sorted(targets, key=lambda one: one.since):
        found.setdefault(each.service, {}).setdefault(each.address, each)
    for name, first in found.items():
        service = services.get(name)
        known = set() if service is None else {each.authority for each in service.targets}
        failing = [each for each in first.values() if each.target in known]
        if failing:
            count = max(len(known), *(each.addresses for each in failing))
            listed = [
                TargetError(each.address, each.since + ahead, each.error[:_ERROR])
                for each in failing[:_LISTED]
            ]
            since = failing[-1].since + ahead
            yield FailingService(name, count, len(failing), since, listed)
