"""Counts the outcomes of requests in cutovers, and the requests that are overdue."""

from bisect import bisect_left
from collections.abc import Collection
from itertools import count
from math import inf, log

from gateway.base.errors import FaultCode
from gateway.base.overrides import VersionKey
from gateway.proxy.exchange import Exchange
from gateway.rollout.cutover import CutoverRoute
from gateway.rollout.evidence import DIFFERS, SHADOW, EvidenceRow, unnamed
from gateway.rollout.gates import GateLimits
from gateway.rollout.route_outcomes import measure_of, outcome_of
from gateway.usage.delta import (
    BOUNDS,
    METHODS,
    OTHER,
    CutoverDelta,
    OperationName,
)

# The machine of the gateway lacks resources, the document for a merged write was not read, or an
# OpenAPI document is not loaded yet.
_NO_EVIDENCE = frozenset(
    {
        *(FaultCode.GATEWAY_EXHAUSTED, FaultCode.WRITE_DENIED, FaultCode.WRITE_UNREAD),
        FaultCode.DOCUMENT_UNAVAILABLE,
    }
)
_OVERDUE = GateLimits().overdue
# The maximum number of rows of evidence in one delta, over all versions and routes. Beyond it,
# clients are counted in groups.
_MOST_ROWS = 2048
# Shorter durations are treated as this one, in seconds.
_SHORTEST = 0.0001

CutoverPlace = tuple[str, str, str, str]
"""The key of the counts of a cutover: the API, the version, the route and the client."""


class CutoverCounts:
    """The counts of cutover requests since the last `take`, and the requests in progress.

    If a service hangs, its requests do not end. A request is therefore counted as soon as it is
    overdue. If it ends later, only its outcome is added. Counts never decrease, so that sums can be
    merged in any order.
    """

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str, str], CutoverDelta] = {}
        self._rows: dict[tuple[CutoverPlace, str], EvidenceRow] = {}
        self._unnamed = count()
        # The requests in progress that are not overdue, by cutover and in the order in which they
        # began, and then the overdue requests of all cutovers.
        self._waiting: dict[VersionKey, dict[Exchange, None]] = {}
        self._overdue: set[Exchange] = set()
        self._fell: dict[VersionKey, float] = {}

    @property
    def waiting(self) -> bool:
        """Whether a request in progress is not overdue yet."""
        return any(self._waiting.values())

    def begin(self, exchange: Exchange) -> None:
        self._waiting.setdefault(_key(exchange), {})[exchange] = None

    def percentage_fell(self, key: VersionKey, now: float) -> None:
        """Ignore the requests in progress on the new route after the percentage has fallen.

        The percentage falls in a rollback, for example. When it rises again, the new route is
        judged again. Old requests that still hang must not cause another rollback.

        Args:
            now: The time by the clock of `Exchange.began`.
        """
        self._fell[key] = now

    def end(self, exchange: Exchange, seconds: float) -> None:
        """Count a request of a cutover that has ended, with its duration in seconds."""
        was_overdue = exchange in self._overdue
        self._overdue.discard(exchange)
        self._waiting.get(_key(exchange), {}).pop(exchange, None)
        if self._is_past(exchange) or exchange.code in _NO_EVIDENCE:
            return  # the request is not evidence about the route
        sums, row = self._of(exchange)
        if not was_overdue:
            _count(sums, row, seconds, _limit(exchange))
        outcome = outcome_of(exchange.status, exchange.code, aborted=exchange.aborted)
        sums.ends[outcome] += 1
        measure = measure_of(outcome)
        if measure is not None:
            _increment(row, measure)
        row.timed += 1
        row.log_seconds += log(max(seconds, _SHORTEST))
        sums.buckets[bisect_left(BOUNDS, seconds)] += 1
        sums.whole += seconds

    def check(self, place: CutoverPlace, operation: OperationName, fields: Collection[str]) -> None:
        """Count a validated response, whose `fields` violate the OpenAPI document."""
        sums, row = self._at(place, operation)
        sums.checked += 1
        row.checked += 1
        if fields:
            sums.violating += 1
            _increment(row, "answers")
        for name in fields:
            sums.fields[name] = sums.fields.get(name, 0) + 1

    def compare(self, exchange: Exchange, *, differs: bool) -> None:
        """Count a response that a shadow compared."""
        place, operation = place_of(exchange, SHADOW), operation_of(exchange)
        _, row = self._at(place, operation)
        row.compared += 1
        if differs:
            _increment(row, DIFFERS)

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
                    _count(*self._of(exchange), limit, limit)
        self._waiting = {key: waiting for key, waiting in self._waiting.items() if waiting}
        taken, self._sums = self._sums, {}
        self._rows.clear()
        return [*taken.values()]

    def _is_past(self, exchange: Exchange) -> bool:
        is_new = exchange.cutover_route is CutoverRoute.NEW
        return is_new and exchange.began < self._fell.get(_key(exchange), -inf)

    def _of(self, exchange: Exchange) -> tuple[CutoverDelta, EvidenceRow]:
        return self._at(place_of(exchange), operation_of(exchange))

    def _at(
        self, place: CutoverPlace, operation: OperationName
    ) -> tuple[CutoverDelta, EvidenceRow]:
        api, version, route, client = place
        sums = self._sums.get((api, version, route))
        if sums is None:
            sums = self._sums[api, version, route] = CutoverDelta(api, version, route)
        if not client:
            client = unnamed(next(self._unnamed))
        method, path = operation
        name = f"{method if method in METHODS else OTHER} {path}"
        row = self._rows.get(((api, version, route, client), name))
        if row is None:
            if len(self._rows) >= _MOST_ROWS:
                client = unnamed(hash(client))
            key = (api, version, route, client), name
            row = self._rows.get(key)
            if row is None:
                row = self._rows[key] = EvidenceRow(client, name)
                sums.rows.append(row)
        return sums, row


def _count(sums: CutoverDelta, row: EvidenceRow, seconds: float, limit: float) -> None:
    if seconds >= limit:
        seconds = limit
        sums.overdue += 1
        _increment(row, "overdue")
    sums.requests += 1
    sums.seconds += seconds
    row.requests += 1


def _increment(row: EvidenceRow, measure: str) -> None:
    row.counts[measure] = row.counts.get(measure, 0) + 1


def place_of(exchange: Exchange, route: str = "") -> CutoverPlace:
    return *_key(exchange), route or str(exchange.cutover_route), exchange.client


def operation_of(exchange: Exchange) -> OperationName:
    assert exchange.endpoint is not None  # a request of a cutover has an endpoint
    return exchange.method, exchange.endpoint.template.text


def _key(exchange: Exchange) -> VersionKey:
    assert exchange.endpoint is not None  # a request of a cutover has an endpoint
    return exchange.endpoint.api, str(exchange.version)


def _limit(exchange: Exchange) -> float:
    gates = exchange.snapshot.cutovers[_key(exchange)].gates
    return _OVERDUE if gates is None else gates.overdue
