"""Detection of operations that fail on the new route more often than on the old route.

Among all requests, the failures of a rare operation are visible only after hundreds of requests.
Compared with the operation's own history, they are visible after five. So each operation is
compared separately, in addition to all requests together.

- An operation is compared with its whole history on the old route. The history is weighted by the
clients that are on the new route now, since the requests of some clients always fail.
- An operation is also compared with the old route at the same time, since the new route does not
cause an incident on both routes. Without requests on the old route at that time, the usual share of
failures may have changed, so only a much higher share counts.
- Failures that a single client may have caused do not count. There are two ways to exclude them:
all failures of the cell with the most failures, or all but three failures of each cell. The way
that leaves more failures is used.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import log, sqrt
from types import MappingProxyType
from typing import NamedTuple

from gateway.rollout.route_outcomes import NO_CELL, NOTHING, CellTotals, RouteOutcomes
from gateway.rollout.significance import CONVINCING, share_above, share_beyond

Cells = Mapping[int, RouteOutcomes]
"""Outcomes by cell, a group of clients; see `VersionCutover.cell_of`."""

MAX_OPERATIONS = 64

KINDS = (
    *("5xx", "conversion", "401", "403", "404", "429", "other 4xx", "3xx"),
    *("overdue", "abandoned", "answers"),
)

# The more comparisons there are, the more often a limit is exceeded by chance. About 16 time spans
# are compared.
_CONVINCING = CONVINCING + log(MAX_OPERATIONS * len(KINDS) * 16)
# A stalled machine also causes these failures. Without requests on the old route at the same time,
# the failures must continue for _STALL seconds.
STALL_MEASURES = frozenset({"overdue", "abandoned"})
_STALL = 20.0
# A time span that exceeds the window is used only if the operation has fewer requests in that span.
_MANY = 100
# An incident on both routes is mistaken for an incident on the new route with probability exp(-8),
# 1 in 3,000.
_APART = 8.0
# The usual share of failures may change by this amount during a day.
_DRIFT = 0.2
# At most this number of failures counts for each cell.
_FEW = 3
# In the estimate for a cell, the share of all clients has the weight of this number of requests.
_PRIOR = 10


class CountedOperation(NamedTuple):
    """The counts of an operation at one time. `cells` are the outcomes on the new route."""

    old: RouteOutcomes = NOTHING
    new: RouteOutcomes = NOTHING
    cells: Cells = MappingProxyType({})


class FailingOperation(NamedTuple):
    """The failures of an operation by one measure, in the time span with the strongest evidence.

    Attributes:
        operation: The operation, such as `POST /orders`; empty for all operations together.
        new: The numbers of failures and requests on the new route.
        lone: The number of failures that do not count, since a single client may have caused them.
        usual: The numbers of failures and requests in the history of the old route, weighted by the
            clients that are on the new route.
        span: The length of the time span in seconds.
    """

    operation: str
    measure: str
    new: tuple[int, int]
    lone: int
    old: tuple[int, int]
    usual: tuple[int, int]
    span: float


def failing_operations(
    operation: str,
    counted: CountedOperation,
    earlier: Sequence[tuple[float, CountedOperation]],
    known: CellTotals,
    limits: Mapping[str, float],
    window: float,
) -> Iterator[FailingOperation]:
    """Yield the failures of an operation on the new route, by measure.

    Args:
        earlier: The counts at earlier times, with their age in seconds.
        known: The whole history on the old route, by cell.
        limits: For each measure, how far its share may exceed the share on the old route.
    """
    for measure, limit in limits.items():
        if not counted.new.count(measure):
            continue
        among = known.outcomes.total(measure)
        if not among:
            continue
        usual = known.outcomes.count(measure) / among
        strongest, best = 0.0, None
        for span, then in earlier:
            bad, total = _since(counted.new, then.new, measure)
            if span > window and total >= _MANY:
                continue
            alone = counted.old.requests == then.old.requests
            if alone and measure in STALL_MEASURES and span < _STALL:
                continue
            strength = share_beyond(bad, total, usual + limit)
            if strength > strongest:
                strongest, best = strength, (span, then)
        if best is None:
            continue
        span, then = best
        cells = {
            cell: _since(each, then.cells.get(cell, NOTHING), measure)
            for cell, each in counted.cells.items()
        }
        yield FailingOperation(
            operation,
            measure,
            _since(counted.new, then.new, measure),
            _lone([bad for cell, (bad, _) in cells.items() if cell != NO_CELL]),
            _since(counted.old, then.old, measure),
            _usual(cells, known, measure),
            span,
        )


def worst_operation(
    found: tuple[FailingOperation, ...], measure: str, limit: float, minimum: int
) -> FailingOperation | None:
    """Return the operation that exceeds a limit most clearly, or None.

    Args:
        minimum: The minimum number of requests for a share. Missing requests are treated as
            successful.
    """
    of_it = [each for each in found if each.measure == measure]
    strengths = [(_strength(each, limit, minimum), each) for each in of_it]
    strength, worst = max(strengths, key=lambda each: each[0], default=(0.0, None))
    return worst if strength >= _CONVINCING else None


def _since(now: RouteOutcomes, then: RouteOutcomes, measure: str) -> tuple[int, int]:
    return now.count(measure) - then.count(measure), now.total(measure) - then.total(measure)


def _strength(found: FailingOperation, limit: float, minimum: int) -> float:
    count, total = (each - found.lone for each in found.new)
    bad, among = found.usual
    if not among or count / max(total, minimum) <= limit + bad / among:
        return 0.0
    margin = limit
    if not found.old[1]:
        margin = max(limit, _DRIFT)
    elif share_above((count, total), found.old, limit) < _APART:
        return 0.0
    return share_above((count, total), found.usual, margin)


def _lone(failures: Sequence[int]) -> int:
    return min(max(failures, default=0), sum(max(each - _FEW, 0) for each in failures))


def _usual(
    cells: Mapping[int, tuple[int, int]], known: CellTotals, measure: str
) -> tuple[int, int]:
    """Return the history of the old route, weighted by the clients of the new route.

    A cell without history is treated like the cell that fails most often. If the failures of that
    cell may be due to chance, the share of all cells is used instead: the standard deviation of a
    count is about its square root.
    """
    among = known.outcomes.total(measure)
    served = sum(total for _, total in cells.values())
    share = known.outcomes.count(measure) / among
    shares, most = {}, None
    for cell, each in known.cells.items():
        bad, total = each.count(measure), each.total(measure)
        shares[cell] = found = (bad + share * _PRIOR) / (total + _PRIOR)
        if bad - 2 * sqrt(bad) > share * total:
            most = found if most is None else max(most, found)
    if most is None:
        most = share
    expected = sum(total * shares.get(cell, most) for cell, (_, total) in cells.items())
    return round(expected / served * among), among
