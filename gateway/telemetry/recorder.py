"""The recorder: counts the requests of a serving process and delivers a Delta every second."""

import asyncio
import time
from bisect import bisect_left

from gateway.core.errors import FAULT_KINDS, Blame, FaultCode
from gateway.core.versions.version import Version
from gateway.proxy.client.exchange import Exchange
from gateway.telemetry import delta
from gateway.telemetry.delta import BOUNDS, CLASSES, Delta

# Seconds between deltas; a worker that is killed loses its counts since the last one.
_INTERVAL = 1.0
# A delta with so many clients is delivered early, so that a flood of client names costs time and
# not memory.
_MOST_CLIENTS = 4096
# The maximum label combinations and samples in one delta; further ones are dropped.
_MOST_LABELS = 4096
_MOST_SAMPLES = 16


class _Place:
    """The counts of one version at one endpoint."""

    __slots__ = (
        "buckets",
        "clients",
        "converted",
        "failed",
        "refused",
        "seconds",
        "statuses",
        "stopped",
    )

    def __init__(self) -> None:
        self.clients: dict[str, int] = {}
        self.refused: dict[str, int] = {}
        self.failed: dict[str, int] = {}
        self.stopped: dict[str, int] = {}
        self.statuses = [0] * len(CLASSES)
        self.buckets = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0
        self.converted = 0


class Recorder:
    """Counts requests by client, version and endpoint, and increments of other counters.

    The hot path is `record`: one dictionary look-up for the place, one for the client.

    Args:
        loop: the event loop, whose timer triggers the deltas.
        deliver: a function that receives each delta.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, deliver: delta.Deliver) -> None:
        self._loop = loop
        self._deliver = deliver
        self._due: asyncio.TimerHandle | None = None
        self._clear()

    def _clear(self) -> None:
        self._room = _MOST_CLIENTS
        # Places by the id of a route, which is kept so that the id stays unique.
        self._routes: dict[int, tuple[_Place, object]] = {}
        self._places: dict[tuple[str, str, str], _Place] = {}
        self._counts: dict[tuple[str, tuple[str, ...]], int] = {}
        self._outcomes: dict[tuple[str, str, str], _Place] = {}
        self._samples: list[delta.SampleDelta] = []

    def record(self, exchange: Exchange) -> None:
        """Count one request."""
        plan, status = exchange.plan, exchange.status
        if plan is None:
            place = self._place(exchange)
        else:
            known = self._routes.get(id(plan.route))
            if known is None:
                known = self._routes[id(plan.route)] = self._place(exchange), plan.route
            place = known[0]
        if plan is not None or exchange.version is not None:
            clients, client = place.clients, exchange.client
            if client in clients:
                clients[client] += 1
            else:
                self._meet(clients, client)
        seconds = time.perf_counter() - exchange.began
        place.statuses[status // 100] += 1
        place.buckets[bisect_left(BOUNDS, seconds)] += 1
        place.seconds += seconds
        if exchange.converted:
            place.converted += 1
        failed = exchange.code is not None or status >= 500
        broke = status >= 500 or (exchange.aborted and exchange.code is not None)
        if plan is not None and plan.cutover_route is not None:
            api = plan.endpoint.api
            self.outcome(
                api, version_label(plan.version), plan.cutover_route, seconds, failed=broke
            )
        if failed:
            self._note(exchange, place)

    def count(self, kind: str, *labels: str, times: int = 1) -> None:
        """Increment a counter; `delta.COUNTERS` lists the kinds and their labels."""
        key = kind, labels
        if key in self._counts or len(self._counts) < _MOST_LABELS:
            self._counts[key] = self._counts.get(key, 0) + times
            self._expect()

    def outcome(self, api: str, version: str, route: str, seconds: float, *, failed: bool) -> None:
        """Count the outcome of a request on one route of a cutover, `old` or `new`."""
        place = self._outcomes.get((api, version, route))
        if place is None:
            place = self._outcomes[api, version, route] = _Place()
            self._expect()
        place.statuses[5 if failed else 2] += 1
        place.buckets[bisect_left(BOUNDS, seconds)] += 1
        place.seconds += seconds

    def sample(self, kind: str, api: str, version: str, document: object) -> None:
        """Add a redacted example for operators to the delta."""
        if len(self._samples) < _MOST_SAMPLES:
            self._samples.append(delta.SampleDelta(kind, api, version, document))
            self._expect()

    def flush(self) -> None:
        """Deliver the counts as a delta, and reset them."""
        if self._due is None:
            return
        self._due.cancel()
        self._due = None
        self._deliver(self._report())
        self._clear()

    def _expect(self) -> None:
        if self._due is None:
            self._due = self._loop.call_later(_INTERVAL, self.flush)

    def _place(self, exchange: Exchange) -> _Place:
        endpoint, version = exchange.endpoint, exchange.version
        named = ("", "") if endpoint is None else (endpoint.api, endpoint.template.text)
        self._expect()
        key = named[0], version_label(version), named[1]
        return self._places.setdefault(key, _Place())

    def _meet(self, clients: dict[str, int], client: str) -> None:
        clients[client] = 1
        self._room -= 1
        if not self._room:
            # Not at once: the caller still updates a place of this delta.
            self._loop.call_soon(self.flush)

    def _note(self, exchange: Exchange, place: _Place) -> None:
        plan, code = exchange.plan, exchange.code
        blame = Blame.UPSTREAM if code is None else FAULT_KINDS[FaultCode(code)].blame
        refused = plan is None or blame is Blame.CLIENT
        client = exchange.client
        if client in place.clients:
            ends = place.refused if refused else place.failed
            ends[client] = ends.get(client, 0) + 1
            if plan is None:
                place.stopped[client] = place.stopped.get(client, 0) + 1
        if code is None:
            return
        if plan is not None and blame is Blame.UPSTREAM:
            self.count("upstream_errors", plan.route.service.name, code)
        else:
            api = "" if exchange.endpoint is None else exchange.endpoint.api
            self.count("refusals", api, version_label(exchange.version), code)

    def _report(self) -> Delta:
        return Delta(
            time.time(),
            [
                delta.UsageDelta(
                    *key,
                    client,
                    count,
                    place.refused.get(client, 0),
                    place.failed.get(client, 0),
                    count - place.stopped.get(client, 0),
                )
                for key, place in self._places.items()
                for client, count in place.clients.items()
            ],
            [
                delta.TrafficDelta(
                    *key, place.statuses, place.buckets, place.seconds, place.converted
                )
                for key, place in self._places.items()
            ],
            [delta.CounterDelta(kind, labels, n) for (kind, labels), n in self._counts.items()],
            [
                delta.CutoverDelta(
                    *key, sum(place.statuses), place.statuses[5], place.buckets, place.seconds
                )
                for key, place in self._outcomes.items()
            ],
            self._samples,
        )


def version_label(version: Version | None) -> str:
    """Return the label of a version in deltas; empty if there is no version."""
    return "" if version is None else str(version)
