"""The Totals: what all serving processes have counted, added up."""

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from gateway.core.overrides import VersionKey
from gateway.state.state_changes import StateChanges, UsageRow
from gateway.state.top_clients import ClientUsage, RowKey, TopClients
from gateway.telemetry.delta import BOUNDS, CLASSES, CutoverDelta, Delta, TrafficDelta

# So many values of a kind's last label are told apart (fields that differ, say); then the rest.
_MOST_NAMES = 256
OTHERS = "(others)"
# The kinds of what a shadow finds.
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
    """How requests went since this process started.

    Attributes:
        statuses: how many by class, as `report.CLASSES` has them.
        buckets: how many by duration, as `report.BOUNDS` has them, and one more.
        seconds: all durations together.
        converted: how many had a body converted.
        failures: how many failed, where that is counted apart.
    """

    statuses: list[int] = field(default_factory=lambda: [0] * len(CLASSES))
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    seconds: float = 0.0
    converted: int = 0
    failures: int = 0

    def add(self, more: "TrafficTotal | TrafficDelta | CutoverDelta") -> None:
        """Add what went on as well."""
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
    """Totals in memory; what is to outlive the process goes to a Store through `changes`.

    Attributes:
        since: when counting began, in seconds since 1970.
        books: who uses each version.
        counts: by kind and labels; see `report.KINDS`.
        traffic: by API, version and endpoint, since this process started.
        outcomes: by API, version and route of a cutover, since this process started.
        samples: the latest that differ of each kind, API and version.
    """

    def __init__(self, records: StateChanges) -> None:
        self.since = _number(records.documents.get("since")) or time.time()
        self.books: dict[VersionKey, TopClients] = {
            version: TopClients(floor=floor) for version, floor in records.floors.items()
        }
        for row in records.usage:
            api, version, endpoint, client = row[:4]
            self.book(api, version).rows[endpoint, client] = ClientUsage(*row[4:])
        self.counts: dict[tuple[str, tuple[str, ...]], Occurrences] = {
            row[:2]: Occurrences(*row[2:]) for row in records.counts
        }
        self.traffic: dict[tuple[str, str, str], TrafficTotal] = {}
        self.outcomes: dict[tuple[str, str, str], TrafficTotal] = {}
        self.samples: dict[tuple[str, str, str], deque[object]] = {}
        self._counted: set[tuple[str, tuple[str, ...]]] = set()

    def book(self, api: str, version: str) -> TopClients:
        """Return the book of a version, a new one if there is none."""
        return self.books.setdefault((api, version), TopClients())

    def absorb(self, report: Delta) -> None:
        """Add up what a process has counted."""
        for usage in report.usages:
            self.book(usage.api, usage.version).add(usage, report.at)
        for line in report.traffic:
            place = line.api, line.version, line.endpoint
            self.traffic.setdefault(place, TrafficTotal()).add(line)
        for count in report.counts:
            self._count(count.kind, count.labels, count.count, report.at)
        for outcome in report.outcomes:
            place = outcome.api, outcome.version, outcome.route
            self.outcomes.setdefault(place, TrafficTotal()).add(outcome)
        for sample in report.samples:
            place = sample.kind, sample.api, sample.version
            kept = self.samples.setdefault(place, deque(maxlen=_SAMPLES))
            if sample.document not in kept:  # the same ones would crowd the others out
                kept.append(sample.document)

    def counted(self, kind: str, *labels: str) -> Iterator[tuple[tuple[str, ...], Occurrences]]:
        """Yield what was counted of a kind, where the first labels are these."""
        for (name, values), times in self.counts.items():
            if name == kind and values[: len(labels)] == labels:
                yield values, times

    def forget_shadow(self, key: VersionKey) -> None:
        """Count anew what the shadow of a version finds."""
        for counted in [each for each in self.counts if each[0] in _SHADOW and each[1][:2] == key]:
            del self.counts[counted]
            self._counted.add(counted)
        self.samples.pop(("differences", *key), None)

    def changes(self) -> StateChanges:
        """Return what changed since the last call; `revert` says that it was not written."""
        changes = StateChanges()
        for (api, version), book in self.books.items():
            for endpoint, client in book.changed:
                row = book.rows.get((endpoint, client))
                if row is None:
                    changes.gone.append((api, version, endpoint, client))
                else:
                    changes.usage.append(_usage_row(api, version, (endpoint, client), row))
            if book.changed:
                changes.floors[api, version] = book.floor
            book.changed = set()
        for kind, labels in self._counted:
            times = self.counts.get((kind, labels))
            if times is None:
                changes.uncounted.append((kind, labels))
            else:
                changes.counts.append((kind, labels, times.count, times.first, times.last))
        self._counted = set()
        return changes

    def revert(self, changes: StateChanges) -> None:
        """Take changes for not written, so that the next call returns them again."""
        for api, version, endpoint, client, *_ in changes.usage:
            self.books[api, version].changed.add((endpoint, client))
        for api, version, endpoint, client in changes.gone:
            self.books[api, version].changed.add((endpoint, client))
        self._counted |= {(kind, labels) for kind, labels, *_ in changes.counts}
        self._counted |= set(changes.uncounted)

    def _count(self, kind: str, labels: tuple[str, ...], count: int, at: float) -> None:
        key = kind, labels
        if key not in self.counts:
            alike = sum(1 for _ in self.counted(kind, *labels[:-1]))
            if alike >= _MOST_NAMES:
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
