"""History: the intervals of each version, as deltas come in."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from gateway.base.overrides import VersionKey
from gateway.usage.delta import Delta
from gateway.usage.distinct import name_hash
from gateway.usage.interval import Interval, IntervalRow, Resolution

# So many intervals are kept in memory, 25 MB at most; with more versions, they reach less far back.
_MOST = {Resolution.MINUTE: 50_000, Resolution.DAY: 8_000}
_BY = {by.value: by for by in Resolution}
SeriesKey = tuple[str, str, Resolution]
"""API, version and resolution."""


class HistoryQuery(NamedTuple):
    """The intervals that are asked for.

    Attributes:
        by: their resolution.
        api: the API of the versions; None for all.
        span: how far they reach back, in seconds; None for as far as they are kept.
        version: the label of the only version; None for all of the API, or of all.
        callers: how far back it is asked who called, in seconds, which is most of what a store
            reads; those of earlier intervals may be missing. None for as far as they reach.
    """

    by: Resolution
    api: str | None = None
    span: float | None = None
    version: str | None = None
    callers: float | None = None

    def since(self, now: float) -> float:
        """Return the earliest start of these intervals, in seconds since 1970."""
        span = self.by.seconds * self.by.most if self.span is None else self.span
        return now - span

    def callers_since(self, now: float) -> float:
        """Return the earliest start of those whose callers are asked for."""
        return self.since(now) if self.callers is None else now - self.callers


def whole_history(key: VersionKey) -> tuple[HistoryQuery, HistoryQuery]:
    """Return the queries for all of a version, by the day and by the minute."""
    api, label = key
    query = HistoryQuery(Resolution.DAY, api, version=label)
    return query, query._replace(by=Resolution.MINUTE)


class HistoryView(NamedTuple):
    """The history as it is known at a time.

    Attributes:
        query: what was asked for.
        series: the intervals by version and by start, in seconds since 1970, the first ones first.
            One without requests is left out; a version may have none.
        now: the time, in seconds since 1970, by the clock that the intervals go by.
        replica: the name of the replica whose counts alone these are; None for all of them.
    """

    query: HistoryQuery
    series: Mapping[VersionKey, Mapping[int, Interval]]
    now: float
    replica: str | None


class History:
    """Sums in memory: all of a gateway without a store, or what its store does not have yet.

    Of each version, the latest 1,440 minutes and 400 days with requests are kept, and fewer where
    there are many versions. Nothing goes by the age of an interval, so that a clock that jumps
    deletes nothing.

    Args:
        rows: what it begins with.
        bounded: whether all versions together are bounded as well.
    """

    def __init__(self, rows: Iterable[IntervalRow] = (), *, bounded: bool = True) -> None:
        self._series: dict[SeriesKey, dict[int, Interval]] = {}
        self._bounded = bounded
        self.add(rows)

    def absorb(self, delta: Delta) -> None:
        """Add what a process has counted."""
        names: dict[VersionKey, set[str]] = {}
        counts: dict[VersionKey, list[int]] = {}
        for usage in delta.usages:
            key = usage.api, usage.version
            names.setdefault(key, set()).add(usage.client)
            sums = counts.setdefault(key, [0, 0, 0])
            sums[0] += usage.count
            sums[1] += usage.failed
            sums[2] += usage.refused
        found = {
            key: [self._interval((*key, by), by.start(delta.at)) for by in Resolution]
            for key in names
        }
        for key, intervals in found.items():
            hashes = [name_hash(name) for name in names[key]]
            for interval in intervals:
                interval.add_counts(*counts[key])
                interval.callers.add(hashes)
        for traffic in delta.traffic:
            if traffic.method == "OPTIONS":
                continue  # preflights are not counted above
            # Requests that chose no version are none of its callers'.
            for interval in found.get((traffic.api, traffic.version), ()):
                interval.add_durations(traffic.buckets, traffic.seconds)

    def add(self, rows: Iterable[Sequence[Any]]) -> None:
        """Add what was counted of other requests; rows have what an IntervalRow has."""
        changed: dict[SeriesKey, dict[int, Interval]] = {}
        for row in rows:
            by = _BY[row[2]]
            key, start, more = (row[0], row[1], by), row[3], Interval(by, *row[4:])
            intervals = changed.get(key)
            if intervals is None:
                intervals = changed[key] = self._series.setdefault(key, {})
            known = intervals.get(start)
            if known is None:
                intervals[start] = more
            else:
                known.add(more)
        for key, intervals in changed.items():
            self._cut(key[2], intervals)

    def rows(self) -> list[IntervalRow]:
        """Return all that is here."""
        return [
            IntervalRow(api, version, by.value, start, *interval.numbers())
            for (api, version, by), intervals in self._series.items()
            for start, interval in intervals.items()
        ]

    def take(self) -> list[IntervalRow]:
        """Return all that is here, and forget it."""
        rows = self.rows()
        self._series = {}
        return rows

    def view(self, query: HistoryQuery, now: float, replica: str | None = None) -> "HistoryView":
        """Return the intervals that are asked for.

        Args:
            query: asks for them.
            now: the time, in seconds since 1970.
            replica: the name of the replica whose counts alone these are; None for all of them.
        """
        since = query.since(now)
        series = {
            (api, version): {at: found[at] for at in sorted(at for at in found if at >= since)}
            for (api, version, by), found in self._series.items()
            if by is query.by and query.api in (None, api) and query.version in (None, version)
        }
        return HistoryView(query, series, now, replica)

    def _interval(self, key: SeriesKey, start: int) -> Interval:
        found = self._series.get(key, {}).get(start)
        if found is None:
            intervals = self._series.setdefault(key, {})
            found = intervals[start] = Interval(key[2])
            self._cut(key[2], intervals)
        return found

    def _cut(self, by: Resolution, intervals: dict[int, Interval]) -> None:
        most = by.most
        if self._bounded:
            versions = max(len(self._series) // len(Resolution), 1)
            most = min(most, max(_MOST[by] // versions, 1))
        while len(intervals) > most:
            del intervals[min(intervals)]
