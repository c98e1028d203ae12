"""Counts the outcomes of requests in cutovers, and the requests that are overdue."""

from bisect import bisect_left
from collections.abc import Collection
from math import inf
from typing import Protocol

from gateway.base.errors import FaultCode
from gateway.base.overrides import VersionKey
from gateway.rollout.cutover import CutoverRoute
from gateway.rollout.gates import GateLimits
from gateway.rollout.route_outcomes import FAILED, outcome_of
from gateway.rollout.shadow import WRITES
from gateway.routing.snapshot import Endpoint, Snapshot
from gateway.usage.delta import (
    BOUNDS,
    METHODS,
    OTHER,
    CutoverDelta,
    OperationDelta,
    OperationName,
)
from gateway.versions.version import Version

_OVERDUE = GateLimits().overdue
# The maximum number of counts by operation in one delta, over all versions, routes and cells.
# Requests of further operations are counted only in the sums.
_MOST_OPERATIONS = 256

CutoverPlace = tuple[str, str, str, int]
"""The key of the counts of a cutover: the API, the version, the route and the cell."""


class CutoverRequest(Protocol):
    snapshot: Snapshot
    endpoint: Endpoint | None
    version: Version | None
    method: str
    client: str
    cutover_route: CutoverRoute | None
    status: int
    code: str | None
    aborted: bool
    began: float


class CutoverCounts:
    """The counts of cutover requests since the last `take`, and the requests in progress.

    If a service hangs, its requests do not end. A request is therefore counted as soon as it is
    overdue. If it ends later, only its outcome is added. Counts never decrease, so that sums can be
    merged in any order.
    """

    def __init__(self) -> None:
        self._sums: dict[CutoverPlace, CutoverDelta] = {}
        self._room = _MOST_OPERATIONS
        # The requests in progress that are not overdue, by cutover and in the order in which they
        # began, and then the overdue requests of all cutovers.
        self._waiting: dict[VersionKey, dict[CutoverRequest, None]] = {}
        self._overdue: set[CutoverRequest] = set()
        self._fell: dict[VersionKey, float] = {}

    @property
    def waiting(self) -> bool:
        """Whether a request in progress is not overdue yet."""
        return any(self._waiting.values())

    def begin(self, exchange: CutoverRequest) -> None:
        self._waiting.setdefault(_key(exchange), {})[exchange] = None

    def fall(self, key: VersionKey, now: float) -> None:
        """Ignore the requests in progress on the new route after the percentage has fallen.

        The percentage falls in a rollback, for example. When it rises again, the new route is
        judged again. Old requests that still hang must not cause another rollback.

        Args:
            now: The time by the clock of `Exchange.began`.
        """
        self._fell[key] = now

    def end(self, exchange: CutoverRequest, seconds: float) -> None:
        """Count a request of a cutover that has ended, with its duration in seconds."""
        was_overdue = exchange in self._overdue
        self._overdue.discard(exchange)
        self._waiting.get(_key(exchange), {}).pop(exchange, None)
        if self._is_past(exchange) or exchange.code == FaultCode.GATEWAY_EXHAUSTED:
            return  # the request is not evidence about the route
        sums, operation = self._of(exchange)
        if not was_overdue:
            limit = _limit(exchange)
            _count(sums, seconds, limit)
            operation.requests += 1
            operation.overdue += seconds >= limit
        outcome = outcome_of(exchange.status, exchange.code, aborted=exchange.aborted)
        sums.ends[outcome] += 1
        operation.ends[outcome] += 1
        if exchange.method in WRITES:
            sums.writes += 1
            sums.failed_writes += outcome in FAILED
        sums.buckets[bisect_left(BOUNDS, seconds)] += 1
        sums.whole += seconds

    def check(self, place: CutoverPlace, operation: OperationName, fields: Collection[str]) -> None:
        """Count a validated response, whose `fields` violate the OpenAPI document."""
        sums, of_it = self._at(place, operation)
        write = operation[0] in WRITES
        sums.checked += 1
        sums.checked_writes += write
        of_it.checked += 1
        if fields:
            sums.violating += 1
            sums.violating_writes += write
            of_it.violating += 1
        for name in fields:
            sums.fields[name] = sums.fields.get(name, 0) + 1

    def take(self, now: float) -> list[CutoverDelta]:
        """Return and reset the counts; `now` is a time by the clock of `Exchange.began`."""
        for waiting in self._waiting.values():
            for exchange in tuple(waiting):
                limit = _limit(exchange)
                if now - exchange.began < limit:
                    break
                del waiting[exchange]
                self._overdue.add(exchange)
                if not self._is_past(exchange):
                    sums, operation = self._of(exchange)
                    _count(sums, limit, limit)
                    operation.requests += 1
                    operation.overdue += 1
        self._waiting = {key: waiting for key, waiting in self._waiting.items() if waiting}
        taken, self._sums = self._sums, {}
        self._room = _MOST_OPERATIONS
        return [*taken.values()]

    def _is_past(self, exchange: CutoverRequest) -> bool:
        is_new = exchange.cutover_route is CutoverRoute.NEW
        return is_new and exchange.began < self._fell.get(_key(exchange), -inf)

    def _of(self, exchange: CutoverRequest) -> tuple[CutoverDelta, OperationDelta]:
        assert exchange.endpoint is not None  # a request of a cutover has an endpoint
        operation = exchange.method, exchange.endpoint.template.text
        return self._at(place_of(exchange), operation)

    def _at(
        self, place: CutoverPlace, operation: OperationName
    ) -> tuple[CutoverDelta, OperationDelta]:
        sums = self._sums.get(place)
        if sums is None:
            sums = self._sums[place] = CutoverDelta(*place)
        method, path = operation
        name = f"{method if method in METHODS else OTHER} {path}"
        of_it = sums.operations.get(name)
        if of_it is None:
            of_it = OperationDelta()
            if self._room:
                sums.operations[name] = of_it
                self._room -= 1
        return sums, of_it


def _count(sums: CutoverDelta, seconds: float, limit: float) -> None:
    if seconds >= limit:
        seconds = limit
        sums.overdue += 1
    sums.requests += 1
    sums.seconds += seconds
    sums.squares += seconds * seconds


def place_of(exchange: CutoverRequest) -> CutoverPlace:
    key, route = _key(exchange), exchange.cutover_route
    assert route is not None  # the caller passes only requests of cutovers
    return *key, route.value, exchange.snapshot.cutovers[key].cell_of(exchange.client)


def _key(exchange: CutoverRequest) -> VersionKey:
    assert exchange.endpoint is not None  # a request of a cutover has an endpoint
    return exchange.endpoint.api, str(exchange.version)


def _limit(exchange: CutoverRequest) -> float:
    gates = exchange.snapshot.cutovers[_key(exchange)].gates
    return _OVERDUE if gates is None else gates.overdue
