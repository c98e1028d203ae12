"""The connections to one target: the free ones, and the requests that wait for one.

A request that finds no free connection waits for whichever comes first: a connection that another
request is done with, or a new one. New ones are opened for the waiting requests, but only a few at
a time: a burst would overflow the backlog of the service, and the kernel tries again only after a
second.
"""

import asyncio
import errno
import re
from collections.abc import Callable
from typing import Any, Final

from gateway.base.errors import Fault, FaultCode, FaultError
from gateway.base.headers import connection_options
from gateway.http.bounds.limiter import overloaded
from gateway.http.turns.fair_line import FairLine
from gateway.http.turns.turn_writes import TurnWrites
from gateway.http.upstream.service import Target, Timeouts
from gateway.http.upstream.streamed_response import StreamedResponse
from gateway.http.upstream.upstream import StaleConnectionError, UpstreamRequest, failure
from gateway.http.upstream.upstream_connection import UpstreamConnection

# The maximum number of connections to a target that are opened at a time.
_MOST_OPENING = 16
# The errors by which this machine opens no connection, whatever the target does, and the reasons
# that metrics have for them.
_LOCAL_ERRORS: Final = {
    errno.EADDRNOTAVAIL: "ports",
    errno.EMFILE: "files",
    errno.ENFILE: "files",
    errno.ENOBUFS: "memory",
    errno.ENOMEM: "memory",
}
# Of a name with several addresses, uvloop raises one error with the texts of all of them.
_ERROR_NUMBER: Final = re.compile(r"\[Errno (\d+)\]")


class ConnectError(FaultError):
    """No connection could be opened, so nothing was sent."""


class TargetConnections:
    """Keeps, opens and lends the connections to one target.

    Args:
        target: the target.
        crowded: a function that is called when a request waits for a connection although as many
            as possible are being opened.
        exhausted: a function that is called with the reason when this machine cannot open a
            connection to any target.
        writes: what sends the requests of a turn of the event loop.
    """

    def __init__(
        self,
        target: Target,
        crowded: Callable[[], None],
        exhausted: Callable[[str], None],
        writes: TurnWrites,
    ) -> None:
        self._target = target
        self._crowded = crowded
        self._exhausted = exhausted
        self._writes = writes
        self._name = target.authority
        self._free: dict[UpstreamConnection, None] = {}  # in the order in which they became free
        self._open: set[UpstreamConnection] = set()
        self._waiting = FairLine[UpstreamConnection]()
        self._opening: set[asyncio.Task[None]] = set()

    def make_way(self, network: str) -> None:
        """Refuse a request of the network that has most waiting here, for one of another.

        It has a place at the service, for which the other one waits.
        """
        self._waiting.displace(network, overloaded())

    async def send(self, request: UpstreamRequest, timeouts: Timeouts) -> StreamedResponse:
        """Return the response as soon as its head has arrived.

        If a kept connection turns out to be closed, or the service has given up waiting there, a
        new one replaces it, provided that the request may be sent twice.

        Raises:
            ConnectError: no connection could be opened.
            FaultError: the target gave no response.
        """
        rested = self._take()
        connection = rested or await self._wait(request.network(), timeouts.connect)
        try:
            response = await connection.send(request, timeouts).arrived()
        except StaleConnectionError:
            if not request.repeatable:
                what = "it closed a kept connection"
                raise failure(FaultCode.UPSTREAM_UNREACHABLE, self._name, what) from None
        else:
            if response.status != 408 or not (rested and request.repeatable and _closes(response)):
                return response
            response.abandon()  # most likely it was sent before the request arrived
        connection = await self._connect(timeouts.connect)
        return await connection.send(request, timeouts).arrived()

    def close(self) -> None:
        """Close every connection."""
        for opening in self._opening:
            opening.cancel()
        for connection in tuple(self._open):
            connection.close()

    def _take(self) -> UpstreamConnection | None:
        while self._free:
            connection, _ = self._free.popitem()
            if connection.is_usable():
                return connection
        return None

    async def _wait(self, network: str, seconds: float) -> UpstreamConnection:
        """Return the first connection that is free or new; it may be opened for another request."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    connection = await self._next(network, seconds)
                    if connection.is_usable():
                        return connection
        except TimeoutError:
            raise self._error(FaultCode.UPSTREAM_TIMEOUT, "no connection in time") from None

    async def _next(self, network: str, seconds: float) -> UpstreamConnection:
        place = self._waiting.join(network)
        self._open_more(seconds)
        if len(self._waiting) > len(self._opening):
            self._crowded()
        try:
            return await place
        except asyncio.CancelledError:
            if place.cancelled():
                self._waiting.leave(network, place)
            elif place.exception() is None:
                self._lend(place.result())  # it came just as the wait ended
            raise

    def _open_more(self, seconds: float) -> None:
        while len(self._opening) < min(len(self._waiting), _MOST_OPENING):
            task = asyncio.get_running_loop().create_task(self._open_one(seconds))
            self._opening.add(task)

    async def _open_one(self, seconds: float) -> None:
        """Open a connection for the requests that wait; a failure ends the wait of the first."""
        try:
            connection = await self._connect(seconds)
        except ConnectError as error:
            place = self._waiting.pop()
            if place is not None:
                place.set_exception(error.with_traceback(None))
        else:
            connection.expire(connection.may_rest)
            self._lend(connection)
        finally:
            task = asyncio.current_task()
            assert task is not None
            self._opening.discard(task)
        self._open_more(seconds)

    async def _connect(self, seconds: float) -> UpstreamConnection:
        connection: UpstreamConnection
        host, port = self._target.host, self._target.port
        try:
            async with asyncio.timeout(seconds):
                loop = asyncio.get_running_loop()
                _, connection = await loop.create_connection(self._new, host, port)
        except TimeoutError:
            raise self._error(FaultCode.UPSTREAM_TIMEOUT, "no connection in time") from None
        except OSError as error:
            what = error.strerror or str(error)
            reason = _local_reason(error)
            if reason is not None:
                self._exhausted(reason)
                raise ConnectError(_EXHAUSTED, f"{self._name}: {what}") from None
            raise self._error(FaultCode.UPSTREAM_UNREACHABLE, what) from None
        if not connection.is_usable():  # lost before this task resumed
            raise self._error(FaultCode.UPSTREAM_UNREACHABLE, "it closed the connection")
        self._open.add(connection)
        return connection

    def _new(self) -> Any:
        # Any, since it has the methods of an asyncio.Protocol without deriving from it.
        loop = asyncio.get_running_loop()
        return UpstreamConnection(loop, self._name, self._lend, self._lost, self._writes)

    def _lend(self, connection: UpstreamConnection) -> None:
        """Pass a free connection to the first request that waits, or keep it for the next one."""
        place = self._waiting.pop() if self._waiting.size else None
        if place is None:
            self._free[connection] = None
        else:
            place.set_result(connection)

    def _lost(self, connection: UpstreamConnection) -> None:
        self._open.discard(connection)
        self._free.pop(connection, None)

    def _error(self, code: FaultCode, what: str) -> ConnectError:
        known = failure(code, self._name, what)
        return ConnectError(known.fault, known.cause, known.target)


_EXHAUSTED: Final = Fault(
    FaultCode.GATEWAY_EXHAUSTED,
    "The gateway can open no connection at the moment; try again.",
    fields=((b"Retry-After", b"1"),),
)


def _local_reason(error: OSError) -> str | None:
    """Return why this machine cannot connect to any target; None for an error of the target.

    Of a name with several addresses, all have to fail so: `::1` has no local address where the
    machine has no IPv6, and another address may still refuse the connection.
    """
    numbers = [error.errno] if error.errno is not None else _ERROR_NUMBER.findall(str(error))
    reasons = [_LOCAL_ERRORS.get(int(number)) for number in numbers]
    return reasons[-1] if reasons and None not in reasons else None


def _closes(response: StreamedResponse) -> bool:
    """Return whether a response closes its connection, as a 408 that nobody asked for does."""
    fields = [value for name, value in response.fields if name.lower() == b"connection"]
    return any(b"close" in connection_options(value) for value in fields)
