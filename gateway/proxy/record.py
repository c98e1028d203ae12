"""The record of a request: its log line, and its counts."""

import asyncio
import logging
import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from random import random
from time import perf_counter, time
from typing import Final, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from gateway.base.access_log import AccessLog
from gateway.base.errors import Blame, FaultCode
from gateway.base.overrides import VersionKey
from gateway.observe.log import now, request_output
from gateway.proxy.cutover_counts import CutoverCounts, CutoverPlace
from gateway.proxy.exchange import Exchange
from gateway.routing.cors import is_preflight
from gateway.routing.snapshot import Snapshot
from gateway.usage import delta
from gateway.usage.delta import (
    BOUNDS,
    METHODS,
    OTHER,
    REJECTED,
    CounterDelta,
    Delta,
    TrafficDelta,
    UpstreamDelta,
    UsageDelta,
    latency_bucket,
)
from gateway.usage.operations import OperationIndex, OperationIndexes
from gateway.versions.version import Version

_log = logging.getLogger(__name__)


# The `error.type` of a response without a fault that is incomplete because the client disconnected.
_ABORTED = "aborted"
# The faults of requests to which a service sent no response, or an incomplete response.
_UNANSWERED = frozenset(
    {FaultCode.UPSTREAM_UNREACHABLE, FaultCode.UPSTREAM_PROTOCOL, FaultCode.UPSTREAM_TIMEOUT}
)
# Faults that mean the same as a response of the service with a status in REJECTED.
_REJECTING = frozenset(
    {
        FaultCode.NOT_FOUND,
        FaultCode.METHOD_NOT_ALLOWED,
        FaultCode.UNAUTHENTICATED,
        FaultCode.INSUFFICIENT_SCOPE,
        FaultCode.ACCESS_DENIED,
    }
)
# Seconds between deltas. A worker that is killed loses the counts since its last delta.
_INTERVAL = 1.0
# A delta with this number of clients, endings and labels is delivered early. Many different names
# therefore do not use much memory, and no count is dropped.
_MOST_MET = 4096
_FLOORS: Final[tuple[float, ...]] = (-1.0, *BOUNDS)
# The maximum number of samples in one delta. Further samples are dropped.
_MOST_SAMPLES = 16
# When this number of ended requests is queued, they are recorded before the end of the iteration of
# the event loop, because it would take long to record more of them at once.
_MOST_QUEUED: Final = 64


class RequestEnding(NamedTuple):
    """The outcome of one or more requests.

    Attributes:
        method: The method of the client's request, one of METHODS, or OTHER.
        asked: The method of the request to the service, one of METHODS, or OTHER.
        status: The status of the response; 0 if it never began.
        aborted: Whether the response is incomplete.
        service_status: The status of the service's response; 0 without a response.
        operations: Whether the requests are also counted by operation.
    """

    method: str
    asked: str
    status: int
    code: str | None
    aborted: bool
    target: str | None
    service_status: int
    scheme: str
    operations: bool

    @property
    def error(self) -> str:
        """The `error.type` of the response to the client; empty if the response did not fail."""
        if self.status >= 500:
            return self.code or str(self.status)
        return self.code or _ABORTED if self.aborted or not self.status else ""

    @property
    def service_error(self) -> str:
        """The `error.type` of the service's response; empty if the response did not fail."""
        if self.service_status >= 400:
            return str(self.service_status)
        return self.code if self.code is not None and self.code in _UNANSWERED else ""


class OutcomeCounts:
    """The counts of requests with the same version, endpoint and outcome.

    Attributes:
        buckets: The number of requests in each duration bucket: one for each upper bound in BOUNDS,
            and one for longer durations.
        service_buckets: The number of requests in each bucket, by the time that the service took.
    """

    __slots__ = (
        "buckets",
        "converted",
        "ending",
        "key",
        "seconds",
        "service_buckets",
        "service_seconds",
    )

    def __init__(self, key: tuple[str, str, str], ending: RequestEnding) -> None:
        self.key = key
        self.ending = ending
        self.buckets = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0
        self.service_buckets = [0] * (len(BOUNDS) + 1)
        self.service_seconds = 0.0
        self.converted = 0

    @property
    def traffic(self) -> TrafficDelta:
        ending = self.ending
        how = ending.method, ending.status, ending.error
        counts = self.buckets, self.seconds, self.converted
        return TrafficDelta(*self.key, *how, *counts, ending.scheme)

    @property
    def operations(self) -> CounterDelta:
        api, version, endpoint = self.key
        labels = api, version, self.ending.method, endpoint
        return CounterDelta("operations", labels, sum(self.buckets))

    @property
    def upstream(self) -> UpstreamDelta | None:
        api, version, _ = self.key
        ending = self.ending
        if ending.target is None:
            return None
        how = ending.asked, ending.service_status, ending.service_error
        times = self.service_buckets, self.service_seconds
        return UpstreamDelta(api, version, ending.target, *how, *times)


class _Use:
    """The requests of each client for one operation."""

    __slots__ = ("clients", "failed", "operation", "refused", "rejected")

    def __init__(self, operation: str) -> None:
        self.operation = operation
        self.clients: dict[str, int] = {}
        self.refused: dict[str, int] = {}
        self.rejected: dict[str, int] = {}
        self.failed: dict[str, int] = {}

    def usage(self, api: str, version: str) -> Iterator[UsageDelta]:
        for client, count in self.clients.items():
            refused = self.refused.get(client, 0)
            rejected = self.rejected.get(client, 0)
            failed = self.failed.get(client, 0)
            served = count - refused - rejected - failed
            counts = count, refused, failed, served, rejected
            yield UsageDelta(api, version, self.operation, client, *counts)


class _Place:
    """A version at an endpoint; `index` has its documented operations, if they are known."""

    __slots__ = ("alike", "index", "key", "uses")

    def __init__(self, key: tuple[str, str, str], index: OperationIndex | None) -> None:
        self.key = key
        self.index = index
        self.alike: dict[RequestEnding, OutcomeCounts] = {}
        self.uses: dict[str, _Use] = {}

    def use(self, method: str, path: str) -> _Use:
        """Return the use of an operation: the documented one, or else the endpoint's."""
        operation = None if self.index is None else self.index.find(method, path)
        operation = operation or f"{method} {self.key[2]}"
        use = self.uses.get(operation)
        if use is None:
            use = self.uses[operation] = _Use(operation)
        return use


class Recorder:
    """Logs ended requests, counts them by client, version and endpoint, and has other counters.

    `add` queues a request until the end of the iteration of the event loop. The code and the data
    of the log and the counters are then loaded into the processor's caches only once for all
    requests of the iteration. For speed, `record` does one dictionary lookup for the outcome and
    one for the client.

    Args:
        loop: The event loop, whose timer triggers the deltas.
        observe: A function that receives the exchanges that have a span or a copy of the response.
        indexes: The documented operations of versions.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        deliver: delta.Deliver,
        observe: Callable[[Sequence[Exchange]], None],
        indexes: OperationIndexes | None = None,
    ) -> None:
        self._loop = loop
        self._indexes = indexes
        self._deliver = deliver
        self._observe = observe
        self._ended: list[Exchange] = []
        self._logging: Snapshot | None = None
        self._due: asyncio.TimerHandle | None = None
        self._cutovers = CutoverCounts()
        self._clear()

    def _clear(self) -> None:
        self._room = _MOST_MET
        # The keys contain the id of a route or a _Place. The value refers to this object, so that
        # its id stays unique. It has no _Use if the documented operation depends on the path.
        self._known: dict[
            tuple[object, ...], tuple[_Place, OutcomeCounts, _Use | None, object]
        ] = {}
        self._places: dict[tuple[str, str, str], _Place] = {}
        self._counts: dict[tuple[str, tuple[str, ...]], int] = {}
        self._samples: list[delta.SampleDelta] = []
        self._latencies: dict[tuple[str, str, str], dict[int, int]] = {}
        self._admitted: dict[tuple[str, int], int] = {}

    def begin(self, exchange: Exchange) -> None:
        """Register a request of a cutover, which is counted before its end if it takes long."""
        self._cutovers.begin(exchange)
        self._expect()

    def percentage_fell(self, key: VersionKey) -> None:
        self._cutovers.percentage_fell(key, perf_counter())

    def add(self, exchange: Exchange) -> None:
        """Log and count an ended request at the end of the iteration of the event loop."""
        ended = self._ended
        ended.append(exchange)
        if len(ended) == 1:
            self._loop.call_soon(self.record_added)
        elif len(ended) >= _MOST_QUEUED:
            self.record_added()

    def record_added(self) -> None:
        ended, self._ended = self._ended, []
        if not ended:
            return
        if ended[0].snapshot is not self._logging:
            self._logging = ended[0].snapshot
            self._access_log = self._logging.access_log
            self._write = request_output(self._access_log.file).write_soon
        time_text, write, access_log = now(), self._write, self._access_log
        logs_all = access_log.ratio >= 1
        observed: list[Exchange] = []
        for exchange in ended:
            try:
                self.record(exchange)
                if logs_all or _is_logged(exchange, access_log):
                    write(request_line(exchange, time_text))
            except Exception:  # the response has been sent even if it cannot be recorded
                _log.exception("request %s could not be recorded", exchange.request_id)
            else:
                if exchange.span is not None or exchange.copy is not None:
                    observed.append(exchange)
        if observed:
            self._observe(observed)

    def record(self, exchange: Exchange) -> None:
        plan, method, status = exchange.plan, exchange.method, exchange.status
        whose = self._place(exchange) if plan is None else plan.route
        asked = (
            method if plan is None or plan.operation_path is None else plan.operation_path.method
        )
        code, target = exchange.code, exchange.target
        how = code, exchange.aborted, target, exchange.service_status, exchange.scheme
        key = id(whose), method, asked, status, *how
        try:
            place, alike, use, _ = self._known[key]
        except KeyError:
            place, alike, use, _ = self._meet_ending(exchange, whose, key)
        if use is None:
            use = place.use(alike.ending.method, exchange.path)
        # A preflight does not identify a client, so only the request after it is counted. A request
        # beyond a rate limit is not a use of a version.
        counted = (
            (plan is not None or exchange.version is not None)
            and code != FaultCode.RATE_LIMITED
            and not (method == "OPTIONS" and is_preflight(method, exchange.message.headers))
        )
        if counted:
            clients, client = use.clients, exchange.client
            if client in clients:
                clients[client] += 1
            else:
                self._meet_client(clients, client)
        seconds = exchange.ended - exchange.began
        index = bisect_left(BOUNDS, seconds)
        alike.buckets[index] += 1
        alike.seconds += seconds
        if target is not None:
            taken = (exchange.answered or exchange.ended) - exchange.sent
            if taken <= _FLOORS[index]:  # usually, the service takes nearly all of the time
                index = bisect_left(BOUNDS, taken, 0, index)
            alike.service_buckets[index] += 1
            alike.service_seconds += taken
        if exchange.converted:
            alike.converted += 1
        if exchange.cutover_route is not None:
            self._cutovers.end(exchange, seconds)
        if code is not None or status >= 400:
            self._note(exchange, use if counted else None)
        if (exchange.unmapped_links or exchange.dropped_digests or exchange.unfit) is not None:
            self._count_details(exchange)

    def count(self, kind: str, *labels: str, times: int = 1) -> None:
        """Increment a counter. `metric_table.METRICS` lists the kinds and their labels."""
        key = kind, labels
        known = self._counts.get(key)
        if known is not None:
            self._counts[key] = known + times
        else:
            self._counts[key] = times
            self._expect()
            self._met()

    def admit(self, limit: str, bucket: int) -> None:
        """Count an admitted request of a limit that the replicas of a fleet share."""
        key = limit, bucket
        self._admitted[key] = self._admitted.get(key, 0) + 1
        if self._admitted[key] == 1:
            self._expect()
            self._met()

    def check(
        self, place: CutoverPlace, operation: delta.OperationName, fields: Collection[str]
    ) -> None:
        self._cutovers.check(place, operation, fields)
        self._expect()

    def compare(self, exchange: Exchange, *, differs: bool) -> None:
        """Count a response that a shadow compared, if the version has a cutover."""
        if exchange.cutover_route is not None:
            self._cutovers.compare(exchange, differs=differs)
            self._expect()

    def latency(self, api: str, version: str, old: float, new: float) -> None:
        """Count the response times of both services of a shadow, in seconds."""
        for route, seconds in (("old", old), ("new", new)):
            buckets = self._latencies.setdefault((api, version, route), {})
            index = latency_bucket(seconds)
            buckets[index] = buckets.get(index, 0) + 1
        self._expect()

    @property
    def takes_samples(self) -> bool:
        """Whether the delta has room for another sample.

        Check this first, because it is slow to create a sample.
        """
        return len(self._samples) < _MOST_SAMPLES

    def sample(
        self, kind: str, api: str, version: str, document: object, request: dict[str, str]
    ) -> None:
        if self.takes_samples:
            self._samples.append(delta.SampleDelta(kind, api, version, document, request))
            self._expect()

    def flush(self) -> None:
        if self._due is None:
            return
        self._due.cancel()
        self._due = None
        self._deliver(self._report())
        self._clear()
        if self._cutovers.waiting:
            self._expect()

    def _expect(self) -> None:
        if self._due is None:
            self._due = self._loop.call_later(_INTERVAL, self.flush)

    def _place(self, exchange: Exchange) -> _Place:
        endpoint, version = exchange.endpoint, exchange.version
        named = ("", "") if endpoint is None else (endpoint.api, endpoint.template.text)
        self._expect()
        key = named[0], version_label(version), named[1]
        place = self._places.get(key)
        if place is None:
            index = None
            if self._indexes is not None and endpoint is not None and version is not None:
                route = endpoint.routes.get(version)
                if route is not None and route.documented:
                    index = self._indexes.of(exchange.snapshot, key[:2])
            place = self._places[key] = _Place(key, index)
        return place

    def _meet_ending(
        self,
        exchange: Exchange,
        whose: object,
        key: tuple[int, str, str, int, str | None, bool, str | None, int, str],
    ) -> tuple[_Place, OutcomeCounts, _Use | None, object]:
        place = whose if isinstance(whose, _Place) else self._place(exchange)
        plan = exchange.plan
        shifts = plan is not None and (plan.cutover_route or plan.route.shadow) is not None
        method, asked = (each if each in METHODS else OTHER for each in key[1:3])
        known = RequestEnding(method, asked, *key[3:], shifts)
        alike = place.alike.get(known)
        if alike is None:
            alike = place.alike[known] = OutcomeCounts(place.key, known)
        use = place.use(method, exchange.path) if place.index is None else None
        found = place, alike, use, whose
        if known.method != OTHER:  # clients may invent any number of other methods
            self._known[key] = found
            self._met()
        return found

    def _meet_client(self, clients: dict[str, int], client: str) -> None:
        clients[client] = 1
        self._met()

    def _met(self) -> None:
        self._room -= 1
        if not self._room:
            # Do not flush immediately, because the caller still updates counts of this delta.
            self._loop.call_soon(self.flush)

    def _note(self, exchange: Exchange, use: _Use | None) -> None:
        plan, code = exchange.plan, exchange.code
        blame = Blame.UPSTREAM if code is None else FaultCode(code).blame
        refused = plan is None or blame is Blame.CLIENT
        client = exchange.client
        if use is not None:
            ends: dict[str, int] | None = use.refused if refused else use.failed
            if code in _REJECTING or (code is None and exchange.status in REJECTED):
                ends = use.rejected
            elif code is None and exchange.status < 500:
                ends = None  # the service has accepted the request, as with a 400 or 409
            if ends is not None:
                ends[client] = ends.get(client, 0) + 1
        if code is None:
            return
        if plan is not None and blame is Blame.UPSTREAM:
            self.count("upstream_errors", plan.route.service.name, code)
        else:
            api = "" if exchange.endpoint is None else exchange.endpoint.api
            self.count("refusals", api, version_label(exchange.version), code)

    def _count_details(self, exchange: Exchange) -> None:
        api = "" if exchange.endpoint is None else exchange.endpoint.api
        version = version_label(exchange.version)
        for place, times in (exchange.unmapped_links or {}).items():
            self.count("unmapped_links", api, version, place, times=times)
        for field in exchange.dropped_digests or ():
            self.count("dropped_digests", api, version, field)
        if exchange.unfit is not None:
            for unfit, times in exchange.unfit.counts.items():
                self.count("unfit_values", api, version, *unfit, times=times)

    def _report(self) -> Delta:
        alike = [each for place in self._places.values() for each in place.alike.values()]
        return Delta(
            time(),
            [
                usage
                for (api, version, _), place in self._places.items()
                for use in place.uses.values()
                for usage in use.usage(api, version)
            ],
            [each.traffic for each in alike],
            [
                *(
                    delta.CounterDelta(kind, labels, n)
                    for (kind, labels), n in self._counts.items()
                ),
                *(each.operations for each in alike if each.ending.operations),
            ],
            self._cutovers.take(perf_counter()),
            self._samples,
            [delta.LatencyDelta(*key, found) for key, found in self._latencies.items()],
            [upstream for each in alike if (upstream := each.upstream) is not None],
            admitted=[(*key, n) for key, n in self._admitted.items()],
        )


def version_label(version: Version | None) -> str:
    return "" if version is None else str(version)


class _RequestLine(msgspec.Struct):
    """The log line of a request. Fields are written in this order. UNSET fields are omitted."""

    time: str
    level: str
    event: str
    program: str
    request_id: str
    peer: str
    method: str
    path: str
    status: int
    bytes_sent: int
    duration_ms: float
    trace_id: str | UnsetType = UNSET
    client: str | UnsetType = UNSET
    api: str | UnsetType = UNSET
    endpoint: str | UnsetType = UNSET
    version: str | UnsetType | None = UNSET
    chosen_by: str | UnsetType | None = UNSET
    service: str | UnsetType = UNSET
    target: str | UnsetType | None = UNSET
    converted: bool | UnsetType = UNSET
    upstream_ms: float | UnsetType = UNSET
    address: str | UnsetType = UNSET
    code: str | UnsetType = UNSET
    cause: str | UnsetType = UNSET
    unmapped_link: str | UnsetType = UNSET
    unfit: str | UnsetType = UNSET
    aborted: bool | UnsetType = UNSET


def _is_logged(exchange: Exchange, access_log: AccessLog) -> bool:
    is_error = exchange.status >= 400 or exchange.aborted
    return (is_error and access_log.errors) or random() < access_log.ratio  # noqa: S311  # a sample


def request_line(exchange: Exchange, time: str) -> _RequestLine:
    """`time` is the current time in the format of `log.now`."""
    plan, endpoint, version = exchange.plan, exchange.endpoint, exchange.version
    # Compute values before creating the Struct. To set a field afterwards is ten times slower.
    upstream_ms: float | UnsetType = UNSET
    if exchange.answered:
        upstream_ms = int((exchange.answered - exchange.sent) * 1_000_000) / 1000
    label: str | UnsetType | None = UNSET if plan is None else None
    if version is not None:
        label = _label(version)
    line = _RequestLine(
        time,
        "info",
        "request",
        "gateway",
        exchange.request_id,
        exchange.peer,
        exchange.method,
        exchange.path,
        exchange.status,
        exchange.bytes_sent,
        int((exchange.ended - exchange.began) * 1_000_000) / 1000,
        exchange.trace_id or UNSET,
        exchange.client or UNSET,
        UNSET if endpoint is None else endpoint.api,
        UNSET if endpoint is None else endpoint.template.text,
        label,
        UNSET if plan is None else plan.chosen_by,
        UNSET if plan is None else plan.route.service.name,
        UNSET if plan is None else exchange.target,
        UNSET if plan is None else exchange.converted,
        upstream_ms,
    )
    if exchange.address is not None:
        line.address = exchange.address
    if exchange.code is not None:
        line.code = exchange.code
    if exchange.cause is not None:
        line.cause = exchange.cause
    if exchange.unmapped_link is not None:
        line.unmapped_link = without_query(exchange.unmapped_link)
    if exchange.unfit is not None and exchange.unfit.sample:
        line.unfit = exchange.unfit.sample
    if exchange.aborted:
        line.aborted = True
    return line


_label: Final = lru_cache(maxsize=1024)(str)


_LOGGED = 200


_UNSAFE = re.compile(r"[^!-~]")


def without_query(link: str) -> str:
    """Return a URL for the log, without the query, which may contain secrets."""
    return _UNSAFE.sub("?", link.partition("?")[0].partition("#")[0][:_LOGGED])
