"""Failing operations: whether one operation fails on the new route as it hardly ever did before.

An operation may have a twentieth of the requests. Among all requests, its failures need hundreds to
show; beside its own history, five. So each operation is compared separately, and so are all
requests together.

- It is compared with all that the old route is known to have served, as it would have ended for the
  clients that are on the new route now: some always fail, and it matters which of them are moved.
- It is compared with the old route at the same time, since an incident of both routes is no fault
  of the new one. Where nothing is to compare with at the same time, what is usual may have changed
  since, and so only a share that is far above it counts.
- The clients with the most failures are left out, as a client may begin to fail by itself; or but
  three failures of each cell of clients, where that leaves more.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import log, sqrt
from types import MappingProxyType
from typing import NamedTuple

from gateway.rollout.route_outcomes import NOTHING, UNCELLED, CellTotals, RouteOutcomes
from gateway.rollout.significance import CONVINCING, share_above, share_beyond

Cells = Mapping[int, RouteOutcomes]
"""Outcomes by cell of clients; see `Cutover.cell_of`."""

MOST_OPERATIONS = 64
"""The maximum number of operations of a version that are counted separately."""

KINDS = (
    *("5xx", "conversion", "401", "403", "404", "429", "other 4xx", "3xx"),
    *("overdue", "abandoned", "answers"),
)
"""The measures that are compared: one for each way in which a request can fail."""

# With more comparisons, chance alone exceeds a limit more often; there are about 16 spans of time.
_CONVINCING = CONVINCING + log(MOST_OPERATIONS * len(KINDS) * 16)
# A stalled machine causes these as well. Without traffic on the old route at the same time, they
# have to last for this many seconds.
OF_STALLS = frozenset({"overdue", "abandoned"})
_STALL = 20.0
# A span longer than the window counts only with fewer requests of the operation.
_MANY = 100
# The old route at the same time is the same with a chance of at most exp(-8), 1 in 3,000 incidents.
_APART = 8.0
# How far the usual share may change from morning to evening.
_DRIFT = 0.2
# Failures of one cell of clients that count if those of no other cell do.
_FEW = 3
# The share of clients with few requests is shrunk towards that of all, by this many requests.
_PRIOR = 10


class CountedOperation(NamedTuple):
    """What was counted of an operation until some time.

    Attributes:
        cells: The same on the new route, by cell of clients.
    """

    old: RouteOutcomes = NOTHING
    new: RouteOutcomes = NOTHING
    cells: Cells = MappingProxyType({})


class Failing(NamedTuple):
    """How many requests of an operation failed in one way, in the span of time that shows it best.

    Attributes:
        operation: The operation, as `POST /orders`; empty for all of them together.
        new: The number of those that failed so, and of all of them, on the new route.
        lone: The number of failures that are left out, since one client may have made them.
        old: The same as `new` on the old route at the same time.
        usual: The same on the old route for as long as it is known, weighted by the clients that
            are on the new route.
        span: The seconds of the span.
    """

    operation: str
    measure: str
    new: tuple[int, int]
    lone: int
    old: tuple[int, int]
    usual: tuple[int, int]
    span: float


def failing(
    operation: str,
    counted: CountedOperation,
    earlier: Sequence[tuple[float, CountedOperation]],
    known: CellTotals,
    limits: Mapping[str, float],
    window: float,
) -> Iterator[Failing]:
    """Yield each way in which requests of an operation failed on the new route.

    Args:
        counted: What was counted until now.
        earlier: The same some seconds ago.
        known: The outcomes on the old route for as long as it is known, by cell.
        limits: By how much the share of each measure may exceed that on the old route.
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
            if alone and measure in OF_STALLS and span < _STALL:
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
        yield Failing(
            operation,
            measure,
            _since(counted.new, then.new, measure),
            _lone([bad for cell, (bad, _) in cells.items() if cell != UNCELLED]),
            _since(counted.old, then.old, measure),
            _usual(cells, known, measure),
            span,
        )


def worst_operation(
    found: tuple[Failing, ...], measure: str, limit: float, minimum: int
) -> Failing | None:
    """Return the operation that fails in one way beyond a limit; None if none does.

    Args:
        limit: By how much its share may exceed that on the old route, from 0 to 1.
        minimum: The number of requests that a share is computed from; missing ones count as good.
    """
    of_it = [each for each in found if each.measure == measure]
    strengths = [(_strength(each, limit, minimum), each) for each in of_it]
    strength, worst = max(strengths, key=lambda each: each[0], default=(0.0, None))
    return worst if strength >= _CONVINCING else None


def _since(now: RouteOutcomes, then: RouteOutcomes, measure: str) -> tuple[int, int]:
    return now.count(measure) - then.count(measure), now.total(measure) - then.total(measure)


def _strength(failing: Failing, limit: float, minimum: int) -> float:
    count, total = (each - failing.lone for each in failing.new)
    bad, among = failing.usual
    if not among or count / max(total, minimum) <= limit + bad / among:
        return 0.0
    margin = limit
    if not failing.old[1]:
        margin = max(limit, _DRIFT)
    elif share_above((count, total), failing.old, limit) < _APART:
        return 0.0
    return share_above((count, total), failing.usual, margin)


def _lone(failures: Sequence[int]) -> int:
    return min(max(failures, default=0), sum(max(each - _FEW, 0) for each in failures))


def _usual(
    cells: Mapping[int, tuple[int, int]], known: CellTotals, measure: str
) -> tuple[int, int]:
    """Return what the old route has served, weighted by the clients of the new one.

    Unknown clients may be those that fail most, unless that is chance: the standard deviation of a
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
