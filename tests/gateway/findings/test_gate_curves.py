"""Gate curves: the distance and the number of points, and when a curve starts."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.base.overrides import Overrides
from gateway.findings.gate_curves import POINTS, GateCurves, GatePoint
from gateway.rollout.gates import GateOutcome, GateResult
from gateway.store.state import State
from tests.gateway.rules.rules import RULES, edited, loaded

KEY = ("person", "1")
GATES = "cutover: { via: '2', percent: 5, gates: { errors: 1%, window: 300s } }"
MOVING = loaded(edited("{ service: old }", f"{{ service: old, {GATES} }}"))


def result(measure: str, new_count: int, new: float | None) -> GateResult:
    counts = new_count, 10, 0, 10
    return GateResult("errors", measure, GateOutcome.PASSED, new, 0.0, 0.01, *counts, 300.0, "")


def state(*results: GateResult, percent: float = 5.0) -> State:
    found = SimpleNamespace(
        cutover=lambda _: SimpleNamespace(results=results),
        in_force=Overrides(percents={KEY: percent}),
    )
    return cast(State, cast(Any, found))


async def test_points_of_a_curve_have_a_minimum_distance() -> None:
    curves = GateCurves()
    for now in range(100):
        await curves.look(state(result("5xx", 1, now / 100)), MOVING, float(now))
    points = curves.of(KEY)["errors", "5xx"]
    assert [point.at for point in points] == [0, 10, 20, 30, 40, 50, 60, 70, 80, 90]
    assert points[1] == GatePoint(10.0, 0.1, 0.0)


async def test_the_number_of_points_of_a_curve_is_bounded() -> None:
    curves = GateCurves()
    for now in range(2 * POINTS):
        await curves.look(state(result("5xx", 1, 0.5)), MOVING, now * 10.0)
    assert len(curves.of(KEY)["errors", "5xx"]) == POINTS


async def test_a_curve_begins_with_the_first_counted_error() -> None:
    """The curve continues when the count falls back to 0."""
    curves = GateCurves()
    for now, count in ((0.0, 0), (10.0, 2), (20.0, 0)):
        await curves.look(state(result("404", count, count / 10)), MOVING, now)
    assert [point.new for point in curves.of(KEY)["errors", "404"]] == [0.2, 0.0]


async def test_a_curve_is_kept_at_zero_percent_and_cleared_when_it_rises() -> None:
    """The curve shows the reason for a rollback until the percentage rises again."""
    curves = GateCurves()
    for now, share, percent in ((0.0, 0.1, 5.0), (10.0, 0.6, 5.0), (20.0, 0.0, 0.0), (900, 0.0, 0)):
        await curves.look(state(result("5xx", 1, share), percent=percent), MOVING, now)
    assert [point.new for point in curves.of(KEY)["errors", "5xx"]] == [0.1, 0.6]
    await curves.look(state(result("5xx", 1, 0.2)), MOVING, 901.0)
    assert [point.new for point in curves.of(KEY)["errors", "5xx"]] == [0.2]


async def test_a_removed_cutover_has_no_curve() -> None:
    curves = GateCurves()
    await curves.look(state(result("5xx", 1, 0.5)), MOVING, 0.0)
    await curves.look(state(), loaded(RULES), 20.0)
    assert curves.of(KEY) == {}


async def test_points_are_added_periodically() -> None:
    looked = 0

    def rules() -> Any:
        nonlocal looked
        looked += 1
        raise OSError("enough")

    with pytest.raises(OSError, match="enough"):
        await GateCurves().run(state(), rules)
    assert looked == 1
