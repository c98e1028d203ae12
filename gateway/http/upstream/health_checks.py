"""Active health checks: probe every target of a service at intervals."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Protocol

from gateway.base.errors import Blame, FaultError
from gateway.base.headers import PSEUDONYM
from gateway.http.upstream.service import (
    CLIENT_HOST,
    TARGET_HOST,
    Health,
    Service,
    Target,
    Timeouts,
)
from gateway.http.upstream.upstream import Upstream, UpstreamRequest


class StoppableTask(Protocol):
    """A task that runs until it is stopped."""

    def stop(self) -> None:
        """Stop the task permanently."""


StartTask = Callable[[str, Callable[[], Coroutine[None, None, None]]], StoppableTask]
"""Starts a task, given its name and coroutine function, and restarts it whenever it fails."""


class HealthChecks:
    """Runs the health checks of the current rules.

    Args:
        upstream: the interface that probes the targets and keeps their health.
        report: a function called at each change with service, target and why the target is down;
            None if it is up.
        start: a function that starts the task of a target.
    """

    def __init__(
        self,
        upstream: Upstream,
        report: Callable[[Service, Target, str | None], None],
        start: StartTask,
    ) -> None:
        self._upstream = upstream
        self._start = start
        self._report = report
        self._tasks: list[StoppableTask] = []

    def follow(self, services: Iterable[Service]) -> None:
        """Check the targets of these services, and no others, from now on."""
        self.stop()
        for service in services:
            for target in service.targets:
                if service.health is None:
                    self._upstream.set_down(service, target, down=False)
                else:
                    check = partial(self._check, service, service.health, target)
                    self._tasks.append(self._start("health_check", check))

    def stop(self) -> None:
        """Stop all health checks."""
        for task in self._tasks:
            task.stop()
        self._tasks = []

    async def _check(self, service: Service, health: Health, target: Target) -> None:
        in_a_row = 0
        while True:
            try:
                failure = await self._probe(service, health, target)
            except FaultError:
                await asyncio.sleep(health.interval)
                continue
            down = self._upstream.is_down(service, target)
            in_a_row = in_a_row + 1 if (failure is None) == down else 0
            if in_a_row >= (health.up_after if down else health.down_after):
                self._upstream.set_down(service, target, down=not down, cause=failure or "")
                in_a_row = 0
                self._report(service, target, failure)
            await asyncio.sleep(health.interval)

    async def _probe(self, service: Service, health: Health, target: Target) -> str | None:
        """Return why a check failed, or None if it passed.

        Raises:
            FaultError: the gateway could not check the target.
        """
        seconds = health.timeout
        timeouts = Timeouts(seconds, seconds, seconds, seconds)
        fields = [(b"User-Agent", PSEUDONYM)]
        # No client sends a Host, so `client` has that of the target.
        host = None if service.host in (CLIENT_HOST, TARGET_HOST) else service.host.encode()
        request = UpstreamRequest("GET", health.path, fields, host)
        try:
            response = await self._upstream.probe(target, request, timeouts)
        except FaultError as error:
            if error.fault.blame is Blame.GATEWAY:
                raise
            return _reason(error, target)
        try:
            while await response.read():
                pass
        except FaultError as late:
            return _reason(late, target)
        finally:
            response.abandon()
        return None if 200 <= response.status <= 299 else f"status {response.status}"


def _reason(error: FaultError, target: Target) -> str:
    return error.cause.removeprefix(f"{target.authority}: ")
