"""Outbox: what a replica counted and the database does not have yet, in numbered batches.

A batch is frozen when it is first sent, and sent under the same number until the database has
confirmed it. The database takes each number of a start once, so that a batch whose confirmation
was lost is not counted twice. What is counted meanwhile waits in Totals, which are bounded however
long that takes.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import msgspec

from gateway.usage.delta import CutoverDelta, Delta, SampleDelta
from gateway.usage.interval import IntervalRow, Resolution
from gateway.usage.state_changes import CountRow, StateChanges, UsageRow
from gateway.usage.totals import Totals

# Of the outcomes of cutovers, those of so many deltas are kept; gates judge by the latest.
_MAX_OUTCOMES = 600


class Batch(NamedTuple):
    """A numbered batch of a start, encoded by `encode`."""

    sequence: int
    content: bytes


class Outbox:
    """Collects deltas into batches.

    Args:
        clock: returns the time of the database, in seconds since 1970.

    Attributes:
        sequence: the number of the last batch that was frozen.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._waiting = _nothing()
        self._outcomes: deque[list[CutoverDelta]] = deque(maxlen=_MAX_OUTCOMES)
        self._sent: Batch | None = None
        self._lost = False
        self.sequence = 0

    def absorb(self, delta: Delta) -> None:
        """Add what a process has counted; it was counted now, by the time of the database."""
        self._waiting.absorb(msgspec.structs.replace(delta, at=self._clock(), outcomes=[]))
        self._lost |= delta.lost
        if delta.outcomes:
            self._outcomes.append(delta.outcomes)

    def shift(self, seconds: float) -> None:
        """Correct the times of what is in no batch yet: the clock was behind by so many seconds."""
        former, self._waiting = self._waiting, _nothing()
        changes = former.changes()
        later = partial(_later, seconds)
        changes.usage = [  # its times are the last three, and of counts the last two
            (*row[:-3], later(row[-3]), later(row[-2]), later(row[-1])) for row in changes.usage
        ]
        changes.counts = [(*row[:-2], later(row[-2]), later(row[-1])) for row in changes.counts]
        changes.history = [
            row._replace(start=by.start(row.start + by.seconds / 2 + seconds))  # from its middle
            for row in changes.history
            for by in (Resolution(row.by),)
        ]
        self._waiting.merge(Totals(changes))
        for kept in former.samples.values():
            for sample in kept:
                self._waiting.sample(sample)

    def batch(self) -> Batch | None:
        """Return the batch to send now: the unconfirmed one, or a new one if there is anything."""
        if self._sent is None:
            outcomes = [each for several in self._outcomes for each in several]
            content = encode(self._waiting, outcomes, lost=self._lost)
            if content is None:
                return None
            self._lost = False
            self.sequence += 1
            self._sent = Batch(self.sequence, content)
            self._waiting = _nothing()
            self._outcomes.clear()
        return self._sent

    def confirm(self, sequence: int) -> None:
        """Forget the batch of this number, which the database has."""
        if self._sent is not None and self._sent.sequence == sequence:
            self._sent = None


class _Encoded(msgspec.Struct, array_like=True, frozen=True):
    usage: list[UsageRow]
    floors: list[tuple[str, str, int]]
    counts: list[CountRow]
    samples: list[SampleDelta]
    outcomes: list[CutoverDelta]
    history: list[IntervalRow] = []
    lost: bool = False


class BatchContent(NamedTuple):
    """What a batch holds: sums, the outcomes of cutovers, and whether counts before it are lost."""

    totals: Totals
    outcomes: list[CutoverDelta]
    lost: bool


def encode(totals: Totals, outcomes: list[CutoverDelta], *, lost: bool = False) -> bytes | None:
    """Return what was counted as bytes; None if nothing was."""
    changes = totals.changes()
    samples = [sample for kept in totals.samples.values() for sample in kept]
    if not (changes or samples or outcomes or lost):
        return None
    floors = [(*key, floor) for key, floor in changes.floors.items() if floor]
    counted = changes.usage, floors, changes.counts, samples, outcomes, changes.history
    return msgspec.msgpack.encode(_Encoded(*counted, lost))


def decode(content: bytes) -> BatchContent:
    """Return what a batch holds.

    Raises:
        msgspec.DecodeError: it is of a release that writes batches otherwise.
    """
    found = msgspec.msgpack.decode(content, type=_Encoded)
    floors = {(api, version): floor for api, version, floor in found.floors}
    totals = Totals(
        StateChanges(usage=found.usage, floors=floors, counts=found.counts, history=found.history)
    )
    for sample in found.samples:
        totals.sample(sample)
    return BatchContent(totals, found.outcomes, found.lost)


def _later(seconds: float, at: float) -> float:
    return at and at + seconds  # 0 is never


def _nothing() -> Totals:
    return Totals(StateChanges())
