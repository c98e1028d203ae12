"""Active health checks: request a path from every address of a service at intervals."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Protocol

from gateway.base.errors import Blame, FaultError
from gateway.base.headers import PSEUDONYM
from gateway.http.upstream.pool import Pool, TargetAddress
from gateway.http.upstream.service import CLIENT_HOST, TARGET_HOST, Health, Service, Timeouts
from gateway.http.upstream.upstream import UpstreamRequest


class StoppableTask(Protocol):
    def stop(self) -> None:
        """Stop the task permanently."""


StartTask = Callable[[str, Callable[[], Coroutine[None, None, None]]], StoppableTask]
"""Starts a task from its name and coroutine function, and restarts it whenever it fails."""


class HealthChecks:
    """Runs the health checks of the configured services.

    Args:
        report: called after each change with the service, the address, and the reason why the
            address is down, or None if it is up.
    """

    def __init__(
        self,
        pool: Pool,
        report: Callable[[Service, TargetAddress, str | None], None],
        start: StartTask,
    ) -> None:
        self._pool = pool
        self._start = start
        self._report = report
        self._tasks: dict[tuple[Service, TargetAddress], StoppableTask] = {}

    def follow(self, services: Iterable[Service]) -> None:
        """From now on, check the addresses of exactly these services."""
        wanted = {
            (service, address): service.health
            for service in services
            if service.health is not None
            for address in self._pool.addresses(service)
        }
        for key in self._tasks.keys() - wanted.keys():
            self._tasks.pop(key).stop()
        for (service, address), health in wanted.items():
            if (service, address) not in self._tasks:
                check = partial(self._check, service, health, address)
                self._tasks[service, address] = self._start("health_check", check)

    def stop(self) -> None:
        for task in self._tasks.values():
            task.stop()
        self._tasks = {}

    async def _check(self, service: Service, health: Health, address: TargetAddress) -> None:
        in_a_row = 0
        while True:
            try:
                failure = await self._probe(service, health, address)
            except FaultError:
                await asyncio.sleep(health.interval)
                continue
            down = address.down
            in_a_row = in_a_row + 1 if (failure is None) == down else 0
            if in_a_row >= (health.up_after if down else health.down_after):
                address.down, address.down_cause = not down, failure or ""
                in_a_row = 0
                if not down:
                    address.connections.dismiss()
                self._report(service, address, failure)
            await asyncio.sleep(health.interval)

    async def _probe(self, service: Service, health: Health, address: TargetAddress) -> str | None:
        """Return the reason for a failure, or None; raises FaultError if the gateway failed."""
        seconds = health.timeout
        timeouts = Timeouts(seconds, seconds, seconds, seconds)
        fields = [(b"User-Agent", PSEUDONYM)]
        # A health check has no client, so with `host: client` the Host field is that of the target.
        host = None if service.host in (CLIENT_HOST, TARGET_HOST) else service.host.encode()
        request = UpstreamRequest("GET", health.path, fields, host)
        try:
            response = await self._pool.probe(address, request, timeouts)
        except FaultError as error:
            if error.fault.blame is Blame.GATEWAY:
                raise
            return _reason(error, address)
        try:
            while await response.read():
                pass
        except FaultError as late:
            return _reason(late, address)
        finally:
            response.abandon()
        return None if 200 <= response.status <= 299 else f"status {response.status}"


def _reason(error: FaultError, address: TargetAddress) -> str:
    return error.cause.removeprefix(f"{address.label}: ")
