"""The connections to all services, kept and shared."""

import asyncio
from collections import defaultdict

from gateway.core.errors import Code, Failed, Fault
from gateway.core.service import Service, Target
from gateway.wire.connection import Connection, Stale
from gateway.wire.incoming import Incoming
from gateway.wire.upstream import Request

# Shorter than what servers usually grant, so that they rarely close a connection just as it is
# taken up again.
_KEEP_IDLE = 30.0


class Pool:
    """Sends requests over kept connections; see `upstream.Upstream`."""

    def __init__(self) -> None:
        self._idle: dict[Target, list[Connection]] = defaultdict(list)
        self._all: set[Connection] = set()
        self._turn: dict[str, int] = defaultdict(int)

    async def send(self, service: Service, request: Request) -> Incoming:
        """Return the response as soon as its head is there.

        The targets take turns. One that refuses the connection is passed over; a kept connection
        that turns out to be closed is replaced if the request may be sent twice.

        Raises:
            Failed: there is no response.
        """
        turn = self._turn[service.name]
        self._turn[service.name] = turn + 1
        failure: Failed | None = None
        for step in range(len(service.targets)):
            target = service.targets[(turn + step) % len(service.targets)]
            connection = self._take(target)
            if connection is not None:
                try:
                    return await connection.exchange(request, service.timeouts)
                except Stale:
                    if not request.repeatable:
                        raise _unreachable(target, "it closed a kept connection") from None
            try:
                connection = await self._connect(target, service.timeouts.connect)
            except Failed as error:
                failure = error
            else:
                return await connection.exchange(request, service.timeouts)
        assert failure is not None  # a service has at least one target
        raise failure

    def close(self) -> None:
        """Close every connection."""
        for connection in tuple(self._all):
            connection.close()

    def _take(self, target: Target) -> Connection | None:
        idle = self._idle[target]
        while idle:
            connection = idle.pop()
            if connection.usable:
                return connection
        return None

    async def _connect(self, target: Target, seconds: float) -> Connection:
        loop = asyncio.get_running_loop()
        idle = self._idle[target]

        def release(connection: Connection) -> None:
            connection.expire(_KEEP_IDLE)
            idle.append(connection)

        def make() -> Connection:
            return Connection(loop, target.authority, release, self._all)

        try:
            async with asyncio.timeout(seconds):
                _, connection = await loop.create_connection(make, target.host, target.port)
        except TimeoutError:
            fault = Fault(Code.UPSTREAM_TIMEOUT, "The backend could not be reached in time.")
            raise Failed(fault, f"{target.authority}: no connection in time") from None
        except OSError as error:
            raise _unreachable(target, error.strerror or str(error)) from None
        return connection


def _unreachable(target: Target, what: str) -> Failed:
    fault = Fault(Code.UPSTREAM_UNREACHABLE, "The backend could not be reached.")
    return Failed(fault, f"{target.authority}: {what}")
