"""Usage history: requests, errors, durations and clients, by the minute and by the day.

A caller of a version is a client with at least one request that the service did not reject.
The number of callers is estimated by a distinct-count sketch (KMV; Bar-Yossef et al., "Counting
distinct elements in a data stream", 2002), which contains the smallest hashes of their names. As
long as the sketch has room for all hashes, the count is exact. Beyond that, the standard error is
1/sqrt(size - 2), which is 6 % for a size of 256. Sketches can be merged in any order, and a caller
in several sketches is counted once.
"""

import sys
from array import array
from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from hashlib import blake2b
from itertools import accumulate
from statistics import median
from typing import Any, NamedTuple

from gateway.base.overrides import VersionKey
from gateway.usage.delta import BOUNDS, Delta

_HASHES = 2**64
_NO_BUCKETS = bytes(8 * (len(BOUNDS) + 1))


class Resolution(StrEnum):
    """The length of the intervals of a history. A day begins at 00:00 UTC."""

    MINUTE = "minute"
    DAY = "day"

    @property
    def seconds(self) -> int:
        return 60 if self is Resolution.MINUTE else 86_400

    @property
    def max_intervals(self) -> int:
        """The maximum number of intervals per version: the minutes of a day, or 400 days."""
        return 1440 if self is Resolution.MINUTE else 400

    @property
    def callers(self) -> int:
        return 32 if self is Resolution.MINUTE else 256

    def start(self, at: float) -> int:
        """Return the start of the interval that contains a time, both in seconds since 1970."""
        return int(at) // self.seconds * self.seconds


# The maximum number of intervals in memory, for all versions together (25 MB).
_MAX_INTERVALS = {Resolution.MINUTE: 50_000, Resolution.DAY: 8_000}
_BY = {by.value: by for by in Resolution}
SeriesKey = tuple[str, str, Resolution]


def name_hash(name: str) -> int:
    """Return a 64-bit hash of a name, which is the same in every process."""
    return int.from_bytes(blake2b(name.encode(errors="surrogatepass"), digest_size=8).digest())


class DistinctSketch:
    """A sketch that estimates the number of distinct names.

    Args:
        size: the maximum number of hashes, 3 or more.
    """

    __slots__ = ("_content", "_hashes", "_size")

    def __init__(self, size: int, content: bytes = b"") -> None:
        self._size = size
        # The content is decoded on the first change, since most sketches are only counted.
        self._content = content[: 8 * size]
        self._hashes: array[int] | None = None

    def add(self, hashes: Iterable[int]) -> None:
        """Add names by their `name_hash`."""
        found = self._hashes
        if found is None:
            found = self._hashes = _unpacked(self._content)
        for one in hashes:
            if len(found) >= self._size and one >= found[-1]:
                continue
            place = bisect_left(found, one)
            if place < len(found) and found[place] == one:
                continue
            insort(found, one)
            del found[self._size :]

    def merge(self, other: "DistinctSketch") -> None:
        self.add(_unpacked(other.content))

    @property
    def count(self) -> int:
        """The number of names, which is an estimate if the sketch is full."""
        content = self.content
        if len(content) < 8 * self._size:
            return len(content) // 8
        return round((self._size - 1) * _HASHES / (int.from_bytes(content[-8:], "little") + 1))

    @property
    def content(self) -> bytes:
        """The hashes in ascending order, 8 bytes each, little-endian."""
        return self._content if self._hashes is None else _packed(self._hashes)


class IntervalRow(NamedTuple):
    """A stored `Interval`; `start` is in seconds since 1970."""

    api: str
    version: str
    by: str
    start: int
    requests: int
    errors: int
    refused: int
    seconds: float
    buckets: bytes
    callers: bytes


class Interval:
    """The counts of requests for one version in one minute or one day.

    Attributes:
        errors: the number of requests with status 5xx or an incomplete response.
        buckets: the number of requests up to each duration in `delta.BOUNDS`, and the number of
            longer ones; zeros if a release with other bounds stored the interval.
    """

    __slots__ = ("buckets", "callers", "errors", "refused", "requests", "seconds")

    def __init__(
        self,
        by: Resolution,
        requests: int = 0,
        errors: int = 0,
        refused: int = 0,
        seconds: float = 0.0,
        buckets: bytes = b"",
        callers: bytes = b"",
    ) -> None:
        self.requests = requests
        self.errors = errors
        self.refused = refused
        self.seconds = seconds
        self.callers = DistinctSketch(by.callers, callers)
        self.buckets = _unpacked(buckets if len(buckets) == len(_NO_BUCKETS) else _NO_BUCKETS)

    def add_counts(self, requests: int, errors: int, refused: int) -> None:
        self.requests += requests
        self.errors += errors
        self.refused += refused

    def add_durations(self, buckets: Iterable[int], seconds: float) -> None:
        """Add the durations of requests that `add_counts` has counted."""
        for index, count in enumerate(buckets):
            self.buckets[index] += count
        self.seconds += seconds

    def add(self, other: "Interval") -> None:
        self.add_counts(other.requests, other.errors, other.refused)
        self.add_durations(other.buckets, other.seconds)
        self.callers.merge(other.callers)

    @classmethod
    def total(cls, by: Resolution, parts: Sequence["Interval"]) -> "Interval":
        """Return the sum of intervals, without their callers."""
        found = cls(by)
        for each in parts:
            found.add_counts(each.requests, each.errors, each.refused)
        columns = zip(*(each.buckets for each in parts), strict=True)
        found.add_durations(map(sum, columns), sum(each.seconds for each in parts))
        return found

    def numbers(self) -> tuple[int, int, int, float, bytes, bytes]:
        counts = self.requests, self.errors, self.refused
        return *counts, self.seconds, _packed(self.buckets), self.callers.content

    def quantile(self, share: float) -> float | None:
        """Return the quantile of durations in seconds; None without requests.

        The quantile is interpolated between bounds, as in Prometheus. It never exceeds the last
        bound.
        """
        wanted = share * sum(self.buckets)
        below = 0.0
        for bound, count, seen in zip(BOUNDS, self.buckets, accumulate(self.buckets), strict=False):
            if wanted and seen >= wanted:
                return below + (bound - below) * (1 - (seen - wanted) / count)
            below = bound
        return BOUNDS[-1] if wanted else None


class HistoryQuery(NamedTuple):
    """A query for intervals.

    Attributes:
        span: how far the intervals go back, in seconds; None for the whole history.
        callers: how far back callers are needed, in seconds; None for all intervals. Earlier
            intervals may lack callers, which are the largest part of the stored data.
    """

    by: Resolution
    api: str | None = None
    span: float | None = None
    version: str | None = None
    callers: float | None = None

    def since(self, now: float) -> float:
        span = self.by.seconds * self.by.max_intervals if self.span is None else self.span
        return now - span

    def callers_since(self, now: float) -> float:
        return self.since(now) if self.callers is None else now - self.callers


def whole_history(key: VersionKey) -> tuple[HistoryQuery, HistoryQuery]:
    api, label = key
    query = HistoryQuery(Resolution.DAY, api, version=label)
    return query, query._replace(by=Resolution.MINUTE)


class HistoryView(NamedTuple):
    """The result of a query.

    Attributes:
        series: the intervals by version and by start, in ascending order, without empty intervals.
        now: the time in seconds since 1970, by the clock of the intervals.
    """

    query: HistoryQuery
    series: Mapping[VersionKey, Mapping[int, Interval]]
    now: float
    replica: str | None


class History:
    """Intervals in memory: all intervals of a gateway without a store, or the unsaved ones.

    The number of intervals of each version is limited, but not their age, so setting the clock
    deletes no interval.
    """

    def __init__(self, rows: Iterable[Sequence[Any]] = (), *, bounded: bool = True) -> None:
        self._series: dict[SeriesKey, dict[int, Interval]] = {}
        self._bounded = bounded
        self.add(rows)

    def absorb(self, delta: Delta) -> None:
        names: dict[VersionKey, set[str]] = {}
        counts: dict[VersionKey, list[int]] = {}
        for usage in delta.usages:
            key = usage.api, usage.version
            called = names.setdefault(key, set())
            if usage.rejected < usage.count:
                called.add(usage.client)
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
                continue  # a UsageDelta does not count preflight requests
            # Requests without a version do not belong to any interval.
            for interval in found.get((traffic.api, traffic.version), ()):
                interval.add_durations(traffic.buckets, traffic.seconds)

    def add(self, rows: Iterable[Sequence[Any]]) -> None:
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
        return [
            IntervalRow(api, version, by.value, start, *interval.numbers())
            for (api, version, by), intervals in self._series.items()
            for start, interval in intervals.items()
        ]

    def take(self) -> list[IntervalRow]:
        rows = self.rows()
        self._series = {}
        return rows

    def view(self, query: HistoryQuery, now: float, replica: str | None = None) -> HistoryView:
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
        most = by.max_intervals
        if self._bounded:
            versions = max(len(self._series) // len(Resolution), 1)
            most = min(most, max(_MAX_INTERVALS[by] // versions, 1))
        while len(intervals) > most:
            del intervals[min(intervals)]


def _packed(numbers: "array[int]") -> bytes:
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()


def _unpacked(content: bytes) -> "array[int]":
    numbers = array("Q", content)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


_MAX_DAYS = 28
_MIN_DAYS = 7


class UsageTrend(NamedTuple):
    """The linear trend of the number of callers per day (Theil-Sen estimator).

    Attributes:
        days: The number of days until no callers are left; None if their number does not decrease.
    """

    level: float
    slope: float
    days: float | None


def usage_trend(callers: Sequence[float]) -> UsageTrend | None:
    """Return the trend of the last 28 days, or None if there are fewer than 7 days.

    The slope is the median of the slopes between all pairs of days. A few unusual days, such as
    holidays, do not change it.
    """
    latest = callers[-_MAX_DAYS:]
    if len(latest) < _MIN_DAYS:
        return None
    slope = median(
        (later - earlier) / (right - left)
        for left, earlier in enumerate(latest)
        for right, later in enumerate(latest[left + 1 :], left + 1)
    )
    last = len(latest) - 1
    level = max(median(value + slope * (last - day) for day, value in enumerate(latest)), 0.0)
    days = None
    if not any(latest[-_MIN_DAYS:]):
        days = 0.0
    elif slope < 0:
        days = level / -slope
    return UsageTrend(level, slope, days)
