"""Cutovers on the evidence of a shadow that begins anew."""

import pytest

from gateway.core.snapshot import Snapshot
from gateway.state.active_overrides import ActiveOverrides
from gateway.state.cutover_controller import CutoverController
from gateway.state.state_writer import StateWriter
from gateway.telemetry.delta import CounterDelta, CutoverDelta, Delta
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
        await cutovers.decide(now)
    writer.totals.absorb(report(50, 0))
    writer.totals.reset_shadow(SERVED)
    cutovers.reset_shadow(SERVED)
    writer.totals.absorb(report(20, 0))
    await cutovers.decide(30.0)
    writer.totals.absorb(report(20, 20))
    await cutovers.decide(31.0)
    standing = cutovers._states[SERVED]
    assert standing.percent == 0
    assert "20 of 40" in standing.why


RULES_OF_STEPS = edited(
    "{ service: old }",
    '{ service: old, cutover: { via: "2", steps: [5, 50], every: 1m, sticky_by: request,'
    " gates: { errors: 10%, window: 30s, minimum: 10, then: roll_back } } }",
)


class Clocks:
    """The clocks of a machine, as a test sets them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.date = 1_000_000_000.0
        self.passed = 500.0
        monkeypatch.setattr("time.time", lambda: self.date)
        monkeypatch.setattr("time.monotonic", lambda: self.passed)

    def go_on(self, seconds: float) -> None:
        self.date += seconds
        self.passed += seconds


def outcomes(requests: int, failures: int) -> Delta:
    new = CutoverDelta(*SERVED, "new", requests, failures, [requests], 0.1 * requests)
    return Delta(1.0, [], [], [], [new], [])


@pytest.mark.parametrize("moved", [-40_000_000.0, -3600.0, 3600.0, 40_000_000.0])
async def test_a_clock_that_is_set_moves_no_window_and_no_step(
    monkeypatch: pytest.MonkeyPatch, moved: float
) -> None:
    clocks = Clocks(monkeypatch)
    snapshot: Snapshot = loaded(RULES_OF_STEPS)
    writer = StateWriter(None)
    cutovers = CutoverController(writer, ActiveOverrides(writer), lambda: snapshot)

    async def decide(seconds: int) -> float:
        for _ in range(seconds):
            clocks.go_on(1)
            await cutovers.decide(clocks.passed)
        return cutovers._states[SERVED].percent

    await decide(10)
    clocks.date += moved
    writer.totals.absorb(outcomes(20, 0))
    assert await decide(40) == 5
    writer.totals.absorb(outcomes(20, 0))
    assert await decide(20) == 50
    current = await cutovers.current(SERVED)
    assert 0 <= clocks.date - current.state.since < 20
    clocks.date -= moved
    await decide(5)
    writer.totals.absorb(outcomes(971, 495))
    assert await decide(2) == 0
    assert "495 of" in cutovers._states[SERVED].why


async def test_a_date_in_the_future_freezes_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch)
    snapshot: Snapshot = loaded(RULES_OF_STEPS)
    writer = StateWriter(None)
    clocks.date += 40_000_000
    ahead = CutoverController(writer, ActiveOverrides(writer), lambda: snapshot)
    await ahead.decide(clocks.passed)
    clocks.date -= 40_000_000
    restarted = CutoverController(writer, ActiveOverrides(writer), lambda: snapshot)
    for _ in range(70):
        clocks.go_on(1)
        writer.totals.absorb(outcomes(1, 0))
        await restarted.decide(clocks.passed)
    assert restarted._states[SERVED].percent == 50
