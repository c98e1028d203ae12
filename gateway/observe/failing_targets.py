"""Failing targets: as one serving process sees them, and as a gateway reports them by service.

A process looks at its targets once a second, so that requests do nothing for it.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from gateway.http.upstream.pool import TargetHealth, TargetState, state_of
from gateway.http.upstream.service import Service, Target
from gateway.observe import log

# Seconds between two looks; an ejection lasts longer.
_INTERVAL = 1.0


class FailingTarget(msgspec.Struct, array_like=True, frozen=True):
    """A target that fails, or gets no requests, in one process.

    Attributes:
        state: how it is unwell.
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
    """Reports the targets that fail, and logs when one begins to and when one is well again."""

    def __init__(
        self, healths: Callable[[Service], Mapping[Target, TargetHealth]], report: ReportTargets
    ) -> None:
        self._healths = healths
        self._report = report
        self._known: dict[tuple[str, str], FailingTarget] = {}

    async def run(self, services: Callable[[], Iterable[Service]]) -> None:
        while True:
            self.look(services(), time.monotonic(), time.time())
            await asyncio.sleep(_INTERVAL)

    def look(self, services: Iterable[Service], now: float, clock: float) -> None:
        """Report and log what has changed since the last look.

        Args:
            now: the time, in monotonic seconds.
        """
        found: dict[tuple[str, str], FailingTarget] = {}
        for service in services:
            healths = self._healths(service)
            for target in service.targets:
                state = state_of(service, healths.get(target), now)
                if state is not None:
                    key = service.name, target.authority
                    known = self._known.get(key)
                    since = clock if known is None else known.since
                    health = healths[target]
                    error = health.cause.removeprefix(f"{target.authority}: ")
                    if state == "down":
                        error = f"health check: {health.down_cause}"
                    found[key] = FailingTarget(*key, state, since, error)
        if found != self._known:
            self._log(found)
            self._known = found
            self._report([*found.values()])

    def _log(self, found: dict[tuple[str, str], FailingTarget]) -> None:
        """Log changes, except those that health checks log themselves."""
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


# The number of targets that are listed with their errors.
_LISTED = 3
# Error texts are truncated to this length.
_ERROR = 200


class TargetError(msgspec.Struct, array_like=True, frozen=True):
    """A target that fails, since when in seconds since 1970, and its last error."""

    target: str
    since: float
    error: str


class FailingService(msgspec.Struct, array_like=True, frozen=True):
    """A service with targets that fail.

    Attributes:
        since: when the latest of them began to, in seconds since 1970.
        listed: the first few of them to fail.
    """

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
    """Yield the services with targets that fail.

    Args:
        targets: the targets that fail, once for each process in which they do.
        ahead: by how many seconds the time of the fleet is ahead of theirs.
    """
    found: dict[str, dict[str, FailingTarget]] = {}
    for each in sorted(targets, key=lambda one: one.since):
        found.setdefault(each.service, {}).setdefault(each.target, each)
    for name, first in found.items():
        service = services.get(name)
        known = set() if service is None else {each.authority for each in service.targets}
        failing = [
            TargetError(target, each.since + ahead, each.error[:_ERROR])
            for target, each in first.items()
            if target in known
        ]
        if failing:
            since = failing[-1].since
            yield FailingService(name, len(known), len(failing), since, failing[:_LISTED])
