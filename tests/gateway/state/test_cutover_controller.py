"""Cutovers on the evidence of a shadow that begins anew."""

from gateway.core.snapshot import Snapshot
from gateway.state.active_overrides import ActiveOverrides
from gateway.state.cutover_controller import CutoverController
from gateway.state.state_writer import StateWriter
from gateway.telemetry.delta import CounterDelta, Delta
from tests.gateway.config.rules import edited, loaded

SERVED = ("person", "1")
RULES_OF_SHIFT = edited(
    "{ service: old }",
    '{ service: old, shadow: { via: "2" }, cutover: { via: "2", percent: 5,'
    " sticky_by: request, gates: { differences: 1%, minimum: 10 } } }",
)


def report(compared: int, differing: int) -> Delta:
    counts = [
        CounterDelta("compared", SERVED, compared),
        CounterDelta("differing", SERVED, differing),
    ]
    return Delta(1.0, [], [], counts, [], [])


async def test_what_was_found_before_speaks_no_more() -> None:
    snapshot: Snapshot = loaded(RULES_OF_SHIFT)
    writer = StateWriter(None)
    cutovers = CutoverController(writer, ActiveOverrides(writer), lambda: snapshot)
    writer.totals.absorb(report(100, 0))
    for now in (10.0, 20.0):
        await cutovers.look(now)
    writer.totals.absorb(report(50, 0))
    writer.totals.forget_shadow(SERVED)
    cutovers.forget_shadow(SERVED)
    writer.totals.absorb(report(20, 0))
    await cutovers.look(30.0)
    writer.totals.absorb(report(20, 20))
    await cutovers.look(31.0)
    standing = cutovers._states[SERVED]
    assert standing.percent == 0
    assert "20 of 40" in standing.why
