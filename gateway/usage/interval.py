"""Interval: what was counted of one version in one minute or one day."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import accumulate
from typing import NamedTuple

from gateway.usage.delta import BOUNDS
from gateway.usage.distinct import Distinct, packed, unpacked

_NO_BUCKETS = bytes(8 * (len(BOUNDS) + 1))


class Resolution(StrEnum):
    """How long the intervals of a history are. Days begin at 00:00 UTC."""

    MINUTE = "minute"
    DAY = "day"

    @property
    def seconds(self) -> int:
        """The length of an interval."""
        return 60 if self is Resolution.MINUTE else 86_400

    @property
    def most(self) -> int:
        """How many intervals of one version are kept: those of a day, or of 400 days."""
        return 1440 if self is Resolution.MINUTE else 400

    @property
    def callers(self) -> int:
        """How many callers are told apart exactly; see `Distinct`."""
        return 32 if self is Resolution.MINUTE else 256

    def start(self, at: float) -> int:
        """Return the start of the interval of a time, both in seconds since 1970."""
        return int(at) // self.seconds * self.seconds


class IntervalRow(NamedTuple):
    """An interval of a version as stores have it; see `Interval`.

    Attributes:
        by: the resolution.
        start: in seconds since 1970.
        buckets: the numbers, packed.
        callers: the content of Distinct.
    """

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
    """The requests for one version in one minute or one day; additive.

    Attributes:
        requests: the number of all requests, the refused and failed ones included.
        errors: of these, the number that failed with status 5xx or whose answer broke off.
        refused: of these, the number that the gateway refused.
        seconds: the sum of the durations of all requests.
        buckets: the number of requests up to each duration in `delta.BOUNDS`, and above the last;
            zeros where a release with other bounds has counted.
        callers: who asked.
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
        self.callers = Distinct(by.callers, callers)
        self.buckets = unpacked(buckets if len(buckets) == len(_NO_BUCKETS) else _NO_BUCKETS)

    def add_counts(self, requests: int, errors: int, refused: int) -> None:
        """Add the numbers of requests."""
        self.requests += requests
        self.errors += errors
        self.refused += refused

    def add_durations(self, buckets: Iterable[int], seconds: float) -> None:
        """Add the durations of requests, whose number is added elsewhere."""
        for index, count in enumerate(buckets):
            self.buckets[index] += count
        self.seconds += seconds

    def add(self, other: "Interval") -> None:
        """Add what was counted of other requests."""
        self.add_counts(other.requests, other.errors, other.refused)
        self.add_durations(other.buckets, other.seconds)
        self.callers.merge(other.callers)

    @classmethod
    def total(cls, by: Resolution, parts: Sequence["Interval"]) -> "Interval":
        """Return the requests of some intervals, without their callers."""
        found = cls(by)
        for each in parts:
            found.add_counts(each.requests, each.errors, each.refused)
        columns = zip(*(each.buckets for each in parts), strict=True)
        found.add_durations(map(sum, columns), sum(each.seconds for each in parts))
        return found

    def numbers(self) -> tuple[int, int, int, float, bytes, bytes]:
        """Return what the constructor takes after the resolution."""
        counts = self.requests, self.errors, self.refused
        return *counts, self.seconds, packed(self.buckets), self.callers.content

    def quantile(self, share: float) -> float | None:
        """Return the duration within which a share of the requests ended, in seconds.

        It is estimated between the two bounds on either side, as Prometheus does; beyond the last
        bound it is that bound. None if nothing is known.
        """
        wanted = share * sum(self.buckets)
        below = 0.0
        for bound, count, seen in zip(BOUNDS, self.buckets, accumulate(self.buckets), strict=False):
            if wanted and seen >= wanted:
                return below + (bound - below) * (1 - (seen - wanted) / count)
            below = bound
        return BOUNDS[-1] if wanted else None
