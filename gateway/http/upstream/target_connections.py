"""The connections to one address of a target: opened, with TLS if configured, kept and reused."""

import asyncio
import errno
import re
import ssl
from collections.abc import Callable
from functools import partial
from math import inf
from random import random
from time import monotonic
from typing import Any, Final

from gateway.base.errors import Fault, FaultCode, FaultError, temporary_fault
from gateway.base.headers import connection_options
from gateway.http.bounds import FairQueue, overloaded
from gateway.http.tls import TlsConnection
from gateway.http.tls_errors import TlsError
from gateway.http.transport import WriteBatch
from gateway.http.upstream.connection import StreamedResponse, UpstreamConnection
from gateway.http.upstream.resolver import has_route
from gateway.http.upstream.service import Service, Target, Timeouts
from gateway.http.upstream.upstream import StaleConnectionError, UpstreamRequest, failure


def address_label(target: Target, host: str) -> str:
    return target.authority if host == target.host else f"{target.authority} ({host})"


# The maximum number of connections to a target that are being opened at a time.
_MOST_OPENING = 16
# The lifetime of a connection is randomly shortened by up to this share, so that connections do not
# all end at once.
_AGE_JITTER: Final = 0.25
# The errors for which this machine cannot open a connection, regardless of the target, with their
# label in metrics.
_LOCAL_ERRORS: Final = {
    errno.EADDRNOTAVAIL: "ports",
    errno.EMFILE: "files",
    errno.ENFILE: "files",
    errno.ENOBUFS: "memory",
    errno.ENOMEM: "memory",
}
# If a name has several addresses, uvloop raises one error with the messages of all of them.
_ERROR_NUMBER: Final = re.compile(r"\[Errno (\d+)\]")


# CPython 3.10 to 3.13 leak 6.6 kB whenever a session is read, so this number of seconds passes
# between two reads.
_SESSION_SECONDS: Final = 600.0
# A session is read this number of seconds after the handshake, when its ticket has arrived.
_TICKET_SECONDS: Final = 1.0


class ConnectError(FaultError):
    """No connection could be opened, so nothing was sent."""


class AddressLeftError(ConnectError):
    """The address gets no requests any more, so a waiting request needs another address."""


class TargetConnections:
    """Opens, keeps and reuses the connections to one address of a target.

    Args:
        crowded: called when a request waits for a connection although the maximum number of
            connections is being opened.
        exhausted: called with the reason when this machine cannot open a connection to any target.

    Attributes:
        retired: whether no new exchange may begin.
    """

    def __init__(
        self,
        service: Service,
        target: Target,
        host: str,
        crowded: Callable[[], None],
        exhausted: Callable[[str], None],
        batch: WriteBatch,
    ) -> None:
        self.service = service
        self._host, self._port = host, target.port
        self._address = None if host == target.host else host
        self.tls = service.tls if target.secure else None
        # Without the dot that ends an absolute name (RFC 6066, section 3).
        self.server_name = (service.server_name or target.host).removesuffix(".")
        self._session: ssl.SSLSession | None = None  # resumed by new connections
        self._session_source: TlsConnection | None = None  # provides the next session
        self._session_due = 0.0
        self._crowded = crowded
        self._exhausted = exhausted
        self._batch = batch
        self._name = address_label(target, host)
        self._target, self._host_field = target.authority, target.host_field.encode()
        self.retired = False
        self._free: dict[UpstreamConnection, None] = {}  # in the order in which they became free
        self._open: set[UpstreamConnection] = set()
        self._waiting = FairQueue[UpstreamConnection]()
        self._opening: set[asyncio.Task[None]] = set()

    def make_way(self, network: str) -> None:
        """Refuse a request of the network with most requests waiting here, in favour of `network`.

        The refused request releases its place at the service, for which the request of `network`
        waits.
        """
        self._waiting.displace(network, overloaded())

    async def send(self, request: UpstreamRequest, timeouts: Timeouts) -> StreamedResponse:
        """Return the response as soon as its head has arrived; raises ConnectError or FaultError.

        A new connection replaces a kept one that turns out to be closed, or on which the service
        sent 408 because it stopped waiting, provided that the request may be sent twice or was not
        sent at all (as in Go's net/http).
        """
        began = 0.0 if timeouts.whole == inf else monotonic()
        streamed = not request.complete  # it cannot be sent again
        rested = self._take(look=streamed)
        connection = rested or await self._wait(request.network(), timeouts.connect, look=streamed)
        try:
            response = await connection.send(request, timeouts).arrived()
        except StaleConnectionError as stale:
            if not (request.complete if stale.unsent else request.repeatable):
                what = "it closed a kept connection"
                raise failure(FaultCode.UPSTREAM_UNREACHABLE, self._name, what) from None
        else:
            if response.status != 408 or not (rested and request.repeatable and _closes(response)):
                return response
            response.abandon()  # the service most likely sent it before the request arrived
        if began:
            timeouts = timeouts.after(monotonic() - began)
        connection = await self._connect(timeouts.connect)
        return await connection.send(request, timeouts).arrived()

    def close(self) -> None:
        for opening in self._opening:
            opening.cancel()
        for connection in tuple(self._open):
            connection.close()

    def secured_as(self, other: "TargetConnections") -> bool:
        return (self.tls, self.server_name) == (other.tls, other.server_name)

    @property
    def busy(self) -> bool:
        return bool(self._open)

    def retire(self) -> None:
        """Close the idle connections now, and each other connection after its exchange."""
        self.retired = True
        for connection in tuple(self._free):
            connection.close()
        self.dismiss()

    def dismiss(self) -> None:
        """End the waits for a connection with AddressLeftError, so requests go elsewhere."""
        while (place := self._waiting.pop()) is not None:
            place.set_exception(AddressLeftError(_LEFT, f"{self._name}: the address is not used"))

    def _take(self, *, look: bool) -> UpstreamConnection | None:
        while self._free:
            connection, _ = self._free.popitem()
            if connection.is_usable(look=look):
                return connection
        return None

    async def _wait(self, network: str, seconds: float, *, look: bool) -> UpstreamConnection:
        """Return the next idle or new connection, possibly one opened for another request."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    connection = await self._next(network, seconds)
                    if connection.is_usable(look=look, idle=False):
                        return connection
                    if connection.refusal:  # another connection would be refused as well
                        raise self._error(FaultCode.UPSTREAM_UNREACHABLE, connection.refusal)
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
                self._lend(place.result())  # the connection came just as the wait was cancelled
            raise

    def _open_more(self, seconds: float) -> None:
        while len(self._opening) < min(len(self._waiting), _MOST_OPENING):
            task = asyncio.get_running_loop().create_task(self._open_one(seconds))
            self._opening.add(task)

    async def _open_one(self, seconds: float) -> None:
        try:
            connection = await self._connect(seconds)
        except Exception as error:  # after any error, the request would wait in vain
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
        loop = asyncio.get_running_loop()
        connection = UpstreamConnection(
            loop, self._name, self._target, self._host_field, self._release, self._lost, self._batch
        )
        try:
            async with asyncio.timeout(seconds):
                await self._open_transport(loop, connection, seconds)
        except TimeoutError:
            raise self._error(FaultCode.UPSTREAM_TIMEOUT, "no connection in time") from None
        except TlsError as refused:
            raise self._error(FaultCode.UPSTREAM_UNREACHABLE, str(refused)) from None
        except OSError as error:
            what = error.strerror or str(error)
            reason = _local_reason(error)
            # EADDRNOTAVAIL: no free port, or no address of the family of the target.
            if reason is not None and (reason != "ports" or has_route(self._host)):
                self._exhausted(reason)
                raise ConnectError(_EXHAUSTED, f"{self._name}: {what}") from None
            raise self._error(FaultCode.UPSTREAM_UNREACHABLE, what) from None
        if not connection.is_usable():  # lost before this task resumed
            what = connection.refusal or "it closed the connection"
            raise self._error(FaultCode.UPSTREAM_UNREACHABLE, what)
        connection.address = self._address
        age = self.service.connection_seconds * (1 - _AGE_JITTER * random())  # noqa: S311  # no secret depends on it
        connection.retire_at = loop.time() + age
        self._open.add(connection)
        return connection

    async def _open_transport(
        self, loop: asyncio.AbstractEventLoop, connection: UpstreamConnection, seconds: float
    ) -> None:
        """Connect, and complete the TLS handshake if TLS is configured; raises OSError."""
        # Any, since the classes have the methods of asyncio.Protocol but are no subclasses of it.
        protocol: Any = connection
        if self.tls is None:
            await loop.create_connection(lambda: protocol, self._host, self._port)
            return
        shaken: asyncio.Future[None] = loop.create_future()
        if self._session_source is not None and loop.time() >= self._session_due:
            self._session, self._session_source = self._session_source.tls.session, None
            self._session_due = loop.time() + _SESSION_SECONDS
        secure: Any = TlsConnection(
            loop,
            protocol,
            self.tls,
            seconds,
            partial(_end_wait, shaken),
            self.server_name,
            self._session,
        )
        try:
            await loop.create_connection(lambda: secure, self._host, self._port)
            await shaken
        except BaseException:
            secure.abort()
            raise
        if not secure.tls.session_reused and self._session_source is None:
            self._session_source = secure
            self._session_due = max(self._session_due, loop.time() + _TICKET_SECONDS)

    def _release(self, connection: UpstreamConnection) -> None:
        if connection.rested_since < connection.retire_at:
            self._lend(connection)
        else:
            connection.close()
            self._open_more(self.service.timeouts.connect)

    def _lend(self, connection: UpstreamConnection) -> None:
        place = self._waiting.pop() if self._waiting.size else None
        if place is not None:
            place.set_result(connection)
        elif self.retired:
            connection.close()
        else:
            self._free[connection] = None

    def _lost(self, connection: UpstreamConnection) -> None:
        self._open.discard(connection)
        self._free.pop(connection, None)

    def _error(self, code: FaultCode, what: str) -> ConnectError:
        known = failure(code, self._name, what)
        return ConnectError(known.fault, known.cause, known.target)


def _end_wait(shaken: asyncio.Future[None], _: TlsConnection, error: TlsError | None) -> None:
    if shaken.done():  # the wait was cancelled
        return
    if error is None:
        shaken.set_result(None)
    else:
        shaken.set_exception(error)


_EXHAUSTED: Final = temporary_fault(
    FaultCode.GATEWAY_EXHAUSTED, "The gateway cannot open a connection at the moment; try again."
)


_LEFT: Final = Fault(FaultCode.OVERLOADED, "The backend's address is not used any more; try again.")


def _local_reason(error: OSError) -> str | None:
    """Return why this machine cannot connect to any target; None if the target caused the error.

    If a name has several addresses, all of them must fail for a local reason: `::1` fails so on a
    machine without IPv6, while another address may refuse the connection.
    """
    numbers = [error.errno] if error.errno is not None else _ERROR_NUMBER.findall(str(error))
    reasons = [_LOCAL_ERRORS.get(int(number)) for number in numbers]
    return reasons[-1] if reasons and None not in reasons else None


def _closes(response: StreamedResponse) -> bool:
    """Return whether a response closes its connection, as an unrequested 408 does."""
    fields = [value for name, value in response.fields if name.lower() == b"connection"]
    return any(b"close" in connection_options(value) for value in fields)
