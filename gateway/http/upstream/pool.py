"""The pool: sends each request to a target of a service, over a kept or a new connection.

`choose` returns the available target with the fewest requests in flight. A target that fails
several times in a row gets no requests for a period (passive ejection, as in Envoy's outlier
detection), and then a single trial request (half open); another failure doubles the period. The
last available target is never ejected, so that clients see the failures of a backend. Targets that
active health checks find down get no requests either.

`TargetConnections` keeps and opens the connections to one target, `ConcurrencyLimiter` bounds the
requests in flight to one service, and `ServicePool` is the state of one service between requests.
"""

import asyncio
import errno
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any, Final, Literal

from msgspec.structs import replace

from gateway.base.errors import Blame, Fault, FaultCode, FaultError
from gateway.base.headers import connection_options
from gateway.http.bounds import FairQueue, SlowClients, overloaded
from gateway.http.transport import WriteBatch
from gateway.http.upstream.body_ahead import ArrivingBody, BodyReadAhead
from gateway.http.upstream.connection import StreamedResponse, UpstreamConnection
from gateway.http.upstream.service import Ejection, Service, Target, Timeouts
from gateway.http.upstream.upstream import (
    NoRoomError,
    StaleConnectionError,
    UpstreamRequest,
    failure,
)

# The seconds after which the health of a target without requests counts as unknown, from its last
# failure or the end of its ejection.
_KNOWN_SECONDS = 300.0

TargetState = Literal["ejected", "failing", "down"]
"""Why a target is not healthy.

- ejected: it gets no requests, or one trial request;
- failing: it has failed as often, but gets requests, as no other target is available;
- down: health checks find it down.
"""


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
        batch: the transports that send at the end of the iteration of the event loop.
    """

    def __init__(
        self,
        target: Target,
        crowded: Callable[[], None],
        exhausted: Callable[[str], None],
        batch: WriteBatch,
    ) -> None:
        self._target = target
        self._crowded = crowded
        self._exhausted = exhausted
        self._batch = batch
        self._name = target.authority
        self._free: dict[UpstreamConnection, None] = {}  # in the order in which they became free
        self._open: set[UpstreamConnection] = set()
        self._waiting = FairQueue[UpstreamConnection]()
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
        """Return the first free or new connection, possibly one that another request has opened."""
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
        return UpstreamConnection(loop, self._name, self._lend, self._lost, self._batch)

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
    """Return whether a response closes its connection, as an unrequested 408 does."""
    fields = [value for name, value in response.fields if name.lower() == b"connection"]
    return any(b"close" in connection_options(value) for value in fields)


# Slow clients that occupy more than a quarter of the places give way to others.
_SPARED_SHARE = 4


class ConcurrencyLimiter:
    """Bounds the requests in flight to one service; the networks of clients take turns.

    Args:
        limit: the maximum number of requests in flight.
        line: the maximum number of waiting requests.
        patience: the longest wait in seconds.

    Attributes:
        free: the number of free places; hot code takes one itself.
        waiting: the waiting requests; hot code gives a place back itself if there are none.
        slow: the slow clients that keep the service waiting, and so a place.
    """

    def __init__(self, limit: int, line: int, patience: float) -> None:
        self.free = limit
        self._limit = limit
        self._line = line
        self._patience = patience
        self.waiting = FairQueue[None]()
        self.slow = SlowClients(limit // _SPARED_SHARE, lambda: self.waiting)

    @property
    def half_full(self) -> bool:
        """Whether half of the limit is used, which leaves no room for background requests."""
        return self.free * 2 <= self._limit

    def entered(self) -> bool:
        """Take a place if one is free; return whether one was."""
        if not self.free:
            return False
        self.free -= 1
        return True

    async def enter(self, network: str) -> None:
        """Take a place, and wait for it if none is free.

        Raises:
            FaultError: too many requests wait already, or no place became free in time.
        """
        if self.entered():
            return
        full = len(self.waiting) >= self._line
        if full and not self.waiting.displace(network, overloaded()):
            raise overloaded()
        place = self.waiting.join(network)
        self.slow.make_way()
        try:
            async with asyncio.timeout(self._patience):
                await place
        except BaseException as error:
            if place.done() and not place.cancelled() and place.exception() is None:
                self.leave()  # the place was granted just as the wait ended
            else:
                self.waiting.leave(network, place)
            if isinstance(error, TimeoutError):
                raise overloaded() from None
            raise

    def leave(self) -> None:
        """Release a place, or pass it to the next waiting request."""
        place = self.waiting.pop() if self.waiting.size else None
        if place is None:
            self.free += 1
        else:
            place.set_result(None)


# The retry budget: retries per request of a service, once the initial reserve is spent. When all
# targets fail, trying each in turn would add load and help nothing (Envoy's retry budget).
_RETRY_SHARE: Final = 0.2
_RETRY_RESERVE: Final = 10.0
# The share of a service's places that bodies may take that began to arrive while half of the places
# were taken, and are not read ahead. A quarter is left for requests that are complete.
_ARRIVING_SHARE = 0.25


@dataclass(slots=True)
class ServicePool:
    """The state of one service between requests.

    Attributes:
        healths: the health of its targets, as far as they got requests.
        turn: the number of choices among several targets.
        limiter: bounds the requests in flight.
        arriving: bounds the request bodies that arrive slowly while half of the places are taken.
        retries: the retries that are left.
    """

    service: Service
    limiter: ConcurrencyLimiter
    arriving: ConcurrencyLimiter
    healths: dict[Target, TargetHealth] = field(default_factory=dict)
    turn: int = 0
    retries: float = _RETRY_RESERVE


def service_pool(service: Service, healths: dict[Target, TargetHealth]) -> ServicePool:
    """Return the state of a service, with the known health of targets."""
    capacity = service.capacity
    few = max(1, int(capacity.in_flight * _ARRIVING_SHARE))
    return ServicePool(
        service,
        ConcurrencyLimiter(capacity.in_flight, capacity.queue, capacity.patience),
        ConcurrencyLimiter(few, capacity.queue, capacity.patience),
        healths,
    )


def choose(pool: ServicePool, now: float, tried: Collection[Target] = ()) -> Target | None:
    """Return the target for a request at the time `now`, in seconds; None if none is available."""
    targets = pool.service.targets
    if len(targets) == 1:
        only = targets[0]
        if tried:
            return None
        known = pool.healths.get(only)
        if known is not None and known.ejected_until == 0.0 and not known.down:
            return only  # the fast path for a healthy single target
        return only if health_of(pool, only).available(now) else None
    pool.turn += 1
    best: Target | None = None
    least = 0
    for step in range(len(targets)):
        target = targets[(pool.turn + step) % len(targets)]
        health = health_of(pool, target)
        if target in tried or not health.available(now):
            continue
        if best is None or health.in_flight < least:
            best, least = target, health.in_flight
    return best


def health_of(pool: ServicePool, target: Target) -> TargetHealth:
    health = pool.healths.get(target)
    if health is None:
        health = pool.healths[target] = TargetHealth()
    return health


def forget(pool: ServicePool, targets: Collection[Target]) -> None:
    """Forget the health of all other targets, except those with requests in flight."""
    pool.healths = {
        target: health
        for target, health in pool.healths.items()
        if target in targets or health.in_flight
    }


def begin(pool: ServicePool, target: Target) -> None:
    """Record that a request was sent to a target."""
    health = pool.healths.get(target) or health_of(pool, target)
    health.in_flight += 1
    health.trial = health.ejected_until > 0


def end(
    pool: ServicePool, target: Target, now: float, *, failed: bool | None, cause: str = ""
) -> None:
    """Record the end of a request.

    Args:
        target: the target that it was sent to.
        now: the time.
        failed: whether the target failed; None if the request shows nothing of it.
        cause: what failed, for the log.
    """
    health = pool.healths[target]
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
    ejection = pool.service.ejection
    if health.ejected_until or health.failures >= ejection.failures:
        _eject(pool, health, ejection, now)


def state_of(service: Service, health: TargetHealth | None, now: float) -> TargetState | None:
    """Return why a target is not healthy; None if it is, or if its health is unknown."""
    if health is None:
        return None
    if health.down:
        return "down"
    if not health.ejected_until and health.failures < service.ejection.failures:
        return None
    if now - max(health.failed, health.ejected_until) > _KNOWN_SECONDS:
        return None
    return "ejected" if health.ejected_until else "failing"


def _eject(pool: ServicePool, health: TargetHealth, ejection: Ejection, now: float) -> None:
    others = (health_of(pool, target) for target in pool.service.targets)
    if any(other is not health and other.available(now) for other in others):
        health.seconds = min(max(ejection.seconds, health.seconds * 2), ejection.longest)
        health.ejected_until = now + health.seconds


class Pool:
    """Sends requests to services over kept connections; implements `Upstream`.

    Args:
        count: a function that counts the requests that wait, by the kind of the counter and the
            service or the target.
        batch: the transports that send at the end of the iteration of the event loop.
    """

    def __init__(self, count: Callable[[str, str], None], batch: WriteBatch) -> None:
        self._count = count
        self._batch = batch
        self._services: dict[str, ServicePool] = {}
        self._targets: dict[Target, TargetConnections] = {}
        self._bodies = BodyReadAhead()

    async def send(  # noqa: C901  # one walk in one frame, for speed
        self, service: Service, request: UpstreamRequest, *, background: bool = False
    ) -> StreamedResponse:
        """Return the response as soon as its head has arrived.

        The request goes to the least busy target. If a target refuses the connection, the next one
        is tried, within the retry budget; see also `TargetConnections.send`.

        Raises:
            FaultError: the service gave no response.
            NoRoomError: the service has no spare capacity for a background request.
        """
        pool = self._services.get(service.name)
        if pool is None or pool.service is not service:
            pool = self._service_pool(service)
        if background:
            return await self._send_in_background(pool, request)
        arriving: ArrivingBody | None = None
        if request.body is not None and pool.limiter.half_full:
            request, arriving = await self._enter_busy(pool, request)
        elif pool.limiter.free:  # as in `ConcurrencyLimiter.entered`, for speed
            pool.limiter.free -= 1
        else:
            await self._wait(pool, pool.limiter, request)
        tried: tuple[Target, ...] = ()
        refused: FaultError | None = None
        try:
            while True:
                target = choose(pool, monotonic(), tried)
                if target is None or (tried and pool.retries < 1):
                    raise refused or _unavailable(service)
                if tried:
                    pool.retries -= 1
                elif pool.retries < _RETRY_RESERVE:
                    pool.retries += _RETRY_SHARE
                tried += (target,)
                begin(pool, target)
                try:
                    connections = self._targets.get(target) or self._connections(target)
                    response = await connections.send(request, service.timeouts)
                except ConnectError as error:
                    failed, cause = _is_failure(error), error.cause
                    end(pool, target, monotonic(), failed=failed, cause=cause)
                    refused = error.with_traceback(None)  # the traceback refers to this frame
                except BaseException as other:
                    failed, cause = _is_failure(other), _cause(other)
                    end(pool, target, monotonic(), failed=failed, cause=cause)
                    raise
                else:
                    response.ended, response.lent = _ended, (pool, target, arriving)
                    response.holders = pool.limiter.slow
                    return response
        except BaseException:
            pool.limiter.leave()
            if arriving is not None:
                arriving.leave()
            raise

    async def _enter_busy(
        self, pool: ServicePool, request: UpstreamRequest
    ) -> tuple[UpstreamRequest, ArrivingBody | None]:
        """Take a place for a request with a body, and one of the few for bodies still arriving."""
        request = await self._bodies.read(request)
        arriving: ArrivingBody | None = None
        if isinstance(request.body, AsyncIterator):
            await self._wait(pool, pool.arriving, request)
            arriving = ArrivingBody(request.body, pool.arriving.slow, pool.arriving.leave)
            request = replace(request, body=arriving)
        try:
            await self._wait(pool, pool.limiter, request)
        except BaseException:
            if arriving is not None:
                arriving.leave()
            raise
        return request, arriving

    async def _wait(
        self, pool: ServicePool, limiter: ConcurrencyLimiter, request: UpstreamRequest
    ) -> None:
        if not limiter.entered():
            self._count("in_flight_waits", pool.service.name)
            network = request.network()
            if limiter is pool.limiter:
                for target in pool.service.targets:
                    self._connections(target).make_way(network)
            await limiter.enter(network)

    async def _send_in_background(
        self, pool: ServicePool, request: UpstreamRequest
    ) -> StreamedResponse:
        if pool.limiter.half_full:
            raise NoRoomError(pool.service.name)
        target = choose(pool, monotonic())
        if target is None:
            raise _unavailable(pool.service)
        pool.limiter.entered()
        begin(pool, target)
        try:
            response = await self._connections(target).send(request, pool.service.timeouts)
        except BaseException:
            _ended_in_background(pool, target)
            raise
        response.ended = partial(_ended_in_background, pool, target)
        return response

    def is_down(self, service: Service, target: Target) -> bool:
        """Return whether active health checks have found a target down."""
        return health_of(self._service_pool(service), target).down

    def set_down(self, service: Service, target: Target, *, down: bool, cause: str = "") -> None:
        """Set whether a target is down, and why; such a target gets probes, and no requests."""
        health = health_of(self._service_pool(service), target)
        health.down, health.down_cause = down, cause

    def healths(self, service: Service) -> dict[Target, TargetHealth]:
        """Return the health of the targets of a service, as far as they got requests."""
        return self._service_pool(service).healths

    def _service_pool(self, service: Service) -> ServicePool:
        # A reload keeps the health of targets, and the limiter if the capacity is unchanged.
        known = self._services.get(service.name)
        if known is not None and known.service is service:
            return known
        if known is not None and known.service.capacity == service.capacity:
            known.service = service
            return known
        made = service_pool(service, {} if known is None else known.healths)
        self._services[service.name] = made
        return made

    def follow(self, services: Iterable[Service]) -> None:
        """Forget the health of targets that these services no longer have."""
        for service in services:
            known = self._services.get(service.name)
            if known is not None:
                forget(known, service.targets)

    def close(self) -> None:
        """Close every connection."""
        for connections in self._targets.values():
            connections.close()

    async def probe(
        self, target: Target, request: UpstreamRequest, timeouts: Timeouts
    ) -> StreamedResponse:
        """Return the response of one target, regardless of its health and of all limits.

        Raises:
            ConnectError: no connection could be opened.
            FaultError: the target gave no response.
        """
        return await self._connections(target).send(request, timeouts)

    def _connections(self, target: Target) -> TargetConnections:
        known = self._targets.get(target)
        if known is None:
            crowded = partial(self._count, "connection_waits", target.authority)
            exhausted = partial(self._count, "local_connect_failures")
            known = self._targets[target] = TargetConnections(
                target, crowded, exhausted, self._batch
            )
        return known


def _ended(response: StreamedResponse) -> None:
    pool, target, arriving = response.lent
    if arriving is not None:
        arriving.leave()
    if response.complete:
        end(pool, target, monotonic(), failed=False)
    else:
        failed, cause = _is_failure(response.error), _cause(response.error)
        end(pool, target, monotonic(), failed=failed, cause=cause)
    limiter = pool.limiter
    if limiter.waiting.size:
        limiter.leave()
    else:  # as in `ConcurrencyLimiter.leave`, for speed
        limiter.free += 1


def _ended_in_background(
    pool: ServicePool, target: Target, _: StreamedResponse | None = None
) -> None:
    end(pool, target, monotonic(), failed=None)
    pool.limiter.leave()


def _is_failure(error: BaseException | None) -> bool | None:
    """Whether an error is the target's failure; None if it shows nothing of its health."""
    if isinstance(error, FaultError):
        return error.fault.blame is Blame.UPSTREAM or None
    return None


def _cause(error: BaseException | None) -> str:
    return error.cause if isinstance(error, FaultError) else ""


def _unavailable(service: Service) -> FaultError:
    fault = Fault(
        FaultCode.UPSTREAM_UNAVAILABLE,
        "No backend is well enough to be asked; try again.",
        fields=((b"Retry-After", b"5"),),
    )
    return FaultError(fault, f"{service.name}: no healthy target")
