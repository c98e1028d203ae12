"""The pool: sends each request to a target of a service, over a kept or a new connection.

Every address of a target is selected, checked and ejected separately; `resolver` keeps the
addresses of host names up to date. `ServicePool` selects the available address with the fewest
requests in flight or, with different weights, by weight. An address that fails several times in a
row gets no requests for a period (passive ejection, as in Envoy's outlier detection), and then a
single trial request (half open). Another failure doubles the period. The last available address is
never ejected, so that clients receive the error responses of a service. Addresses that active
health checks mark as down get no requests either.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from functools import partial
from time import monotonic
from typing import Final, Literal

from msgspec.structs import replace

from gateway.base.errors import Blame, FaultCode, FaultError, temporary_fault
from gateway.http.bounds import ConcurrencyLimiter
from gateway.http.transport import WriteBatch
from gateway.http.upstream.body_ahead import ArrivingBody, BodyReadAhead
from gateway.http.upstream.connection import StreamedResponse
from gateway.http.upstream.resolver import Lookup, Resolver, resolve
from gateway.http.upstream.service import Ejection, RetryCause, Service, Target, Timeouts
from gateway.http.upstream.target_connections import (
    AddressLeftError,
    ConnectError,
    TargetConnections,
    address_label,
)
from gateway.http.upstream.upstream import (
    NoRoomError,
    UpstreamRequest,
    failure,
)

# The seconds without requests, since the last failure or the end of the ejection, after which the
# health of an address counts as unknown.
_KNOWN_SECONDS = 300.0

TargetState = Literal["ejected", "failing", "down", "unresolved"]
"""Why a target is not healthy.

- ejected: it gets no requests, or one trial request;
- failing: it has failed often enough to be ejected, but still gets requests, as no other target is
  available;
- down: health checks mark it as down;
- unresolved: its host name has no address.
"""


class TargetAddress:
    """An address of a target: its health, and its connections.

    Attributes:
        host: the IP address, or the host of the target if it needs no DNS lookup.
        failures: the number of consecutive failures.
        ejected_until: the end of the ejection; 0 if the address is not ejected.
        seconds: the length of the last ejection in seconds; 0 if there was none.
        trial: whether the trial request after an ejection is in flight.
        down_cause: the reason of the failed health check; empty if the address is not down.
        cause: the reason of the last failure; empty before the first one.
        turn: the virtual time of its next selection (see `ServicePool.time`), if weights differ.
    """

    __slots__ = (
        "cause",
        "connections",
        "down",
        "down_cause",
        "ejected_until",
        "failed",
        "failures",
        "host",
        "in_flight",
        "label",
        "seconds",
        "target",
        "trial",
        "turn",
    )

    def __init__(self, target: Target, host: str, connections: "TargetConnections") -> None:
        self.target = target
        self.host = host
        self.label = address_label(target, host)
        self.connections = connections
        self.in_flight = 0
        self.failures = 0
        self.ejected_until = 0.0
        self.seconds = 0.0
        self.trial = False
        self.down = False
        self.down_cause = ""
        self.failed = 0.0
        self.cause = ""
        self.turn = 0.0

    def available(self, now: float) -> bool:
        return not self.down and now >= self.ejected_until and not self.trial

    def began(self) -> None:
        self.in_flight += 1
        self.trial = self.ejected_until > 0

    def state(self, ejection: Ejection, now: float) -> TargetState | None:
        """Return why the address is not healthy; None if it is healthy or its health is unknown."""
        if self.down:
            return "down"
        if not self.ejected_until and self.failures < ejection.failures:
            return None
        if now - max(self.failed, self.ejected_until) > _KNOWN_SECONDS:
            return None
        return "ejected" if self.ejected_until else "failing"


# The retries that a service always has, even if its retry budget is used up (as in Envoy). Retries
# after `connect` are not charged: the service gets each of these requests once.
_RETRY_RESERVE: Final = 10.0
# The share of a service's places for bodies that are still arriving and are not read ahead, if they
# began to arrive while half of the places were occupied. The other places remain for complete
# requests.
_ARRIVING_SHARE = 0.25


# An address is slow if it has more than this multiple of its share of the requests in flight, plus
# one. Each request beyond that delays its next selection by this many steps.
_SLOW_SHARE: Final = 1.25
_SLOW_PENALTY: Final = 2


class ServicePool:
    """The state of one service between requests: addresses, limiters and retry budget.

    Callers pass the current time as `now`, in seconds.

    Attributes:
        time: the virtual time of the weighted selection: that of the latest selection.
    """

    def __init__(
        self, service: Service, limiter: ConcurrencyLimiter, arriving: ConcurrencyLimiter
    ) -> None:
        self.service = service
        self.limiter = limiter
        self.arriving = arriving
        self.addresses: tuple[TargetAddress, ...] = ()
        self.weighted = False
        self.time = 0.0
        self.retries = _RETRY_RESERVE
        self._next = 0

    def choose(self, now: float, tried: Collection[TargetAddress] = ()) -> TargetAddress | None:
        addresses = self.addresses
        if len(addresses) == 1:
            only = addresses[0]
            return only if only not in tried and only.available(now) else None
        if self.weighted:
            return self._by_weight(now, tried)
        # From the one after the last selection: an address that is busy or failing would otherwise
        # pass all of its turns to the same neighbour.
        first, count = self._next + 1, len(addresses)
        best: TargetAddress | None = None
        least = 0
        for step in range(first, first + count):
            address = addresses[step % count]
            if address in tried or not address.available(now):
                continue
            if best is None or address.in_flight < least:
                best, least, self._next = address, address.in_flight, step % count
        return best

    def readmit(self, now: float) -> TargetAddress | None:
        """End all ejections, and select an address; None if health checks mark all as down.

        Called if no address is available: the addresses that were available when the others were
        ejected have been removed or marked as down.
        """
        for address in self.addresses:
            if not address.down:
                address.ejected_until = address.seconds = 0.0
                address.trial = False
        return self.choose(now)

    def _by_weight(self, now: float, tried: Collection[TargetAddress]) -> TargetAddress | None:
        """Select the address that is due first (EDF, as Envoy schedules weighted hosts).

        The larger the weight of an address, the sooner it is due again. An address with far more
        than its share of the requests in flight is slow, and is selected later.
        """
        best: TargetAddress | None = None
        earliest = 0.0
        in_flight = weights = 0
        for address in self.addresses:
            in_flight += address.in_flight
            weights += address.target.weight
            if address not in tried and address.available(now):
                turn = max(address.turn, self.time)  # missed turns are not repeated later
                if best is None or turn < earliest:
                    best, earliest = address, turn
        if best is not None:
            weight = best.target.weight
            excess = best.in_flight - 1 - _SLOW_SHARE * in_flight * weight / weights
            self.time = earliest
            best.turn = earliest + (1 + _SLOW_PENALTY * max(0.0, excess)) / weight
        return best

    def retry(
        self,
        now: float,
        request: UpstreamRequest,
        tried: tuple[TargetAddress, ...],
        cause: RetryCause | int,
    ) -> TargetAddress | None:
        """Return the address for another attempt and charge the retry budget; None for no retry.

        Args:
            request: the request. If the cause is `connect`, nothing of it was sent.
            cause: why the last attempt failed. Status codes that are not in RetryCause cause no
                retry.
        """
        retries = self.service.retries
        if (
            cause not in retries.on
            or (cause != "connect" and not (request.repeatable and self.retries >= 1))
            or (retries.attempts is not None and len(tried) > retries.attempts)
        ):
            return None
        address = self.choose(now, tried)
        if address is None and retries.attempts is not None:
            address = self.choose(now)
        if address is not None and cause != "connect":
            self.retries -= 1
        return address

    def ended(self, address: TargetAddress, now: float, failed: bool | None, cause: str) -> None:
        """`failed` is None if the request says nothing about the address's health."""
        address.in_flight -= 1
        address.trial = False
        if failed is None:
            return
        if not failed:
            address.failures = 0
            address.ejected_until = address.seconds = 0.0
            return
        address.failures += 1
        address.failed, address.cause = now, cause
        ejection = self.service.ejection
        if not address.ejected_until and address.failures < ejection.failures:
            return
        if any(other is not address and other.available(now) for other in self.addresses):
            address.seconds = min(max(ejection.seconds, address.seconds * 2), ejection.longest)
            address.ejected_until = now + address.seconds
            address.connections.dismiss()


class Pool:
    """Sends requests to services over kept connections; implements `Upstream`.

    Args:
        unresolved: called with a host name and the reason when its lookups start to fail, and with
            None when they succeed again.
    """

    def __init__(
        self,
        count: Callable[..., None],
        batch: WriteBatch,
        unresolved: Callable[[str, str | None], None] = lambda _, __: None,
        lookup: Lookup = resolve,
    ) -> None:
        self._count = count
        self._batch = batch
        self._services: dict[str, ServicePool] = {}
        self._retired: list[TargetConnections] = []
        self._bodies = BodyReadAhead()
        self._resolver = Resolver(self._readdress, unresolved, lookup)
        self.readdressed: Callable[[], None] = _ignore

    async def send(  # noqa: C901  # one function, for speed
        self, service: Service, request: UpstreamRequest, *, background: bool = False
    ) -> StreamedResponse:
        """Return the response as soon as its head has arrived; raises FaultError or NoRoomError.

        The request goes to the least busy address. If the attempt fails for one of the causes in
        `service.retries`, the request goes to another address, within the retry budget. See also
        `TargetConnections.send`.
        """
        pool = self._services.get(service.name)
        if pool is None or pool.service is not service:
            pool = self._service_pool(service)
        if not pool.addresses:
            await self._find_addresses(pool)
        if background:
            return await self._send_in_background(pool, request)
        arriving: ArrivingBody | None = None
        if request.body is not None and pool.limiter.half_full:
            request, arriving = await self._enter_busy(pool, request)
        elif pool.limiter.free:  # `ConcurrencyLimiter.entered`, inlined for speed
            pool.limiter.free -= 1
        else:
            await self._wait(pool, pool.limiter, request)
        try:
            began = monotonic()
            address = pool.choose(began) or pool.readmit(began)
            if address is None:
                raise _unavailable(service)
            timeouts = service.timeouts
            if pool.retries < _RETRY_RESERVE:
                pool.retries += service.retries.budget / 100
            tried: tuple[TargetAddress, ...] = ()
            while True:
                tried += (address,)
                address.in_flight += 1
                address.trial = address.ejected_until > 0
                try:
                    response = await address.connections.send(request, timeouts)
                except AddressLeftError:
                    pool.ended(address, monotonic(), None, "")
                    timeouts = service.timeouts.after(monotonic() - began)
                    tried = tried[:-1]
                    address = await self._another(pool, tried)
                except FaultError as error:
                    now = monotonic()
                    pool.ended(address, now, _is_failure(error), error.cause)
                    cause = _retry_cause(error)
                    timeouts = service.timeouts.after(now - began)
                    again = timeouts.whole > 0 and cause and pool.retry(now, request, tried, cause)
                    if not again:
                        raise
                    self._count("retries", service.name, str(cause))
                    address = again
                except BaseException:
                    pool.ended(address, monotonic(), None, "")
                    raise
                else:
                    if response.status >= 502:
                        now = monotonic()
                        timeouts = service.timeouts.after(now - began)
                        again = timeouts.whole > 0 and pool.retry(
                            now, request, tried, response.status
                        )
                        if again:
                            response.abandon()
                            pool.ended(address, monotonic(), False, "")
                            self._count("retries", service.name, str(response.status))
                            address = again
                            continue
                    response.ended, response.lent = _ended, (pool, address, arriving)
                    response.holders = pool.limiter.slow
                    return response
        except BaseException:
            pool.limiter.leave()
            if arriving is not None:
                arriving.leave()
            raise

    async def _find_addresses(self, pool: ServicePool) -> None:
        service = pool.service
        reason: str | None = None
        name = service.targets[0].authority
        lookups = [
            asyncio.ensure_future(self._resolver.wait(host))
            for host in {target.host: None for target in service.targets}
        ]
        try:
            async with asyncio.timeout(service.timeouts.connect):
                for lookup in asyncio.as_completed(lookups):
                    reason = await lookup or reason
                    if pool.addresses:
                        return
        except TimeoutError:
            raise failure(FaultCode.UPSTREAM_TIMEOUT, name, "no address in time") from None
        finally:
            for each in lookups:
                each.cancel()
        raise failure(FaultCode.UPSTREAM_UNREACHABLE, name, reason or "it has no address")

    async def _another(self, pool: ServicePool, tried: tuple[TargetAddress, ...]) -> TargetAddress:
        """Return an address for a request that left its address before anything was sent."""
        if not pool.addresses:
            await self._find_addresses(pool)
        now = monotonic()
        address = pool.choose(now, tried) or pool.choose(now) or pool.readmit(now)
        if address is None:
            raise _unavailable(pool.service)
        return address

    async def _enter_busy(
        self, pool: ServicePool, request: UpstreamRequest
    ) -> tuple[UpstreamRequest, ArrivingBody | None]:
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
                for address in pool.addresses:
                    address.connections.make_way(network)
            await limiter.enter(network)

    async def _send_in_background(
        self, pool: ServicePool, request: UpstreamRequest
    ) -> StreamedResponse:
        if pool.limiter.half_full:
            raise NoRoomError(pool.service.name)
        address = pool.choose(monotonic()) or pool.readmit(monotonic())
        if address is None:
            raise _unavailable(pool.service)
        pool.limiter.entered()
        address.began()
        try:
            response = await address.connections.send(request, pool.service.timeouts)
        except BaseException:
            _ended_in_background(pool, address)
            raise
        response.ended = partial(_ended_in_background, pool, address)
        return response

    async def probe(
        self, address: TargetAddress, request: UpstreamRequest, timeouts: Timeouts
    ) -> StreamedResponse:
        """Ignore health and all limits; raises ConnectError, or FaultError without a response."""
        return await address.connections.send(request, timeouts)

    def addresses(self, service: Service) -> tuple[TargetAddress, ...]:
        return self._service_pool(service).addresses

    def unresolved(self, target: Target) -> str | None:
        """Return why a target has no address; None if it has one or is still looked up."""
        return None if self._resolver.addresses(target.host) else self._resolver.error(target.host)

    def follow(self, services: Iterable[Service]) -> None:
        """From now on, serve exactly these services and look up their host names."""
        latest = {service.name: service for service in services}
        for name in self._services.keys() - latest.keys():
            self._retire(each.connections for each in self._services.pop(name).addresses)
        hosts: dict[str, float] = {}
        for service in latest.values():
            for target in service.targets:
                seconds = hosts.get(target.host, service.resolve_seconds)
                hosts[target.host] = min(seconds, service.resolve_seconds)
        self._resolver.follow(hosts)
        for service in latest.values():
            self._service_pool(service)

    def close(self) -> None:
        self._resolver.close()
        for pool in self._services.values():
            for address in pool.addresses:
                address.connections.close()
        for connections in self._retired:
            connections.close()

    def _service_pool(self, service: Service) -> ServicePool:
        # A reload keeps the addresses. It keeps the limiters if the capacity is unchanged.
        known = self._services.get(service.name)
        if known is not None and known.service is service:
            return known
        capacity = service.capacity
        if known is None or known.service.capacity != capacity:
            limiter = ConcurrencyLimiter(capacity.in_flight, capacity.queue, capacity.patience)
            few = max(1, int(capacity.in_flight * _ARRIVING_SHARE))
            arriving = ConcurrencyLimiter(few, capacity.queue, capacity.patience)
            former, known = known, ServicePool(service, limiter, arriving)
            known.addresses = () if former is None else former.addresses
            self._services[service.name] = known
        known.service = service
        self._update(known)
        return known

    def _readdress(self, host: str) -> None:
        for pool in self._services.values():
            if any(target.host == host for target in pool.service.targets):
                self._update(pool)
        self.readdressed()

    def _update(self, pool: ServicePool) -> None:
        service = pool.service
        known = {_identity(each.target, each.host): each for each in pool.addresses}
        latest: list[TargetAddress] = []
        for target in service.targets:
            self._resolver.add(target.host, service.resolve_seconds)
            for host in self._resolver.addresses(target.host):
                connections = self._new_connections(service, target, host)
                address = known.pop(_identity(target, host), None)
                if address is None:
                    address = TargetAddress(target, host, connections)
                elif not connections.secured_as(address.connections):
                    self._retire([address.connections])  # the address keeps its health
                    address.connections = connections
                address.target, address.connections.service = target, service
                if service.health is None:
                    address.down = False
                latest.append(address)
        self._retire(each.connections for each in known.values())
        pool.addresses = tuple(latest)
        pool.weighted = len({each.target.weight for each in latest}) > 1

    def _retire(self, retired: Iterable[TargetConnections]) -> None:
        self._retired = [each for each in self._retired if each.busy]
        for connections in retired:
            connections.retire()
            self._retired.append(connections)

    def _new_connections(self, service: Service, target: Target, host: str) -> TargetConnections:
        crowded = partial(self._count, "connection_waits", target.authority)
        exhausted = partial(self._count, "local_connect_failures")
        return TargetConnections(service, target, host, crowded, exhausted, self._batch)


def _identity(target: Target, host: str) -> tuple[str, int, bool, str]:
    return target.host, target.port, target.secure, host


def _ignore() -> None:
    pass


def _retry_cause(error: FaultError) -> RetryCause | None:
    if isinstance(error, ConnectError):
        return "connect"
    return _RETRY_CAUSES.get(error.fault.code)


_RETRY_CAUSES: Final[dict[FaultCode, RetryCause]] = {
    FaultCode.UPSTREAM_UNREACHABLE: "reset",
    FaultCode.UPSTREAM_PROTOCOL: "reset",
    FaultCode.UPSTREAM_TIMEOUT: "timeout",
}


def _ended(response: StreamedResponse) -> None:
    pool, address, arriving = response.lent
    if arriving is not None:
        arriving.leave()
    if response.complete:
        pool.ended(address, monotonic(), False, "")
    else:
        error = response.error
        pool.ended(address, monotonic(), _is_failure(error), _cause(error))
    limiter = pool.limiter
    if limiter.waiting.size:
        limiter.leave()
    else:  # `ConcurrencyLimiter.leave`, inlined for speed
        limiter.free += 1


def _ended_in_background(
    pool: ServicePool, address: TargetAddress, _: StreamedResponse | None = None
) -> None:
    pool.ended(address, monotonic(), None, "")
    pool.limiter.leave()


def _is_failure(error: BaseException | None) -> bool | None:
    """Return whether the target failed; None if the error does not indicate its health."""
    if isinstance(error, FaultError):
        return error.fault.blame is Blame.UPSTREAM or None
    return None


def _cause(error: BaseException | None) -> str:
    return error.cause if isinstance(error, FaultError) else ""


def _unavailable(service: Service) -> FaultError:
    detail = "No backend is healthy; try again."
    fault = temporary_fault(FaultCode.UPSTREAM_UNAVAILABLE, detail, 5)
    return FaultError(fault, f"{service.name}: no healthy target")
