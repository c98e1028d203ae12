"""CutoverEvidence: what the gates of a cutover judge by, from the totals now and at earlier times.

The new route is judged by the window of the gates. So is the old one, unless it has served too
little in it to compare with: at a high percentage it serves few requests, and none in the end. Then
the latest requests that it has served count, however long ago that was. A step that leaves it none
is compared with more of them, since what strikes few clients shows beside many requests alone; once
the step has lasted its time, they are too old to prove so much, and their durations prove nothing.
"""

from collections import Counter, deque
from collections.abc import Mapping
from functools import reduce
from typing import NamedTuple

import msgspec

from gateway.core.cutover.cutover import UNCELLED, Cutover, CutoverRoute
from gateway.core.cutover.gates import GateEvidence, Gates, MovedClients, ViolatedField
from gateway.core.cutover.route_outcomes import OUTCOMES, RouteOutcomes
from gateway.core.overrides import VersionKey
from gateway.state.totals import CutoverTotal, Totals

# At most so many totals are kept; in a long window they lie further apart.
_MAX_TOTALS = 300
# Seconds that lie at least between two totals.
_INTERVAL = 0.5
# The last step is compared with so many of the latest requests on the old route.
_LAST = 1000
# Of the fields that violate the document, so many of the most frequent ones on the new route count.
_MOST_FIELDS = 32
NOTHING = RouteOutcomes()
"""No requests."""


def read_outcomes(*parts: object) -> RouteOutcomes:
    """Return outcomes that were stored in parts; none where another release tells others apart."""
    try:
        numbers = [each for part in parts for each in msgspec.convert(part, list[object])]
        found = msgspec.convert(numbers, RouteOutcomes)
    except msgspec.ValidationError:
        return NOTHING
    return found if len(found.ends) == len(OUTCOMES) else NOTHING


class _Set(NamedTuple):
    """All that was counted when the percentage was set."""

    at: float
    total: GateEvidence
    old_fields: Counter[str]
    new_fields: Counter[str]
    cells: Mapping[int, RouteOutcomes]


class CutoverEvidence:
    """The totals of one cutover at earlier times.

    Args:
        latest_old: The latest outcomes on the old route before this process began to count.

    Attributes:
        latest_old: The latest outcomes on the old route, however long ago.
    """

    def __init__(self, latest_old: RouteOutcomes = NOTHING) -> None:
        self.latest_old = latest_old
        self._totals: deque[tuple[float, GateEvidence]] = deque()
        self._latest_old = _Latest(latest_old)
        self._last_old = _Latest(latest_old)
        self._latest_by_cell: dict[int, _Latest] = {}
        self._before: tuple[float, dict[int, RouteOutcomes]] | None = None
        self._set: _Set | None = None

    def since(
        self,
        begin: float,
        now: float,
        cutover: Cutover,
        percent: float,
        totals: Totals,
        set_at: float,
    ) -> GateEvidence:
        """Return the evidence from a time on, or from the first total after it.

        Args:
            begin: The earliest time, in monotonic seconds.
            now: The time, by the same clock.
            cutover: The cutover.
            percent: Its percentage.
            totals: All that was counted until now.
            set_at: The time at which the percentage was set, by the same clock.
        """
        gates = cutover.gates or Gates()
        minimum = gates.minimum
        old = totals.outcomes.get((*cutover.key, CutoverRoute.OLD), CutoverTotal())
        new = totals.outcomes.get((*cutover.key, CutoverRoute.NEW), CutoverTotal())
        total = GateEvidence(
            old.outcomes,
            new.outcomes,
            _counted(totals, "compared", cutover.key) + _counted(totals, "validated", cutover.key),
            _counted(totals, "differing", cutover.key) + _counted(totals, "invalid", cutover.key),
        )
        found = _less(total, self._from(begin, now, total))
        if self._set is None or self._set.at != set_at:
            fields = old.fields.copy(), new.fields.copy()
            self._set = _Set(set_at, total, *fields, new.cells.copy())
        served, old_fields = _less(total, self._set.total), old.fields - self._set.old_fields
        self.latest_old = self._latest_old.of(total.old, minimum)
        usual = self.latest_old if found.old.requests < minimum else found.old
        last_old = self._last_old.of(total.old, max(minimum, _LAST))
        is_new = now - set_at < cutover.every
        if not found.old.requests and is_new:
            usual = last_old
        for cell, outcomes in old.cells.items():
            self._latest_by_cell.setdefault(cell, _Latest()).of(outcomes, minimum)
        before = self._moved(percent, old, minimum)
        outlasts = now - set_at > gates.window
        return found._replace(
            old=usual,
            before=reduce(RouteOutcomes.plus, before.values(), NOTHING),
            cells=tuple(outcomes for cell, outcomes in old.cells.items() if cell != UNCELLED),
            served_old=served.old,
            served_new=served.new,
            old_ceased=not found.old.requests and not is_new,
            outlasts=outlasts,
            fields=tuple(
                ViolatedField(name, old_fields[name], count)
                for name, count in (new.fields - self._set.new_fields).most_common(_MOST_FIELDS)
            ),
            moved=tuple(
                MovedClients(outcomes, since.minus(self._set.cells.get(cell, NOTHING)))
                for cell, outcomes in before.items()
                if outlasts and (since := new.cells.get(cell)) is not None
            ),
        )

    def _moved(
        self, percent: float, old: CutoverTotal, minimum: int
    ) -> Mapping[int, RouteOutcomes]:
        """Return the outcomes by cell of the clients below a percentage, from before it."""
        if self._before is None or self._before[0] != percent:
            self._before = (
                percent,
                {
                    cell: self._latest_by_cell[cell].of(outcomes, minimum)
                    for cell, outcomes in old.cells.items()
                    if UNCELLED < cell < int(percent)
                },
            )
        return self._before[1]

    def reset_shadow(self) -> None:
        """Set what the shadow had counted to zero."""
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


class _Latest:
    """The latest outcomes of a route: at least so many as asked for, once there are."""

    def __init__(self, before: RouteOutcomes = NOTHING) -> None:
        # What was counted before is what has come since a mark so far below zero.
        self._marks = deque([NOTHING.minus(before)], maxlen=2)

    def of(self, total: RouteOutcomes, minimum: int) -> RouteOutcomes:
        """Return the latest outcomes of a total, at least `minimum` if there are so many."""
        if total.requests - self._marks[-1].requests >= minimum:
            self._marks.append(total)
        return total.minus(self._marks[0])


def _counted(totals: Totals, kind: str, key: VersionKey) -> int:
    occurrences = totals.counts.get((kind, key))
    return 0 if occurrences is None else occurrences.count


def _less(total: GateEvidence, before: GateEvidence) -> GateEvidence:
    return GateEvidence(
        total.old.minus(before.old),
        total.new.minus(before.new),
        total.compared - before.compared,
        total.differing - before.differing,
    )
