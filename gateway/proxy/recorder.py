"""The recorder: counts the requests of a serving process and delivers a Delta every second.

The names and values of a RequestEnding are those of OpenTelemetry's conventions for HTTP metrics:
https://opentelemetry.io/docs/specs/semconv/http/http-metrics/
"""

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from time import perf_counter, time
from typing import Final, NamedTuple

from gateway.base.errors import Blame, FaultCode
from gateway.base.overrides import VersionKey
from gateway.proxy.cutover_counts import CutoverCounts, CutoverPlace
from gateway.proxy.exchange import Exchange
from gateway.routing.cors import is_preflight
from gateway.usage import delta
from gateway.usage.delta import (
    BOUNDS,
    METHODS,
    OTHER,
    CounterDelta,
    Delta,
    TrafficDelta,
    UpstreamDelta,
    latency_bucket,
)
from gateway.versions.version import Version

# What went wrong with a response that broke off and has no fault: its client left.
_ABORTED = "aborted"
# The faults of requests to which a service gave no answer, or a part of one.
_UNANSWERED = frozenset(
    {FaultCode.UPSTREAM_UNREACHABLE, FaultCode.UPSTREAM_PROTOCOL, FaultCode.UPSTREAM_TIMEOUT}
)
# Seconds between deltas; a worker that is killed loses its counts since the last one.
_INTERVAL = 1.0
# A delta with so many clients, endings and labels is delivered early, so that a flood of names
# costs time and not memory, and nothing is dropped that a verdict goes by.
_MOST_MET = 4096
# The bucket of a duration starts above these bounds.
_FLOORS: Final[tuple[float, ...]] = (-1.0, *BOUNDS)
# The maximum samples in one delta; further ones are dropped.
_MOST_SAMPLES = 16
# So many ended requests are recorded before the end of the turn, which would take long with more.
_MOST_QUEUED: Final = 64


class RequestEnding(NamedTuple):
    """How requests ended.

    Attributes:
        method: the method of the client's request, one of METHODS, or OTHER.
        asked: the method of the request to the service, likewise.
        status: the status of the response; 0 if it never began.
        code: the code of the fault; None if there was none.
        aborted: whether the response broke off.
        target: the address of the target that was asked; None if none was.
        service_status: the status of its answer; 0 if there was none.
        operations: whether the requests are counted by operation, too.
    """

    method: str
    asked: str
    status: int
    code: str | None
    aborted: bool
    target: str | None
    service_status: int
    operations: bool

    @property
    def error(self) -> str:
        """What went wrong with the response, as `error.type`; empty if it is no failure."""
        if self.status >= 500:
            return self.code or str(self.status)
        return self.code or _ABORTED if self.aborted or not self.status else ""

    @property
    def service_error(self) -> str:
        """What went wrong with the service's answer, as `error.type`; empty if nothing did."""
        if self.service_status >= 400:
            return str(self.service_status)
        return self.code if self.code is not None and self.code in _UNANSWERED else ""


class Alike:
    """Requests for one version at one endpoint that ended alike.

    Attributes:
        key: the API, the label of the version, and the path template of the endpoint.
        ending: how they ended.
        buckets: their number by duration, per upper bound in BOUNDS and above the last.
        seconds: the sum of their durations.
        service_buckets: their number by the time that the service took, likewise.
        service_seconds: the sum of these times.
        converted: the number of those of which a body was converted.
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
        """The requests of clients."""
        ending = self.ending
        how = ending.method, ending.status, ending.error
        return TrafficDelta(*self.key, *how, self.buckets, self.seconds, self.converted)

    @property
    def operations(self) -> CounterDelta:
        """The requests as an operation."""
        api, version, endpoint = self.key
        labels = api, version, self.ending.method, endpoint
        return CounterDelta("operations", labels, sum(self.buckets))

    @property
    def upstream(self) -> UpstreamDelta | None:
        """The requests to the service; None if it was not asked."""
        api, version, _ = self.key
        ending = self.ending
        if ending.target is None:
            return None
        how = ending.asked, ending.service_status, ending.service_error
        times = self.service_buckets, self.service_seconds
        return UpstreamDelta(api, version, ending.target, *how, *times)


class _Place:
    """The requests for one version at one endpoint, by client and by ending."""

    __slots__ = ("alike", "clients", "failed", "key", "refused")

    def __init__(self, key: tuple[str, str, str]) -> None:
        self.key = key
        self.alike: dict[RequestEnding, Alike] = {}
        self.clients: dict[str, int] = {}
        self.refused: dict[str, int] = {}
        self.failed: dict[str, int] = {}


class Recorder:
    """Counts requests by client, version and endpoint, and increments of other counters.

    The hot path is `record`: one dictionary look-up for requests that ended alike, one for the
    client.

    Args:
        loop: the event loop, whose timer triggers the deltas.
        deliver: a function that receives each delta.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, deliver: delta.Deliver) -> None:
        self._loop = loop
        self._deliver = deliver
        self._due: asyncio.TimerHandle | None = None
        self._cutovers = CutoverCounts()
        self._clear()

    def _clear(self) -> None:
        self._room = _MOST_MET
        # By the id of a route or a place, which is kept so that the id stays unique.
        self._known: dict[tuple[object, ...], tuple[_Place, Alike, object]] = {}
        self._places: dict[tuple[str, str, str], _Place] = {}
        self._counts: dict[tuple[str, tuple[str, ...]], int] = {}
        self._samples: list[delta.SampleDelta] = []
        self._latencies: dict[tuple[str, str, str], dict[int, int]] = {}

    def begin(self, exchange: Exchange) -> None:
        """Follow a request of a cutover, which counts before it ends if it takes long."""
        self._cutovers.begin(exchange)
        self._expect()

    def fall(self, key: VersionKey) -> None:
        """Leave out what is under way, as the percentage falls; see `CutoverCounts.fall`."""
        self._cutovers.fall(key, perf_counter())

    def record(self, exchange: Exchange) -> None:
        """Count one request."""
        plan, method, status = exchange.plan, exchange.method, exchange.status
        whose = self._place(exchange) if plan is None else plan.route
        asked = (
            method if plan is None or plan.operation_path is None else plan.operation_path.method
        )
        code, target = exchange.code, exchange.target
        service_status = exchange.service_status
        key = id(whose), method, asked, status, code, exchange.aborted, target, service_status
        try:
            place, alike, _ = self._known[key]
        except KeyError:
            place, alike, _ = self._meet_ending(exchange, whose, key)
        # A preflight names no client; the request that it asks about counts.
        counted = (plan is not None or exchange.version is not None) and not (
            method == "OPTIONS" and is_preflight(method, exchange.message.headers)
        )
        if counted:
            clients, client = place.clients, exchange.client
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
            if taken <= _FLOORS[index]:  # most often the service takes nearly all of the time
                index = bisect_left(BOUNDS, taken, 0, index)
            alike.service_buckets[index] += 1
            alike.service_seconds += taken
        if exchange.converted:
            alike.converted += 1
        if exchange.cutover_route is not None:
            self._cutovers.end(exchange, seconds)
        if code is not None or status >= 500:
            self._note(exchange, place, counted)
        if exchange.unmapped_links is not None:
            self._count_links(exchange, exchange.unmapped_links)
        if exchange.dropped_digests is not None:
            api = "" if exchange.endpoint is None else exchange.endpoint.api
            for field in exchange.dropped_digests:
                self.count("dropped_digests", api, version_label(exchange.version), field)

    def count(self, kind: str, *labels: str, times: int = 1) -> None:
        """Increment a counter; `metric_table.METRICS` has the kinds and their labels."""
        key = kind, labels
        known = self._counts.get(key)
        if known is not None:
            self._counts[key] = known + times
        else:
            self._counts[key] = times
            self._expect()
            self._met()

    def check(
        self, place: CutoverPlace, operation: delta.OperationName, fields: Collection[str]
    ) -> None:
        """Count a validated answer of a cutover; see `CutoverCounts.check`."""
        self._cutovers.check(place, operation, fields)
        self._expect()

    def latency(self, api: str, version: str, old: float, new: float) -> None:
        """Count how long the answers of both services of a shadow took, in seconds."""
        for route, seconds in (("old", old), ("new", new)):
            buckets = self._latencies.setdefault((api, version, route), {})
            index = latency_bucket(seconds)
            buckets[index] = buckets.get(index, 0) + 1
        self._expect()

    @property
    def takes_samples(self) -> bool:
        """Whether another example would be kept in the delta; it takes long to make one."""
        return len(self._samples) < _MOST_SAMPLES

    def sample(
        self, kind: str, api: str, version: str, document: object, request: dict[str, str]
    ) -> None:
        """Add a redacted example for operators to the delta; see `delta.SampleDelta`."""
        if self.takes_samples:
            self._samples.append(delta.SampleDelta(kind, api, version, document, request))
            self._expect()

    def flush(self) -> None:
        """Deliver the counts as a delta, and reset them."""
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
            place = self._places[key] = _Place(key)
        return place

    def _meet_ending(
        self,
        exchange: Exchange,
        whose: object,
        key: tuple[int, str, str, int, str | None, bool, str | None, int],
    ) -> tuple[_Place, Alike, object]:
        place = whose if isinstance(whose, _Place) else self._place(exchange)
        plan = exchange.plan
        shifts = plan is not None and (plan.cutover_route or plan.route.shadow) is not None
        method, asked = (each if each in METHODS else OTHER for each in key[1:3])
        known = RequestEnding(method, asked, *key[3:], shifts)
        alike = place.alike.get(known)
        if alike is None:
            alike = place.alike[known] = Alike(place.key, known)
        found = place, alike, whose
        if known.method != OTHER:  # clients may invent any number of others
            self._known[key] = found
            self._met()
        return found

    def _meet_client(self, clients: dict[str, int], client: str) -> None:
        clients[client] = 1
        self._met()

    def _met(self) -> None:
        self._room -= 1
        if not self._room:
            # Not at once: the caller still updates a place of this delta.
            self._loop.call_soon(self.flush)

    def _note(self, exchange: Exchange, place: _Place, counted: bool) -> None:
        plan, code = exchange.plan, exchange.code
        blame = Blame.UPSTREAM if code is None else FaultCode(code).blame
        refused = plan is None or blame is Blame.CLIENT
        client = exchange.client
        if counted:
            ends = place.refused if refused else place.failed
            ends[client] = ends.get(client, 0) + 1
        if code is None:
            return
        if plan is not None and blame is Blame.UPSTREAM:
            self.count("upstream_errors", plan.route.service.name, code)
        else:
            api = "" if exchange.endpoint is None else exchange.endpoint.api
            self.count("refusals", api, version_label(exchange.version), code)

    def _count_links(self, exchange: Exchange, links: dict[str, int]) -> None:
        api = "" if exchange.endpoint is None else exchange.endpoint.api
        for place, times in links.items():
            version = version_label(exchange.version)
            self.count("unmapped_links", api, version, place, times=times)

    def _report(self) -> Delta:
        alike = [each for place in self._places.values() for each in place.alike.values()]
        return Delta(
            time(),
            [
                delta.UsageDelta(
                    *key,
                    client,
                    count,
                    place.refused.get(client, 0),
                    place.failed.get(client, 0),
                    count - place.refused.get(client, 0),
                )
                for key, place in self._places.items()
                for client, count in place.clients.items()
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
        )


def version_label(version: Version | None) -> str:
    """Return the label of a version in deltas; empty if there is no version."""
    return "" if version is None else str(version)


class RecordQueue:
    """Holds ended exchanges until the end of a turn of the event loop, and hands them on in order.

    The log and the counters have code and memory of their own. To run them once for all requests of
    a turn, and not between the steps of requests, saves the processor from fetching both each time.

    Args:
        loop: the event loop.
        record: records exchanges; it must not raise.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, record: Callable[[Sequence[Exchange]], None]
    ) -> None:
        self._loop = loop
        self._record = record
        self._waiting: list[Exchange] = []

    def add(self, exchange: Exchange) -> None:
        """Add an exchange that has ended."""
        waiting = self._waiting
        waiting.append(exchange)
        if len(waiting) == 1:
            self._loop.call_soon(self.flush)
        elif len(waiting) >= _MOST_QUEUED:
            self.flush()

    def flush(self) -> None:
        """Record what waits."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._record(waiting)
