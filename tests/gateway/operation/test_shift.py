"""Cutovers on the evidence of a shadow that begins anew."""

from gateway.core.snapshot import Snapshot
from gateway.operation.control import Control
from gateway.operation.keeper import Keeper
from gateway.operation.report import Count, Report
from gateway.operation.shift import Shift
from tests.gateway.config.text import edited, loaded

SERVED = ("person", "1")
RULES_OF_SHIFT = edited(
    "{ service: old }",
    '{ service: old, shadow: { via: "2" }, cutover: { via: "2", percent: 5,'
    " sticky_by: request, gates: { differences: 1%, minimum: 10 } } }",
)


def report(compared: int, differing: int) -> Report:
    counts = [Count("compared", SERVED, compared), Count("differing", SERVED, differing)]
    return Report(1.0, [], [], counts, [], [])


async def test_what_was_found_before_speaks_no_more() -> None:
    snapshot: Snapshot = loaded(RULES_OF_SHIFT)
    keeper = Keeper(None)
    shift = Shift(keeper, Control(keeper), lambda: snapshot)
    keeper.ledger.absorb(report(100, 0))
    for now in (10.0, 20.0):
        await shift.look(now)
    keeper.ledger.absorb(report(50, 0))
    keeper.ledger.forget_shadow(SERVED)
    shift.forget_shadow(SERVED)
    keeper.ledger.absorb(report(20, 0))
    await shift.look(30.0)
    keeper.ledger.absorb(report(20, 20))
    await shift.look(31.0)
    standing = shift._standings[SERVED]
    assert standing.percent == 0
    assert "20 of 40" in standing.why
