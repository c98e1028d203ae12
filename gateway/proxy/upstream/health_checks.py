"""Active health checks: every target of a service is asked now and then whether it is well."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Protocol

from gateway.core.errors import FaultError
from gateway.core.headers import PSEUDONYM
from gateway.core.service import Health, Service, Target, Timeouts
from gateway.proxy.upstream.pool import ConnectError, Pool
from gateway.proxy.upstream.upstream import UpstreamRequest


class StoppableTask(Protocol):
    """A task that runs until it is stopped."""

    def stop(self) -> None:
        """Stop it for good."""


StartTask = Callable[[str, Callable[[], Coroutine[None, None, None]]], StoppableTask]
"""Starts a task, by its name and the function that runs it, and again whenever it fails."""


class HealthChecks:
    """Runs the checks that the current rules ask for.

    Args:
        pool: knows the targets and how they stand.
        report: called with service, target and whether it is well, each time that changes.
        start: starts a task for each target.
    """

    def __init__(
        self, pool: Pool, report: Callable[[Service, Target, bool], None], start: StartTask
    ) -> None:
        self._pool = pool
        self._start = start
        self._report = report
        self._tasks: list[StoppableTask] = []

    def follow(self, services: Iterable[Service]) -> None:
        """Check the targets of these services from now on, and no others."""
        self.stop()
        for service in services:
            for target in service.targets:
                if service.health is None:
                    self._pool.members(service).balancer.health_of(target).down = False
                else:
                    check = partial(self._check, service, service.health, target)
                    self._tasks.append(self._start("health_check", check))

    def stop(self) -> None:
        """Check nothing any more."""
        for task in self._tasks:
            task.stop()
        self._tasks = []

    async def _check(self, service: Service, health: Health, target: Target) -> None:
        state = self._pool.members(service).balancer.health_of(target)
        in_a_row = 0
        while True:
            well = await self._ask(health, target)
            in_a_row = in_a_row + 1 if well == state.down else 0
            if in_a_row >= (health.up_after if state.down else health.down_after):
                state.down, in_a_row = not well, 0
                self._report(service, target, well)
            await asyncio.sleep(health.interval)

    async def _ask(self, health: Health, target: Target) -> bool:
        seconds = health.timeout
        timeouts = Timeouts(seconds, seconds, seconds, seconds)
        fields = [(b"User-Agent", PSEUDONYM)]
        try:
            response = await self._pool.ask(
                target, timeouts, UpstreamRequest("GET", health.path, fields)
            )
        except (FaultError, ConnectError):
            return False
        try:
            while await response.read():
                pass
        except FaultError:
            return False
        finally:
            response.abandon()
        return 200 <= response.status <= 299
