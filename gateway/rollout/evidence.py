"""The evidence for the gates of a cutover, computed from its counts at several times.

Both routes are judged by their requests within the window of the gates. At a high percentage, the
old route has few requests in the window; at 100 percent, it has no requests. In these cases, its
latest requests count, regardless of their age. The step to 100 percent is compared with a larger
number of them, since failures of a few clients are visible only among many requests. After the
minimum time of the step, the durations of the old requests no longer count.
"""

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from typing import NamedTuple

import msgspec

from gateway.rollout.cutover import VersionCutover
from gateway.rollout.failing_operations import (
    KINDS,
    CountedOperation,
    FailingOperation,
    failing_operations,
)
from gateway.rollout.gates import GateEvidence, GateLimits, MovedClients, ViolatedField
from gateway.rollout.route_outcomes import NO_CELL, NOTHING, OUTCOMES, CellTotals, RouteOutcomes

# The maximum number of totals in a window. A longer window has longer intervals between totals.
_MAX_TOTALS = 300
# The window is divided into this number of parts, to distinguish a short problem from a lasting
# one.
_PARTS = 10
# Counts by operation are kept for several earlier times. The counts of a time are deleted if the
# ages of the counts before and after it differ by less than this factor.
_SPACING = 1.7
# The minimum number of seconds between two totals.
_INTERVAL = 0.5
# The last step is compared with this number of the latest requests on the old route.
_LAST = 1000
# The maximum number of reported fields with violations. The fields with the most violations on the
# new route are reported.
_MOST_FIELDS = 32


@dataclass(slots=True)
class RouteTotals(CellTotals):
    """The outcomes on one route. `fields` counts violations of the document by field."""

    fields: Counter[str] = field(default_factory=Counter)
    operations: dict[str, CellTotals] = field(default_factory=dict)


class RouteCounts(NamedTuple):
    old: RouteTotals
    new: RouteTotals
    compared: int
    differing: int


def read_outcomes(*parts: object) -> RouteOutcomes:
    """Parse outcomes from their stored parts; zeros if another release used another format."""
    try:
        numbers = [each for part in parts for each in msgspec.convert(part, list[object])]
        found = msgspec.convert(numbers, RouteOutcomes)
    except msgspec.ValidationError:
        return NOTHING
    return found if len(found.ends) == len(OUTCOMES) else NOTHING


_ByOperation = Mapping[str, CountedOperation]
_NOT_COUNTED = CountedOperation()


class _Set(NamedTuple):
    at: float
    total: GateEvidence
    old_fields: Counter[str]
    new_fields: Counter[str]
    operations: _ByOperation


class CutoverEvidence:
    """The evidence for one cutover. `latest_old` counts regardless of its age."""

    def __init__(self, latest_old: RouteOutcomes = NOTHING) -> None:
        self.latest_old = latest_old
        self._totals: deque[tuple[float, GateEvidence]] = deque()
        self._operations: list[tuple[float, _ByOperation]] = []
        self._latest_old = _Latest(latest_old)
        self._last_old = _Latest(latest_old)
        self._latest_by_cell: dict[int, _Latest] = {}
        self._before: tuple[float, dict[int, RouteOutcomes]] | None = None
        self._set: _Set | None = None

    def since(
        self,
        begin: float,
        now: float,
        cutover: VersionCutover,
        percent: float,
        counted: RouteCounts,
        set_at: float,
    ) -> GateEvidence:
        """Return the evidence since a monotonic time, or since the first total after it."""
        gates = cutover.gates or GateLimits()
        minimum = gates.minimum
        old, new, compared, differing = counted
        total = GateEvidence(old.outcomes, new.outcomes, compared, differing)
        operations = _by_operation(old, new)
        found = _less(total, self._from(begin, now, total))
        earlier = self._operations_earlier(begin, now, operations)
        if self._set is None or self._set.at != set_at:
            fields = old.fields.copy(), new.fields.copy()
            self._set = _Set(set_at, total, *fields, operations)
        served, old_fields = _less(total, self._set.total), old.fields - self._set.old_fields
        self.latest_old = self._latest_old.of(total.old, minimum)
        usual = self.latest_old if found.old.requests < minimum else found.old
        last_old = self._last_old.of(total.old, max(minimum, _LAST))
        is_new = now - set_at < cutover.every
        if not found.old.requests and is_new:
            usual = last_old
        for cell, outcomes in old.cells.items():
            latest = self._latest_by_cell.get(cell)
            if latest is None:
                latest = self._latest_by_cell[cell] = _Latest()
            latest.mark(outcomes, minimum)
        before = self._moved(percent, old, minimum)
        outlasts = now - set_at > gates.window
        was_set = self._set.operations
        moved = [
            MovedClients(outcomes, since.minus(_cell(was_set, "", cell)))
            for cell, outcomes in before.items()
            if outlasts and (since := new.cells.get(cell)) is not None
        ]
        if outlasts:
            moved += _moved_operations(operations, was_set, old, before)
        return found._replace(
            old=usual,
            before=reduce(RouteOutcomes.plus, before.values(), NOTHING),
            cells=tuple(outcomes for cell, outcomes in old.cells.items() if cell != NO_CELL),
            served_old=served.old,
            served_new=served.new,
            old_ceased=not found.old.requests and not is_new,
            outlasts=outlasts,
            fields=tuple(
                ViolatedField(name, old_fields[name], count)
                for name, count in (new.fields - self._set.new_fields).most_common(_MOST_FIELDS)
            ),
            moved=tuple(moved),
            parts=() if found.old.requests else self._parts(total.new),
            failing=tuple(_failing(operations, earlier, old, gates)),
        )

    def _moved(self, percent: float, old: RouteTotals, minimum: int) -> Mapping[int, RouteOutcomes]:
        if self._before is None or self._before[0] != percent:
            self._before = (
                percent,
                {
                    cell: self._latest_by_cell[cell].of(outcomes, minimum)
                    for cell, outcomes in old.cells.items()
                    if NO_CELL < cell < int(percent)
                },
            )
        return self._before[1]

    def reset_shadow(self) -> None:
        totals = [(at, total._replace(compared=0, differing=0)) for at, total in self._totals]
        self._totals = deque(totals)

    def _from(self, begin: float, now: float, total: GateEvidence) -> GateEvidence:
        totals = self._totals
        while len(totals) > 1 and totals[1][0] <= begin:
            totals.popleft()
        if begin > now:
            totals.clear()
        if not totals or now - totals[-1][0] >= max((now - begin) / _MAX_TOTALS, _INTERVAL):
            totals.append((now, total))
        return totals[0][1]

    def _parts(self, new: RouteOutcomes) -> tuple[RouteOutcomes, ...]:
        marks = [total.new for _, total in self._totals]
        marks = [*marks[:: max(len(marks) // _PARTS, 1)], new]
        return tuple(later.minus(before) for before, later in pairwise(marks))

    def _operations_earlier(
        self, begin: float, now: float, operations: _ByOperation
    ) -> list[tuple[float, _ByOperation]]:
        """Return earlier counts by operation, with their age in seconds, the oldest first.

        Each age is about one and a half times the next age.
        """
        kept = self._operations
        if begin > now:
            kept.clear()
        earlier = [(now - at, counted) for at, counted in kept]
        if not kept or now - kept[-1][0] >= _INTERVAL:
            kept.append((now, operations))
        for index in range(len(kept) - 2, 0, -1):
            if now - kept[index - 1][0] < _SPACING * (now - kept[index + 1][0]):
                del kept[index]
        return earlier


class _Latest:
    def __init__(self, before: RouteOutcomes = NOTHING) -> None:
        # The outcomes from before the start of this process are subtracted from zero, so the first
        # mark is negative.
        self._marks = deque([NOTHING.minus(before)], maxlen=2)

    def of(self, total: RouteOutcomes, minimum: int) -> RouteOutcomes:
        """Return the latest outcomes up to `total`, at least `minimum` requests if possible."""
        self.mark(total, minimum)
        return total.minus(self._marks[0])

    def mark(self, total: RouteOutcomes, minimum: int) -> None:
        if total.requests - self._marks[-1].requests >= minimum:
            self._marks.append(total)


def _by_operation(old: RouteTotals, new: RouteTotals) -> _ByOperation:
    """Return the counts by operation. The key "" has the counts of all requests."""
    found = {"": CountedOperation(old.outcomes, new.outcomes, new.cells.copy())}
    for name, of_new in new.operations.items():
        of_old = old.operations.get(name, CellTotals())
        found[name] = CountedOperation(of_old.outcomes, of_new.outcomes, of_new.cells.copy())
    return found


def _cell(operations: _ByOperation, name: str, cell: int) -> RouteOutcomes:
    return operations.get(name, _NOT_COUNTED).cells.get(cell, NOTHING)


def _failing(
    now: _ByOperation,
    earlier: list[tuple[float, _ByOperation]],
    old: RouteTotals,
    gates: GateLimits,
) -> Iterator[FailingOperation]:
    limits = dict.fromkeys(KINDS, gates.errors) | {"answers": gates.violations}
    judged = {each: limit for each, limit in limits.items() if limit is not None}
    for name, counted in now.items():
        before = [(span, each.get(name, _NOT_COUNTED)) for span, each in earlier]
        if before and not counted.new.minus(before[0][1].new).all_good:
            known = old.operations.get(name, CellTotals()) if name else old
            yield from failing_operations(name, counted, before, known, judged, gates.window)


def _moved_operations(
    now: _ByOperation, was_set: _ByOperation, old: RouteTotals, before: Mapping[int, RouteOutcomes]
) -> Iterator[MovedClients]:
    for name, of_old in old.operations.items():
        counted, then = now.get(name, _NOT_COUNTED), was_set.get(name, _NOT_COUNTED)
        if counted.new.minus(then.new).all_good:
            continue
        for cell in before.keys() & counted.cells.keys() & of_old.cells.keys():
            since = counted.cells[cell].minus(then.cells.get(cell, NOTHING))
            if not since.all_good:
                yield MovedClients(of_old.cells[cell], since, name)


def _less(total: GateEvidence, before: GateEvidence) -> GateEvidence:
    return GateEvidence(
        total.old.minus(before.old),
        total.new.minus(before.new),
        total.compared - before.compared,
        total.differing - before.differing,
    )
