"""The outbox: counts of a replica that are not in the database yet, in numbered batches.

The content of a batch is fixed when it is first sent. The batch is repeated with the same number
until the database confirms it. The database accepts each batch number of a start only once, so no
batch is counted twice. Meanwhile, new counts are collected in Totals, whose memory is bounded.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from gateway.usage.delta import CutoverDelta, Delta, SampleDelta
from gateway.usage.history import IntervalRow, Resolution
from gateway.usage.totals import CountRow, StateRows, Totals, UsageRow

# The maximum number of deltas whose cutover outcomes are stored. Gates need only the latest
# outcomes.
_MAX_OUTCOMES = 600
# The maximum number of rows of evidence in these outcomes. Earlier rows are dropped.
_MAX_ROWS = 10_000


class Batch(NamedTuple):
    sequence: int
    content: bytes


class Outbox:
    """Collects deltas into batches. `clock` returns the database's time in seconds since 1970."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._waiting = Totals()
        self._outcomes: deque[list[CutoverDelta]] = deque(maxlen=_MAX_OUTCOMES)
        self._sent: Batch | None = None
        self._lost = False
        self.sequence = 0

    def absorb(self, delta: Delta) -> None:
        self._waiting.absorb(msgspec.structs.replace(delta, at=self._clock(), outcomes=[]))
        self._lost |= delta.lost
        if delta.outcomes:
            self._outcomes.append(delta.outcomes)
            self._drop_rows()

    def shift(self, seconds: float) -> None:
        """Correct the times of counts outside batches by the seconds that the clock was behind."""
        former, self._waiting = self._waiting, Totals()
        rows = former.changes()

        def later(*times: float) -> tuple[float, ...]:
            return tuple(at and at + seconds for at in times)  # 0 means never

        usage = [(*row[:8], *later(*row[8:11]), row[11], *later(row[12])) for row in rows.usage]
        counts = [(*row[:-2], *later(*row[-2:])) for row in rows.counts]
        history = [
            row._replace(start=by.start(row.start + by.seconds / 2 + seconds))  # from its middle
            for row in rows.history
            for by in (Resolution(row.by),)
        ]
        moved = StateRows(floors=rows.floors, history=history)
        moved.usage, moved.counts = (
            msgspec.convert(usage, list[UsageRow]),
            msgspec.convert(counts, list[CountRow]),
        )
        self._waiting.merge(Totals(moved))
        for kept in former.samples.values():
            for sample in kept:
                self._waiting.sample(sample)

    def batch(self) -> Batch | None:
        """Return the unconfirmed batch, or else a new batch; None without counts."""
        if self._sent is None:
            outcomes = [each for several in self._outcomes for each in several]
            content = encode(self._waiting, outcomes, lost=self._lost)
            if content is None:
                return None
            self._lost = False
            self.sequence += 1
            self._sent = Batch(self.sequence, content)
            self._waiting = Totals()
            self._outcomes.clear()
        return self._sent

    def _drop_rows(self) -> None:
        room = _MAX_ROWS
        for outcomes in reversed(self._outcomes):
            for each in outcomes:
                room -= len(each.rows)
                if room < 0:
                    each.rows = []

    def confirm(self, sequence: int) -> None:
        if self._sent is not None and self._sent.sequence == sequence:
            self._sent = None


# The number of values of a UsageRow that a replica of the former release reads.
_FORMER = 11


class _Encoded(msgspec.Struct, array_like=True, frozen=True):
    """The content of a batch. A former release ignores values that were added at the end.

    Attributes:
        rejected: the other values of each row in `usage`; empty if a former release counted.
    """

    usage: list[tuple[Any, ...]]
    floors: list[tuple[str, str, int]]
    counts: list[CountRow]
    samples: list[SampleDelta]
    outcomes: list[CutoverDelta]
    history: list[IntervalRow] = []
    lost: bool = False
    rejected: list[tuple[int, float]] = []


def encode(totals: Totals, outcomes: list[CutoverDelta], *, lost: bool = False) -> bytes | None:
    rows = totals.changes()
    samples = [sample for kept in totals.samples.values() for sample in kept]
    if not (rows or samples or outcomes or lost):
        return None
    floors = [(*key, floor) for key, floor in rows.floors.items() if floor]
    usage = [row[:_FORMER] for row in rows.usage]
    counted = usage, floors, rows.counts, samples, outcomes, rows.history
    rejected = [(row[-2], row[-1]) for row in rows.usage]
    return msgspec.msgpack.encode(_Encoded(*counted, lost, rejected))


def decode(content: bytes) -> tuple[Totals, list[CutoverDelta], bool]:
    """Return counts, outcomes, and whether counts were lost; raises DecodeError."""
    found = msgspec.msgpack.decode(content, type=_Encoded)
    floors = {(api, version): floor for api, version, floor in found.floors}
    rejected = found.rejected or [(0, 0.0)] * len(found.usage)
    rows = [(*row, *more) for row, more in zip(found.usage, rejected, strict=True)]
    usage = msgspec.convert(rows, list[UsageRow])
    totals = Totals(StateRows(usage, [], floors, found.counts, history=found.history))
    for sample in found.samples:
        totals.sample(sample)
    return totals, found.outcomes, found.lost
