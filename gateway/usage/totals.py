"""Totals: the sums of all deltas in bounded memory, and the changed rows to store.

A version has one row for each of the busiest pairs of an operation and a client. All other
operations of a client share a row, and so do all clients beyond those rows. The algorithm is
Space-Saving (Metwally, Agrawal and El Abbadi, 2005), with merging in batches (Agarwal et al.,
"Mergeable Summaries", 2012). Rejected requests do not count for the choice of the rows, so scanners
do not displace clients. For n other requests to the version and k rows:

-   The rows of a version add up to all its requests.
-   `count` is the number of requests since the row was created. The true number is at most `slack`
    higher, apart from rejected requests.
-   At most `floor` requests of a client, apart from rejected ones, are not in its rows. `floor` is
    at most 2 n / k.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import nlargest

from gateway.base.overrides import VersionKey
from gateway.rollout.cutover import CutoverRoute
from gateway.rollout.cutovers import RouteCounts
from gateway.rollout.decisions import AuditEntry
from gateway.rollout.evidence import SHADOW, EvidenceRow
from gateway.rollout.route_outcomes import NOTHING, RouteOutcomes
from gateway.usage.delta import (
    BOUNDS,
    CutoverDelta,
    Delta,
    SampleDelta,
    TrafficDelta,
    UpstreamDelta,
    UsageDelta,
)
from gateway.usage.history import History, IntervalRow

ROWS_AFTER_CUT = 2048
"""The number of rows of operations, and of rows of other operations, that remain for a version when
the smallest rows are merged. They are merged again when this number of rows has been added. A row
takes less than 500 bytes, so a version takes less than 3 MB."""
OTHERS = "(others)"
"""The name of all other operations, or of all other values of a label."""
RowKey = tuple[str, str | None]
"""An operation, or OTHERS, and the name of a client (None for all other clients)."""


@dataclass(slots=True)
class ClientUsage:
    """The usage of one operation by one client or by all other clients.

    Times are in seconds since 1970. `served` is the time of the last use, and `rejected_at` that of
    the last rejected request (see `UsageDelta`); 0 without such a request.
    """

    count: int = 0
    refused: int = 0
    failed: int = 0
    slack: int = 0
    first: float = 0.0
    last: float = 0.0
    served: float = 0.0
    rejected: int = 0
    rejected_at: float = 0.0

    @property
    def uses(self) -> int:
        """The maximum number of requests that were not rejected."""
        return self.count - self.rejected + self.slack

    def add(self, more: "ClientUsage") -> None:
        self.first = min(self.first or more.first, more.first)
        self.last = max(self.last, more.last)
        self.served = max(self.served, more.served)
        self.count += more.count
        self.refused += more.refused
        self.failed += more.failed
        self.rejected += more.rejected
        self.rejected_at = max(self.rejected_at, more.rejected_at)


class TopClients:
    """The busiest clients of one version of an API.

    Attributes:
        floor: the maximum number of requests, except rejected ones, of any client without a row.
        changed: the keys of the rows that were changed or removed since the last call of
            `Totals.changes`.
        last: the time of the last request, in seconds since 1970; 0 without requests.
    """

    def __init__(self, rows: dict[RowKey, ClientUsage] | None = None, floor: int = 0) -> None:
        self.rows = rows or {}
        self.floor = floor
        self.changed: set[RowKey] = set()
        self.last = max((row.last for row in self.rows.values()), default=0.0)
        self.served = max((row.served for row in self.rows.values()), default=0.0)
        self._limit = 2 * ROWS_AFTER_CUT

    def put(self, key: RowKey, row: ClientUsage) -> None:
        self.rows[key] = row
        self._note(row)

    def add(self, usage: UsageDelta, at: float) -> None:
        key = usage.operation, usage.client
        row = self.rows.get(key)
        if row is None:
            row = self.rows[key] = ClientUsage(slack=self.floor)
        served, rejected = (at if count else 0.0 for count in (usage.served, usage.rejected))
        counts = usage.count, usage.refused, usage.failed
        row.add(ClientUsage(*counts, 0, at, at, served, usage.rejected, rejected))
        self._note(row)
        self.changed.add(key)
        self.cut()

    def merge(self, other: "TopClients") -> None:
        """Add the rows of another instance, which counted other requests for the same version."""
        if other.floor:
            for (_, client), row in self.rows.items():
                row.slack += 0 if client is None else other.floor
        for key, row in other.rows.items():
            own = self.rows.get(key)
            if own is None:
                slack = 0 if key[1] is None else self.floor + row.slack
                own = self.rows[key] = ClientUsage(slack=slack)
            own.add(row)
            self._note(own)
            self.changed.add(key)
        self.floor += other.floor
        self.cut()

    def cut(self) -> None:
        if len(self.rows) <= self._limit:
            return
        former = self.floor
        named = [key for key in self.rows if key[0] != OTHERS and key[1] is not None]
        self._merge_smallest(named, lambda key: (OTHERS, key[1]), former)
        named = [key for key in self.rows if key[0] == OTHERS and key[1] is not None]
        self._merge_smallest(named, lambda key: (OTHERS, None), 0)
        # Rows of other clients by endpoint come from a former release.
        self._limit = len(self.rows) + ROWS_AFTER_CUT

    def _merge_smallest(
        self, keys: list[RowKey], target: Callable[[RowKey], RowKey], slack: int
    ) -> None:
        kept = set(nlargest(ROWS_AFTER_CUT, keys, key=self._estimate))
        for key in keys:
            if key in kept:
                continue
            self.floor = max(self.floor, self._estimate(key))
            row, others = self.rows.pop(key), target(key)
            self.rows.setdefault(others, ClientUsage(slack=slack)).add(row)
            self.changed |= {key, others}

    def _note(self, row: ClientUsage) -> None:
        self.last = max(self.last, row.last)
        self.served = max(self.served, row.served)

    def _estimate(self, key: RowKey) -> int:
        return self.rows[key].uses

    def __iter__(self) -> Iterator[tuple[RowKey, ClientUsage]]:
        return iter(self.rows.items())


UsageKey = tuple[str, str, str, str | None]
UsageRow = tuple[str, str, str, str | None, int, int, int, int, float, float, float, int, float]
CountKey = tuple[str, tuple[str, ...]]
CountRow = tuple[str, tuple[str, ...], int, float, float]

# The maximum number of rows of evidence by version and route that wait for the gates.
_MOST_ROWS = 10_000
MAX_NAMES = 256
"""The maximum number of values of a counter's last label, such as differing fields. Any further
values are counted as OTHERS."""
BOUNDED_KINDS = {"operations", "operations_compared"}
SHADOW_KINDS = {"compared", "differing", "noise", "shed", "differences"} | {
    *("operations_compared", "validated", "invalid")
}
_SAMPLES = 20
# The maximum number of combinations of method, status and error. Any further combinations are
# counted as OVERFLOW, as in OpenTelemetry's metrics SDK.
MAX_ENDINGS = 100
EndingKey = tuple[str, int, str]
"""The method, status and error of requests. The status is 0 without a response, and the error is
empty without an error."""
OVERFLOW: EndingKey = ("", 0, "")


@dataclass(slots=True)
class StateRows:
    """All rows of a store, or changed rows that replace the rows with the same keys.

    Attributes:
        floors: `TopClients.floor` by API and version.
        audit: entries to append to the audit log; if read from a store, the latest entries.
    """

    usage: list[UsageRow] = field(default_factory=list)
    deleted_usage: list[UsageKey] = field(default_factory=list)
    floors: dict[tuple[str, str], int] = field(default_factory=dict)
    counts: list[CountRow] = field(default_factory=list)
    deleted_counts: list[CountKey] = field(default_factory=list)
    documents: dict[str, object] = field(default_factory=dict)
    audit: list[AuditEntry] = field(default_factory=list)
    history: list[IntervalRow] = field(default_factory=list)

    def __bool__(self) -> bool:
        usage = self.usage or self.deleted_usage or self.floors
        counts = self.counts or self.deleted_counts or self.history
        return bool(usage or counts or self.documents or self.audit)


@dataclass(slots=True)
class Occurrences:
    """A count, with the times of the first and last occurrence in seconds since 1970."""

    count: int = 0
    first: float = 0.0
    last: float = 0.0

    def add(self, more: "Occurrences") -> None:
        self.first = min(self.first or more.first, more.first)
        self.last = max(self.last, more.last)
        self.count += more.count


@dataclass(slots=True)
class Durations:
    """The durations of requests since this process started. For `buckets`, see `Interval`."""

    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    seconds: float = 0.0

    def add(self, buckets: list[int], seconds: float) -> None:
        for index, count in enumerate(buckets):
            self.buckets[index] += count
        self.seconds += seconds


@dataclass(slots=True)
class TrafficTotal:
    endings: dict[EndingKey, Durations] = field(default_factory=dict)
    converted: int = 0

    def add(self, more: TrafficDelta | UpstreamDelta) -> None:
        key = more.method, more.status, more.error
        if key not in self.endings and len(self.endings) >= MAX_ENDINGS:
            key = OVERFLOW
        self.endings.setdefault(key, Durations()).add(more.buckets, more.seconds)
        if isinstance(more, TrafficDelta):
            self.converted += more.converted


@dataclass(slots=True)
class CutoverTotal:
    """The outcomes on one route. `fields` counts violations of the document by field."""

    outcomes: RouteOutcomes = NOTHING
    durations: Durations = field(default_factory=Durations)
    fields: Counter[str] = field(default_factory=Counter)

    def add(self, more: CutoverDelta) -> None:
        """Add outcomes; fields beyond the maximum number are counted as OTHERS."""
        outcomes = RouteOutcomes(
            requests=more.requests,
            overdue=more.overdue,
            ends=tuple(more.ends),
            seconds=more.seconds,
            checked=more.checked,
            violating=more.violating,
        )
        self.outcomes = self.outcomes.plus(outcomes)
        self.durations.add(more.buckets, more.whole)
        for name, count in more.fields.items():
            known = name in self.fields or len(self.fields) < MAX_NAMES
            self.fields[name if known else OTHERS] += count


class Totals:
    """The sums of all deltas; `changes` returns the rows to store.

    Attributes:
        since: the time at which counting began, in seconds since 1970.
        traffic: the requests by API, version, endpoint and scheme, since this process started.
        outcomes: the outcomes by API, version and route of a cutover, since this process started.
        latencies: the number of responses by the index that `latency_bucket` returns, for each API,
            version and route of a shadow, since this process started.
        task_failed: the time of the last failure of each task, by the monotonic clock.
    """

    def __init__(self, rows: StateRows | None = None) -> None:
        rows = rows or StateRows()
        since = rows.documents.get("since")
        self.since = float(since) if since and isinstance(since, int | float) else time.time()
        self.clients: dict[VersionKey, TopClients] = {
            version: TopClients(floor=floor) for version, floor in rows.floors.items()
        }
        for row in rows.usage:
            api, version, endpoint, client = row[:4]
            self.clients_of(api, version).put((endpoint, client), ClientUsage(*row[4:]))
        self.counts: dict[CountKey, Occurrences] = {}
        self._names: Counter[CountKey] = Counter()
        for kind, labels, count, first, last in rows.counts:
            self.put_count(kind, labels, Occurrences(count, first, last))
        self.traffic: dict[tuple[str, str, str, str], TrafficTotal] = {}
        self.upstream: dict[tuple[str, str, str], TrafficTotal] = {}
        self.outcomes: dict[tuple[str, str, str], CutoverTotal] = {}
        self._rows: dict[tuple[str, str, str], deque[EvidenceRow]] = {}
        self.samples: dict[tuple[str, str, str], deque[SampleDelta]] = {}
        self.latencies: dict[tuple[str, str, str], Counter[int]] = {}
        self.history = History(rows.history)
        self.task_failed: dict[str, float] = {}
        self._counted: set[CountKey] = set()

    def clients_of(self, api: str, version: str) -> TopClients:
        found = self.clients.get((api, version))
        if found is None:
            found = self.clients[api, version] = TopClients()
        return found

    def absorb(self, delta: Delta) -> None:
        """Add the counts of a process. If it lost counts, `since` becomes the time of the delta."""
        if delta.lost:
            self.since = max(self.since, delta.at)
        self.history.absorb(delta)
        for usage in delta.usages:
            self.clients_of(usage.api, usage.version).add(usage, delta.at)
        for traffic in delta.traffic:
            served = traffic.api, traffic.version, traffic.endpoint, traffic.scheme
            self.traffic.setdefault(served, TrafficTotal()).add(traffic)
        for sent in delta.upstream:
            place = sent.api, sent.version, sent.target
            self.upstream.setdefault(place, TrafficTotal()).add(sent)
        for count in delta.counts:
            self.count(count.kind, count.labels, Occurrences(count.count, delta.at, delta.at))
            if count.kind == "task_failures":
                self.task_failed[count.labels[0]] = time.monotonic()
        for outcome in delta.outcomes:
            place = outcome.api, outcome.version, outcome.route
            if outcome.route != SHADOW:
                self.outcomes.setdefault(place, CutoverTotal()).add(outcome)
            if outcome.rows:
                self._rows.setdefault(place, deque(maxlen=_MOST_ROWS)).extend(outcome.rows)
        for sample in delta.samples:
            self.sample(sample)
        for latency in delta.latencies:
            place = latency.api, latency.version, latency.route
            self.latencies.setdefault(place, Counter()).update(latency.buckets)

    def merge(self, other: "Totals") -> None:
        self.history.add(other.history.rows())
        for key, clients in other.clients.items():
            self.clients_of(*key).merge(clients)
        for (kind, labels), times in other.counts.items():
            self.count(kind, labels, times)
        for samples in other.samples.values():
            for sample in samples:
                self.sample(sample)

    def sample(self, sample: SampleDelta) -> None:
        """Add a sample, which replaces an equal sample or a sample of the most frequent field.

        So frequent differences do not displace rare differences.
        """
        place = sample.kind, sample.api, sample.version
        kept = self.samples.setdefault(place, deque(maxlen=_SAMPLES))
        replaced = next((one for one in kept if one.document == sample.document), None)
        if replaced is None and len(kept) == _SAMPLES:
            fields = [_field(one) for one in kept]
            most = max(map(fields.count, fields))
            replaced = next(one for one in kept if fields.count(_field(one)) == most)
        if replaced is not None:
            kept.remove(replaced)
        kept.append(sample)

    def counted(self, kind: str, *labels: str) -> Iterator[tuple[tuple[str, ...], Occurrences]]:
        for (name, values), times in self.counts.items():
            if name == kind and values[: len(labels)] == labels:
                yield values, times

    def route_counts(self, key: VersionKey) -> RouteCounts:
        """Return the counts of a cutover, with the rows of evidence since the last call."""
        compared, validated, differing, invalid = (
            times.count if (times := self.counts.get((kind, key))) else 0
            for kind in ("compared", "validated", "differing", "invalid")
        )
        old, new = (self.outcomes.get((*key, route)) or CutoverTotal() for route in CutoverRoute)
        return RouteCounts(
            old.outcomes,
            new.outcomes,
            compared + validated,
            differing + invalid,
            old.fields,
            new.fields,
            {route: self._rows.pop((*key, route), ()) for route in (*CutoverRoute, SHADOW)},
        )

    def reset_shadow(self, key: VersionKey) -> None:
        of_shadow = (each for each in self.counts if each[0] in SHADOW_KINDS)
        for counted in [each for each in of_shadow if each[1][:2] == key]:
            del self.counts[counted]
            self._names[counted[0], counted[1][:-1]] -= 1
            self._counted.add(counted)
        self.samples.pop(("differences", *key), None)
        self._rows.pop((*key, SHADOW), None)
        for place in [each for each in self.latencies if each[:2] == key]:
            del self.latencies[place]

    def changes(self) -> StateRows:
        """Return the rows changed since the last call. If they cannot be stored, call `revert`."""
        changes = StateRows(history=self.history.take())
        for (api, version), clients in self.clients.items():
            for endpoint, client in clients.changed:
                row = clients.rows.get((endpoint, client))
                if row is None:
                    changes.deleted_usage.append((api, version, endpoint, client))
                else:
                    changes.usage.append(usage_row(api, version, (endpoint, client), row))
            if clients.changed:
                changes.floors[api, version] = clients.floor
            clients.changed = set()
        for kind, labels in self._counted:
            times = self.counts.get((kind, labels))
            if times is None:
                changes.deleted_counts.append((kind, labels))
            else:
                changes.counts.append((kind, labels, times.count, times.first, times.last))
        self._counted = set()
        return changes

    def revert(self, changes: StateRows) -> None:
        for api, version, endpoint, client in [
            *(row[:4] for row in changes.usage),
            *changes.deleted_usage,
        ]:
            self.clients[api, version].changed.add((endpoint, client))
        self.history.add(changes.history)
        self._counted |= {(kind, labels) for kind, labels, *_ in changes.counts}
        self._counted |= set(changes.deleted_counts)

    def mark_all(self) -> None:
        for clients in self.clients.values():
            clients.changed.update(clients.rows)
        self._counted.update(self.counts)

    def count(self, kind: str, labels: tuple[str, ...], more: Occurrences) -> None:
        key = kind, labels
        if key not in self.counts:
            if self._names[kind, labels[:-1]] >= MAX_NAMES and kind not in BOUNDED_KINDS:
                key = kind, (*labels[:-1], OTHERS)
            if key not in self.counts:
                self.put_count(*key, Occurrences())
        self.counts[key].add(more)
        self._counted.add(key)

    def put_count(self, kind: str, labels: tuple[str, ...], times: Occurrences) -> None:
        self.counts[kind, labels] = times
        self._names[kind, labels[:-1]] += 1


def usage_row(api: str, version: str, key: RowKey, row: ClientUsage) -> UsageRow:
    return (
        *(api, version, *key),
        *(row.count, row.refused, row.failed, row.slack, row.first, row.last, row.served),
        *(row.rejected, row.rejected_at),
    )


def _field(sample: SampleDelta) -> object:
    return sample.document.get("field") if isinstance(sample.document, dict) else None
