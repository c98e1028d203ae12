"""The cutover of a version: percent or steps, durations, and the gates."""

import pytest

from gateway.rollout.cutover import Cutover, StickyBy
from gateway.rollout.gates import GateAction, Gates
from gateway.versions.version import Version
from tests.gateway.lifecycle.served import first_version

KEY = ("person", "1")


def cutover(more: str) -> Cutover:
    """Return the cutover of version 1 to version 2, as it is written."""
    found = first_version(f'shadow: {{ via: "2" }}, cutover: {{ via: "2", {more} }}').cutover
    assert found is not None
    assert found.route.service_version == Version(2)
    return found.rule


@pytest.mark.parametrize(
    ("more", "built"),
    [
        ("percent: 25", Cutover(KEY, "2", 25.0)),
        ("percent: 0, sticky_by: request", Cutover(KEY, "2", 0.0, StickyBy.REQUEST)),
        ("steps: [1, 5, 50]", Cutover(KEY, "2", 50.0, steps=(1.0, 5.0, 50.0))),
        ("steps: [1], every: 90s", Cutover(KEY, "2", 1.0, steps=(1.0,), every=90.0)),
        ("steps: [1], every: 1.5h", Cutover(KEY, "2", 1.0, steps=(1.0,), every=5400.0)),
    ],
)
def test_cutover(more: str, built: Cutover) -> None:
    assert cutover(more) == built


@pytest.mark.parametrize(
    ("gates", "built"),
    [
        ("violations: 0.5%", Gates(violations=0.005)),
        ("errors: 1%, violations: 100%", Gates(errors=0.01)),
        ("differences: 0.1%", Gates(violations=0.01, differences=0.001)),
        ("errors: 1%, window: 30s", Gates(violations=0.01, errors=0.01, window=30.0)),
        ("errors: 1%, window: 5s", Gates(violations=0.01, errors=0.01, window=5.0, overdue=2.5)),
        ("errors: 1%, overdue: 20s", Gates(violations=0.01, errors=0.01, overdue=20.0)),
        ("errors: 1%, dry_run: true", Gates(violations=0.01, errors=0.01, dry_run=True)),
        (
            "latency: 1.5x, minimum: 7, then: hold",
            Gates(violations=0.01, latency=1.5, minimum=7, then=GateAction.HOLD),
        ),
    ],
)
def test_gates(gates: str, built: Gates) -> None:
    found = cutover(f"percent: 25, gates: {{ {gates} }}").gates
    assert found == built


def test_gates_of_steps() -> None:
    found = cutover("steps: [5, 50], gates: { errors: 1%, inconclusive: roll_back }").gates
    assert found == Gates(violations=0.01, errors=0.01, inconclusive=GateAction.ROLL_BACK)
