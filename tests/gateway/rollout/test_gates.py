"""How near to its limit a gate is."""

import pytest

from gateway.rollout.gates import GateOutcome, GateResult


@pytest.mark.parametrize(
    ("gate", "new", "old", "limit", "used"),
    [
        ("errors", 0.03, 0.01, 0.04, 0.5),
        ("errors", 0.01, 0.03, 0.04, 0.0),
        ("errors", 0.01, 0.0, 0.0, float("inf")),
        ("errors", 0.0, 0.0, 0.0, 0.0),
        ("latency", 0.3, 0.2, 2.0, 0.5),
        ("latency", 0.3, 0.0, 2.0, 0.0),
        ("differences", 0.01, None, 0.02, 0.5),
        ("differences", None, None, 0.02, None),
    ],
)
def test_pressure_is_the_used_share_of_the_limit(
    gate: str, new: float | None, old: float | None, limit: float, used: float | None
) -> None:
    found = GateResult(gate, "", GateOutcome.PASSED, new, old, limit, 0, 0, 0, 0, 1.0, "")
    assert found.pressure == (None if used is None else pytest.approx(used))
