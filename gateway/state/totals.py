"""Totals: the sum of what all serving processes have counted."""

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from gateway.core.overrides import VersionKey
from gateway.state.state_changes import StateChanges, UsageRow
from gateway.state.top_clients import ClientUsage, RowKey, TopClients
from gateway.telemetry.delta import BOUNDS, CLASSES, CutoverDelta, Delta, TrafficDelta

# A kind has at most so many values of its last label (fields that differ, say); more are OTHERS.
_MAX_NAMES = 256
OTHERS = "(others)"
# The kinds that a shadow counts.
_SHADOW = {"compared", "differing", "noise", "shed", "differences"}
_SAMPLES = 20


@dataclass(slots=True)
class Occurrences:
    """How often something happened, first and last in seconds since 1970."""

    count: int = 0
    first: float = 0.0
    last: float = 0.0


@dataclass(slots=True)
class TrafficTotal:
    """The outcomes of requests since this process started.

    Attributes:
        statuses: the number of requests of each class in `delta.CLASSES`.
        buckets: the number up to each duration in `delta.BOUNDS`, and above the last.
        seconds: the sum of all durations.
        converted: the number of requests with a body converted.
        failures: the number of failed requests of a cutover.
    """

    statuses: list[int] = field(default_factory=lambda: [0] * len(CLASSES))
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    seconds: float = 0.0
    converted: int = 0
    failures: int = 0

    def add(self, more: "TrafficTotal | TrafficDelta | CutoverDelta") -> None:
        """Add other outcomes."""
        for index, count in enumerate(more.buckets):
            self.buckets[index] += count
        self.seconds += more.seconds
        if isinstance(more, CutoverDelta):
            self.failures += more.failures
            return
        for index, count in enumerate(more.statuses):
            self.statuses[index] += count
        self.converted += more.converted


class Totals:
    """Sums in memory; `changes` returns what a store has to be given.

    Attributes:
        since: when counting began, in seconds since 1970.
        clients: the usage of each version, by client.
        counts: by kind and labels; see `delta.COUNTERS`.
        traffic: by API, version and endpoint, since this process started.
        outcomes: by API, version and route of a cutover, since this process started.
        samples: the latest that differ of each kind, API and version.
    """

    def __init__(self, state: StateChanges) -> None:
        self.since = _number(state.documents.get("since")) or time.time()
        self.clients: dict[VersionKey, TopClients] = {
            version: TopClients(floor=floor) for version, floor in state.floors.items()
        }
        for row in state.usage:
            api, version, endpoint, client = row[:4]
            self.clients_of(api, version).rows[endpoint, client] = ClientUsage(*row[4:])
        self.counts: dict[tuple[str, tuple[str, ...]], Occurrences] = {
            row[:2]: Occurrences(*row[2:]) for row in state.counts
        }
        self.traffic: dict[tuple[str, str, str], TrafficTotal] = {}
        self.outcomes: dict[tuple[str, str, str], TrafficTotal] = {}
        self.samples: dict[tuple[str, str, str], deque[object]] = {}
        self._counted: set[tuple[str, tuple[str, ...]]] = set()

    def clients_of(self, api: str, version: str) -> TopClients:
        """Return the clients of a version, none yet if it has not been used."""
        return self.clients.setdefault((api, version), TopClients())

    def absorb(self, delta: Delta) -> None:
        """Add what a process has counted."""
        for usage in delta.usages:
            self.clients_of(usage.api, usage.version).add(usage, delta.at)
        for traffic in delta.traffic:
            place = traffic.api, traffic.version, traffic.endpoint
            self.traffic.setdefault(place, TrafficTotal()).add(traffic)
        for count in delta.counts:
            self._count(count.kind, count.labels, count.count, delta.at)
        for outcome in delta.outcomes:
            place = outcome.api, outcome.version, outcome.route
            self.outcomes.setdefault(place, TrafficTotal()).add(outcome)
        for sample in delta.samples:
            place = sample.kind, sample.api, sample.version
            kept = self.samples.setdefault(place, deque(maxlen=_SAMPLES))
            if sample.document not in kept:  # the same ones would crowd the others out
                kept.append(sample.document)

    def counted(self, kind: str, *labels: str) -> Iterator[tuple[tuple[str, ...], Occurrences]]:
        """Yield the counts of a kind whose first labels are these."""
        for (name, values), times in self.counts.items():
            if name == kind and values[: len(labels)] == labels:
                yield values, times

    def reset_shadow(self, key: VersionKey) -> None:
        """Delete all that the shadow of a version has counted."""
        for counted in [each for each in self.counts if each[0] in _SHADOW and each[1][:2] == key]:
            del self.counts[counted]
            self._counted.add(counted)
        self.samples.pop(("differences", *key), None)

    def changes(self) -> StateChanges:
        """Return what changed since the last call; where it cannot be written, call `revert`."""
        changes = StateChanges()
        for (api, version), clients in self.clients.items():
            for endpoint, client in clients.changed:
                row = clients.rows.get((endpoint, client))
                if row is None:
                    changes.gone.append((api, version, endpoint, client))
                else:
                    changes.usage.append(_usage_row(api, version, (endpoint, client), row))
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
        self._counted |= {(kind, labels) for kind, labels, *_ in changes.counts}
        self._counted |= set(changes.uncounted)

    def mark_all(self) -> None:
        """Have the next call of `changes` return all that is here."""
        for clients in self.clients.values():
            clients.changed.update(clients.rows)
        self._counted.update(self.counts)

    def _count(self, kind: str, labels: tuple[str, ...], count: int, at: float) -> None:
        key = kind, labels
        if key not in self.counts:
            alike = sum(1 for _ in self.counted(kind, *labels[:-1]))
            if alike >= _MAX_NAMES:
                key = kind, (*labels[:-1], OTHERS)
        times = self.counts.setdefault(key, Occurrences(first=at))
        times.count += count
        times.last = max(times.last, at)
        self._counted.add(key)


def _usage_row(api: str, version: str, key: RowKey, row: ClientUsage) -> UsageRow:
    return (
        *(api, version, *key),
        *(row.count, row.refused, row.failed, row.slack, row.first, row.last, row.served),
    )


def _number(document: object) -> float:
    return float(document) if isinstance(document, int | float) else 0.0
