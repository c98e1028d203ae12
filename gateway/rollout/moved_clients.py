"""Moved clients: whether what they ask for nearly always fails since they were moved.

One client of many whose writes all fail is lost among the requests of the others, and at 100
percent there is no old route to compare with. What it did before it was moved is enough: a client
that nearly always fails from then on, and hardly did before, was failed by the new route.
"""

from math import log

from gateway.rollout.gates import GateEvidence, MovedClients
from gateway.rollout.significance import CONVINCING, share_above

# A client may send a bad batch at any time, so that what succeeds in between speaks against it.
_NEARLY_ALL = 0.9


def worst_moved(seen: GateEvidence, measure: str, limit: float, looks: int) -> MovedClients | None:
    """Return the moved clients of whom nearly all requests are of a measure; None if none are.

    They are asked about once a whole window has passed since they were moved.

    Args:
        seen: The evidence.
        measure: One of `gates.MEASURES` or of `gates.VIOLATIONS`.
        limit: By how much their share may exceed that of before.
        looks: How many measures are compared; chance has as many tries for each cell.
    """
    if not seen.outlasts or not seen.served_new.count(measure):
        return None
    convincing = CONVINCING + log(max(looks * len(seen.moved), 1))
    found = [(_strength(cell, measure, limit), cell) for cell in seen.moved]
    strength, worst = max(found, key=lambda each: each[0], default=(0.0, None))
    return worst if strength >= convincing else None


def _strength(cell: MovedClients, measure: str, limit: float) -> float:
    bad = cell.since.count(measure)
    if not bad:
        return 0.0
    total = cell.since.total(measure)
    if bad < _NEARLY_ALL * total:
        return 0.0
    return share_above(
        (bad, total), (cell.before.count(measure), cell.before.total(measure)), limit
    )
