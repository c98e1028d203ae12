"""The connection pool: kept connections to all targets, their health, and concurrency limits."""

from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Final

from msgspec.structs import replace

from gateway.base.errors import Blame, Fault, FaultCode, FaultError
from gateway.http.bounds.limiter import ConcurrencyLimiter
from gateway.http.turns.turn_writes import TurnWrites
from gateway.http.upstream.balancer import Balancer
from gateway.http.upstream.body_ahead import ArrivingBody, BodiesAhead
from gateway.http.upstream.service import Service, Target, Timeouts
from gateway.http.upstream.streamed_response import StreamedResponse
from gateway.http.upstream.target_connections import ConnectError, TargetConnections
from gateway.http.upstream.upstream import NoRoomError, UpstreamRequest

# The retry budget: retries per request of a service, once the initial reserve is spent. When all
# targets fail, trying each in turn would add load and help nothing (Envoy's retry budget).
_RETRY_SHARE: Final = 0.2
_RETRY_RESERVE: Final = 10.0
# The share of a service's places that bodies may take that began to arrive while half of the places
# were taken, and are not read ahead. A quarter is left for requests that are complete.
_ARRIVING_SHARE = 0.25


@dataclass(slots=True)
class ServicePool:
    """The state of one service between requests: balancer, limiters and retry budget."""

    service: Service
    balancer: Balancer
    limiter: ConcurrencyLimiter
    arriving: ConcurrencyLimiter
    retries: float = _RETRY_RESERVE


class Pool:
    """Sends requests to services over kept connections; implements `Upstream`.

    Args:
        count: a function that counts the requests that wait, by the kind of the counter and the
            service or the target.
        writes: what sends the requests of a turn of the event loop.
    """

    def __init__(self, count: Callable[[str, str], None], writes: TurnWrites) -> None:
        self._count = count
        self._writes = writes
        self._members: dict[str, ServicePool] = {}
        self._targets: dict[Target, TargetConnections] = {}
        self._bodies = BodiesAhead()

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
        members = self._members.get(service.name)
        if members is None or members.service is not service:
            members = self._service_pool(service)
        if background:
            return await self._send_in_background(members, request)
        arriving: ArrivingBody | None = None
        if request.body is not None and members.limiter.half_full:
            request, arriving = await self._enter_busy(members, request)
        elif not members.limiter.entered():
            await self._wait(members, members.limiter, request)
        balancer = members.balancer
        tried: tuple[Target, ...] = ()
        refused: FaultError | None = None
        try:
            while True:
                target = balancer.choose(monotonic(), tried)
                if target is None or (tried and members.retries < 1):
                    raise refused or _unavailable(service)
                if tried:
                    members.retries -= 1
                elif members.retries < _RETRY_RESERVE:
                    members.retries += _RETRY_SHARE
                tried += (target,)
                balancer.began(target)
                try:
                    connections = self._targets.get(target) or self._connections(target)
                    response = await connections.send(request, service.timeouts)
                except ConnectError as error:
                    failed, cause = _is_failure(error), error.cause
                    balancer.ended(target, monotonic(), failed=failed, cause=cause)
                    refused = error.with_traceback(None)  # the traceback refers to this frame
                except BaseException as other:
                    failed, cause = _is_failure(other), _cause(other)
                    balancer.ended(target, monotonic(), failed=failed, cause=cause)
                    raise
                else:
                    response.ended, response.lent = _ended, (members, target, arriving)
                    response.holders = members.limiter.slow
                    return response
        except BaseException:
            members.limiter.leave()
            if arriving is not None:
                arriving.leave()
            raise

    async def _enter_busy(
        self, members: ServicePool, request: UpstreamRequest
    ) -> tuple[UpstreamRequest, ArrivingBody | None]:
        """Take a place for a request with a body, and one of the few for bodies still arriving."""
        request = await self._bodies.read(request)
        arriving: ArrivingBody | None = None
        if isinstance(request.body, AsyncIterator):
            await self._wait(members, members.arriving, request)
            arriving = ArrivingBody(request.body, members.arriving)
            request = replace(request, body=arriving)
        try:
            await self._wait(members, members.limiter, request)
        except BaseException:
            if arriving is not None:
                arriving.leave()
            raise
        return request, arriving

    async def _wait(
        self, members: ServicePool, limiter: ConcurrencyLimiter, request: UpstreamRequest
    ) -> None:
        if not limiter.entered():
            self._count("in_flight_waits", members.service.name)
            network = request.network()
            if limiter is members.limiter:
                for target in members.service.targets:
                    self._connections(target).make_way(network)
            await limiter.enter(network)

    async def _send_in_background(
        self, members: ServicePool, request: UpstreamRequest
    ) -> StreamedResponse:
        if members.limiter.half_full:
            raise NoRoomError(members.service.name)
        target = members.balancer.choose(monotonic())
        if target is None:
            raise _unavailable(members.service)
        members.limiter.entered()
        members.balancer.began(target)
        try:
            response = await self._connections(target).send(request, members.service.timeouts)
        except BaseException:
            _ended_in_background(members, target)
            raise
        response.ended = partial(_ended_in_background, members, target)
        return response

    def is_down(self, service: Service, target: Target) -> bool:
        """Return whether active health checks have found a target down."""
        return self._service_pool(service).balancer.health_of(target).down

    def set_down(self, service: Service, target: Target, *, down: bool, cause: str = "") -> None:
        """Set whether a target is down, and why; such a target gets probes, and no requests."""
        health = self._service_pool(service).balancer.health_of(target)
        health.down, health.down_cause = down, cause

    def balancer(self, service: Service) -> Balancer:
        """Return the balancer of a service."""
        return self._service_pool(service).balancer

    def _service_pool(self, service: Service) -> ServicePool:
        # A reload keeps the health of targets, and the limiter if the capacity is unchanged.
        known = self._members.get(service.name)
        if known is not None and known.service is service:
            return known
        capacity = service.capacity
        if known is not None and known.service.capacity == capacity:
            known.service = known.balancer.service = service
            return known
        healths = known.balancer.healths if known is not None else {}
        limiter = ConcurrencyLimiter(capacity.in_flight, capacity.queue, capacity.patience)
        few = max(1, int(capacity.in_flight * _ARRIVING_SHARE))
        arriving = ConcurrencyLimiter(few, capacity.queue, capacity.patience)
        balancer = Balancer(service, healths)
        self._members[service.name] = ServicePool(service, balancer, limiter, arriving)
        return self._members[service.name]

    def follow(self, services: Iterable[Service]) -> None:
        """Forget the health of targets that these services no longer have."""
        for service in services:
            known = self._members.get(service.name)
            if known is not None:
                known.balancer.forget(service.targets)

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
                target, crowded, exhausted, self._writes
            )
        return known


def _ended(response: StreamedResponse) -> None:
    members, target, arriving = response.lent
    if arriving is not None:
        arriving.leave()
    if response.complete:
        members.balancer.ended(target, monotonic(), failed=False)
    else:
        failed, cause = _is_failure(response.error), _cause(response.error)
        members.balancer.ended(target, monotonic(), failed=failed, cause=cause)
    members.limiter.leave()


def _ended_in_background(
    members: ServicePool, target: Target, _: StreamedResponse | None = None
) -> None:
    members.balancer.ended(target, monotonic(), failed=None)
    members.limiter.leave()


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
