"""Totals: the sum of what all serving processes have counted."""

import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from gateway.base.overrides import VersionKey
from gateway.rollout.failing_operations import MOST_OPERATIONS
from gateway.rollout.route_outcomes import RouteOutcomes
from gateway.usage.delta import (
    BOUNDS,
    CutoverDelta,
    Delta,
    SampleDelta,
    TrafficDelta,
    UpstreamDelta,
)
from gateway.usage.history import History
from gateway.usage.state_changes import StateChanges, UsageRow
from gateway.usage.top_clients import ClientUsage, RowKey, TopClients

# A kind has at most so many values of its last label (fields that differ, say); more are OTHERS.
MAX_NAMES = 256
OTHERS = "(others)"
# Kinds whose labels the rules bound.
BOUNDED_KINDS = {"operations", "operations_compared"}
# The kinds that a shadow counts.
SHADOW_KINDS = {"compared", "differing", "noise", "shed", "differences"} | {
    *("operations_compared", "validated", "invalid")
}
_SAMPLES = 20
# The requests of one place are told apart by so many endings; those with others are added up as
# OVERFLOW, as in the metrics SDK of OpenTelemetry.
MAX_ENDINGS = 100
EndingKey = tuple[str, int, str]
"""How requests ended: method, status (0 for none) and error (empty for none)."""
OVERFLOW: EndingKey = ("", 0, "")


@dataclass(slots=True)
class Occurrences:
    """How often something happened, first and last in seconds since 1970."""

    count: int = 0
    first: float = 0.0
    last: float = 0.0

    def add(self, more: "Occurrences") -> None:
        """Add other occurrences."""
        self.first = min(self.first or more.first, more.first)
        self.last = max(self.last, more.last)
        self.count += more.count


@dataclass(slots=True)
class Durations:
    """How long requests took since this process started.

    Attributes:
        buckets: the number up to each duration in `delta.BOUNDS`, and above the last.
        seconds: the sum of all durations.
    """

    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    seconds: float = 0.0

    def add(self, buckets: list[int], seconds: float) -> None:
        """Add the durations of other requests."""
        for index, count in enumerate(buckets):
            self.buckets[index] += count
        self.seconds += seconds


@dataclass(slots=True)
class TrafficTotal:
    """The outcomes of requests since this process started.

    Attributes:
        endings: their durations by how they ended.
        converted: the number of requests with a body converted.
    """

    endings: dict[EndingKey, Durations] = field(default_factory=dict)
    converted: int = 0

    def add(self, more: TrafficDelta | UpstreamDelta) -> None:
        """Add other outcomes."""
        key = more.method, more.status, more.error
        if key not in self.endings and len(self.endings) >= MAX_ENDINGS:
            key = OVERFLOW
        self.endings.setdefault(key, Durations()).add(more.buckets, more.seconds)
        if isinstance(more, TrafficDelta):
            self.converted += more.converted


@dataclass(slots=True)
class CellTotals:
    """The outcomes of requests by client.

    Attributes:
        cells: the outcomes by cell of clients; see `Cutover.cell_of`.
        outcomes: the outcomes of all clients.
    """

    cells: dict[int, RouteOutcomes] = field(default_factory=dict)
    outcomes: RouteOutcomes = field(default_factory=RouteOutcomes)

    def add_to(self, cell: int, more: RouteOutcomes) -> None:
        """Add other outcomes of a cell."""
        self.outcomes = self.outcomes.plus(more)
        known = self.cells.get(cell)
        self.cells[cell] = more if known is None else known.plus(more)


@dataclass(slots=True)
class CutoverTotal(CellTotals):
    """The outcomes of the requests on one route of a cutover since this process started.

    Attributes:
        durations: how long all requests took.
        fields: how many answers violate the document of the version at a field.
        operations: the outcomes by operation; those of too many are OTHERS.
    """

    durations: Durations = field(default_factory=Durations)
    fields: Counter[str] = field(default_factory=Counter)
    operations: dict[str, CellTotals] = field(default_factory=dict)

    def add(self, more: CutoverDelta) -> None:
        """Add other outcomes."""
        outcomes = RouteOutcomes(
            requests=more.requests,
            overdue=more.overdue,
            ends=tuple(more.ends),
            seconds=more.seconds,
            squares=more.squares,
            writes=more.writes,
            failed_writes=more.failed_writes,
            checked=more.checked,
            violating=more.violating,
            checked_writes=more.checked_writes,
            violating_writes=more.violating_writes,
        )
        self.add_to(more.cell, outcomes)
        self.durations.add(more.buckets, more.whole)
        for name, count in more.fields.items():
            known = name in self.fields or len(self.fields) < MAX_NAMES
            self.fields[name if known else OTHERS] += count
        for name, counted in more.operations.items():
            known = name in self.operations or len(self.operations) < MOST_OPERATIONS
            of_it = self.operations.setdefault(name if known else OTHERS, CellTotals())
            of_it.add_to(
                more.cell,
                RouteOutcomes(
                    counted.requests,
                    counted.overdue,
                    tuple(counted.ends),
                    checked=counted.checked,
                    violating=counted.violating,
                ),
            )


class Totals:
    """Sums in memory; `changes` returns what a store has to be given.

    Attributes:
        since: when counting began, in seconds since 1970.
        clients: the usage of each version, by client.
        counts: by kind and labels; see `metric_table.METRICS`.
        traffic: by API, version and endpoint, since this process started.
        upstream: the requests to services by API, version and target, since this process started.
        outcomes: by API, version and route of a cutover, since this process started.
        samples: the latest of those that are not alike, of each kind, API and version.
        history: by the minute and by the day.
        latencies: by API, version and route of a shadow, since this process started; the number of
            answers by the index of their bucket in `gateway.observe.latency`.
        task_failed: by task, when it was heard last that it failed, by the monotonic clock.
    """

    def __init__(self, state: StateChanges) -> None:
        self.since = _number(state.documents.get("since")) or time.time()
        self.clients: dict[VersionKey, TopClients] = {
            version: TopClients(floor=floor) for version, floor in state.floors.items()
        }
        for row in state.usage:
            api, version, endpoint, client = row[:4]
            self.clients_of(api, version).put((endpoint, client), ClientUsage(*row[4:]))
        self.counts: dict[tuple[str, tuple[str, ...]], Occurrences] = {}
        self._names: Counter[tuple[str, tuple[str, ...]]] = Counter()
        for kind, labels, count, first, last in state.counts:
            self.put_count(kind, labels, Occurrences(count, first, last))
        self.traffic: dict[tuple[str, str, str], TrafficTotal] = {}
        self.upstream: dict[tuple[str, str, str], TrafficTotal] = {}
        self.outcomes: dict[tuple[str, str, str], CutoverTotal] = {}
        self.samples: dict[tuple[str, str, str], deque[SampleDelta]] = {}
        self.latencies: dict[tuple[str, str, str], Counter[int]] = {}
        self.history = History(state.history)
        self.task_failed: dict[str, float] = {}
        self._counted: set[tuple[str, tuple[str, ...]]] = set()

    def clients_of(self, api: str, version: str) -> TopClients:
        """Return the clients of a version, none yet if it has not been used."""
        found = self.clients.get((api, version))
        if found is None:
            found = self.clients[api, version] = TopClients()
        return found

    def absorb(self, delta: Delta) -> None:
        """Add what a process has counted; where counts before it are lost, begin anew."""
        if delta.lost:
            self.since = max(self.since, delta.at)
        self.history.absorb(delta)
        for usage in delta.usages:
            self.clients_of(usage.api, usage.version).add(usage, delta.at)
        for traffic in delta.traffic:
            place = traffic.api, traffic.version, traffic.endpoint
            self.traffic.setdefault(place, TrafficTotal()).add(traffic)
        for asked in delta.upstream:
            place = asked.api, asked.version, asked.target
            self.upstream.setdefault(place, TrafficTotal()).add(asked)
        for count in delta.counts:
            self.count(count.kind, count.labels, Occurrences(count.count, delta.at, delta.at))
            if count.kind == "task_failures":
                self.task_failed[count.labels[0]] = time.monotonic()
        for outcome in delta.outcomes:
            place = outcome.api, outcome.version, outcome.route
            self.outcomes.setdefault(place, CutoverTotal()).add(outcome)
        for sample in delta.samples:
            self.sample(sample)
        for latency in delta.latencies:
            place = latency.api, latency.version, latency.route
            self.latencies.setdefault(place, Counter()).update(latency.buckets)

    def merge(self, other: "Totals") -> None:
        """Add the usage, the counts, the history and the samples of other requests."""
        self.history.add(other.history.rows())
        for key, clients in other.clients.items():
            self.clients_of(*key).merge(clients)
        for (kind, labels), times in other.counts.items():
            self.count(kind, labels, times)
        for samples in other.samples.values():
            for sample in samples:
                self.sample(sample)

    def sample(self, sample: SampleDelta) -> None:
        """Keep a sample."""
        place = sample.kind, sample.api, sample.version
        kept = self.samples.setdefault(place, deque(maxlen=_SAMPLES))
        # One that is like another takes its place, and otherwise that of the field with most of
        # them, or the same ones would crowd the rest out: a rare difference is the one to look at.
        alike = next((one for one in kept if one.document == sample.document), None)
        if alike is None and len(kept) == _SAMPLES:
            fields = [_field(one) for one in kept]
            most = max(map(fields.count, fields))
            alike = next(one for one in kept if fields.count(_field(one)) == most)
        if alike is not None:
            kept.remove(alike)
        kept.append(sample)

    def counted(self, kind: str, *labels: str) -> Iterator[tuple[tuple[str, ...], Occurrences]]:
        """Yield the counts of a kind whose first labels are these."""
        for (name, values), times in self.counts.items():
            if name == kind and values[: len(labels)] == labels:
                yield values, times

    def reset_shadow(self, key: VersionKey) -> None:
        """Delete all that the shadow of a version has counted."""
        of_shadow = (each for each in self.counts if each[0] in SHADOW_KINDS)
        for counted in [each for each in of_shadow if each[1][:2] == key]:
            del self.counts[counted]
            self._names[counted[0], counted[1][:-1]] -= 1
            self._counted.add(counted)
        self.samples.pop(("differences", *key), None)
        for place in [each for each in self.latencies if each[:2] == key]:
            del self.latencies[place]

    def changes(self) -> StateChanges:
        """Return what changed since the last call; where it cannot be written, call `revert`."""
        changes = StateChanges(history=self.history.take())
        for (api, version), clients in self.clients.items():
            for endpoint, client in clients.changed:
                row = clients.rows.get((endpoint, client))
                if row is None:
                    changes.gone.append((api, version, endpoint, client))
                else:
                    changes.usage.append(usage_row(api, version, (endpoint, client), row))
            if clients.changed:
                changes.floors[api, version] = clients.floor
            clients.changed = set()
        for kind, labels in self._counted:
            times = self.counts.get((kind, labels))
            if times is None:
                changes.uncounted.append((kind, labels))
            else:
                changes.counts.append((kind, labels, times.count, times.first, times.last))
        self._counted = set()
        return changes

    def revert(self, changes: StateChanges) -> None:
        """Have the next call of `changes` return these changes again."""
        for api, version, endpoint, client, *_ in changes.usage:
            self.clients[api, version].changed.add((endpoint, client))
        for api, version, endpoint, client in changes.gone:
            self.clients[api, version].changed.add((endpoint, client))
        self.history.add(changes.history)
        self._counted |= {(kind, labels) for kind, labels, *_ in changes.counts}
        self._counted |= set(changes.uncounted)

    def mark_all(self) -> None:
        """Have the next call of `changes` return all that is here."""
        for clients in self.clients.values():
            clients.changed.update(clients.rows)
        self._counted.update(self.counts)

    def count(self, kind: str, labels: tuple[str, ...], more: Occurrences) -> None:
        """Add to a count."""
        key = kind, labels
        if key not in self.counts:
            if self._names[kind, labels[:-1]] >= MAX_NAMES and kind not in BOUNDED_KINDS:
                key = kind, (*labels[:-1], OTHERS)
            if key not in self.counts:
                self.put_count(*key, Occurrences())
        self.counts[key].add(more)
        self._counted.add(key)

    def put_count(self, kind: str, labels: tuple[str, ...], times: Occurrences) -> None:
        """Add a count as a store has it."""
        self.counts[kind, labels] = times
        self._names[kind, labels[:-1]] += 1


def usage_row(api: str, version: str, key: RowKey, row: ClientUsage) -> UsageRow:
    """Return the row of a store for the usage of one endpoint by one client."""
    return (
        *(api, version, *key),
        *(row.count, row.refused, row.failed, row.slack, row.first, row.last, row.served),
    )


def _number(document: object) -> float:
    return float(document) if isinstance(document, int | float) else 0.0


def _field(sample: SampleDelta) -> object:
    return sample.document.get("field") if isinstance(sample.document, dict) else None
