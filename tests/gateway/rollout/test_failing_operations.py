"""Detection of failing operations on the new route, and failures that must not count."""

from typing import Any

import pytest

from gateway.rollout.failing_operations import (
    KINDS,
    CountedOperation,
    FailingOperation,
    failing_operations,
    worst_operation,
)
from gateway.rollout.gates import GateEvidence, GateLimits, GateOutcome
from gateway.rollout.judgement import judge
from gateway.rollout.route_outcomes import NO_CELL, CellTotals, RouteOutcomes
from tests.gateway.rollout.outcomes import outcomes

NONE = CountedOperation()
LIMITS = dict.fromkeys(KINDS, 0.01)


def found(
    new: dict[int, RouteOutcomes],
    old: RouteOutcomes,
    known: dict[int, RouteOutcomes] | None = None,
    earlier: list[tuple[float, CountedOperation]] | None = None,
) -> tuple[FailingOperation, ...]:
    """Return the failures of `POST /orders` on the new route.

    Args:
        known: the history of the old route by cell; by default, 400 good requests of other cells.
        earlier: the earlier counts with their age; by default, empty counts 12 s ago.
    """
    total = RouteOutcomes()
    for each in new.values():
        total = total.plus(each)
    of_old = CellTotals()
    for cell, each in ({50: outcomes(200), 60: outcomes(200)} if known is None else known).items():
        of_old.add_to(cell, each)
    before = earlier or [(12.0, NONE)]
    return tuple(
        failing_operations(
            "POST /orders", CountedOperation(old, total, new), before, of_old, LIMITS, 30.0
        )
    )


def worst(
    *of: Any, measure: str = "404", minimum: int = 20, **more: Any
) -> FailingOperation | None:
    """Return the operation that exceeds a limit of 1 %, or None."""
    return worst_operation(found(*of, **more), measure, 0.01, minimum)


def bad(number: int, good: int = 0, **ends: int) -> RouteOutcomes:
    """Return the outcomes of `number` requests with status 404 and `good` requests with 200."""
    return outcomes(number + good, _404=number, **ends)


BESIDE = outcomes(40)


def test_five_failures_of_several_clients_exceed_the_limit() -> None:
    """At most three failures of each cell of clients count."""
    assert worst({1: bad(9), 2: bad(1), 3: bad(1)}, BESIDE) == FailingOperation(
        "POST /orders", "404", (11, 11), 6, (0, 40), (0, 400), 12.0
    )
    assert worst({1: bad(1), 2: bad(2), 3: bad(1)}, BESIDE) is None
    assert worst({NO_CELL: bad(5)}, BESIDE)
    assert worst({NO_CELL: bad(4)}, BESIDE) is None
    assert worst({NO_CELL: bad(5)}, BESIDE, measure="403") is None


def test_failures_of_a_single_client_do_not_exceed_the_limit() -> None:
    """The client itself may have caused the failures."""
    assert worst({1: bad(50), 2: outcomes(50)}, BESIDE) is None
    assert worst({1: bad(50)}, BESIDE) is None
    assert worst({1: bad(50), 2: bad(1)}, BESIDE) is None
    (of_it,) = found({1: bad(50), 2: bad(40)}, BESIDE)
    assert of_it.lone == 50


def test_failures_on_both_routes_do_not_count_against_the_new_route() -> None:
    assert worst({NO_CELL: bad(30)}, bad(40)) is None
    assert worst({NO_CELL: bad(9)}, outcomes(3)) is None  # too few requests to compare with


@pytest.mark.parametrize(
    ("number", "good", "enough"), [(14, 0, True), (9, 0, False), (30, 70, False)]
)
def test_only_a_large_share_of_failures_counts_without_traffic_on_the_old_route(
    number: int, good: int, enough: bool
) -> None:
    """The usual share may have changed since the last request on the old route."""
    assert (worst({NO_CELL: bad(number, good)}, RouteOutcomes()) is not None) is enough


def test_an_operation_that_the_old_route_never_served_is_not_judged() -> None:
    assert found({NO_CELL: bad(50)}, RouteOutcomes(), {}) == ()


def test_the_usual_share_is_weighted_by_the_moved_clients() -> None:
    """Requests of some clients always fail.

    Moved clients may be such clients, and so may clients without history.
    """
    known = {1: bad(100), 2: outcomes(900)}
    (of_it,) = found({1: bad(30), 2: outcomes(30)}, outcomes(90), known)
    assert (of_it.new, of_it.usual) == ((30, 60), (460, 1000))
    assert worst({1: bad(30), 2: bad(30)}, outcomes(90), known)
    (of_it,) = found({7: bad(30), 8: bad(30)}, outcomes(90), known)
    assert of_it.usual == (918, 1000)
    assert worst({7: bad(30), 8: bad(30)}, outcomes(90), known) is None
    by_chance = {1: bad(2, good=8), 2: bad(1, good=9), 3: outcomes(280)}
    (of_it,) = found({7: bad(30)}, outcomes(90), by_chance)
    assert of_it.usual == (3, 300)


def test_missing_requests_of_an_operation_are_treated_as_successful() -> None:
    assert worst({NO_CELL: bad(6)}, BESIDE, minimum=500)
    assert worst({NO_CELL: bad(6)}, BESIDE, minimum=600) is None


def test_the_time_span_with_the_strongest_evidence_is_used() -> None:
    """A span that exceeds the window is used only if it has few requests."""
    now, old = {NO_CELL: bad(9, good=60)}, outcomes(99)
    good = CountedOperation(outcomes(80), outcomes(60), {NO_CELL: outcomes(60)})
    half = CountedOperation(outcomes(80), bad(3, good=60), {NO_CELL: bad(3, good=60)})
    (of_it,) = found(now, old, earlier=[(90.0, NONE), (40.0, good), (5.0, half)])
    assert (of_it.span, of_it.new, of_it.old) == (40.0, (9, 9), (0, 19))
    late = CountedOperation(now[NO_CELL], now[NO_CELL], now)
    assert found(now, old, earlier=[(3.0, late)]) == ()
    many = {NO_CELL: bad(60, good=60)}
    assert found(many, old, earlier=[(90.0, NONE)]) == ()
    assert found(many, old, earlier=[(30.0, NONE)]) != ()


def test_a_stalled_machine_is_not_mistaken_for_a_failing_operation() -> None:
    """Without traffic on the old route at the same time, a stall looks like a slow route."""
    late = {NO_CELL: outcomes(30, overdue=30)}
    assert worst(late, BESIDE, measure="overdue")
    assert worst(late, RouteOutcomes(), measure="overdue") is None
    assert worst(late, RouteOutcomes(), measure="overdue", earlier=[(20.0, NONE)])


def test_the_text_of_a_result_names_the_failing_operation() -> None:
    served = outcomes(300), bad(8, good=292)
    of_it = found({NO_CELL: bad(8)}, BESIDE)
    seen = GateEvidence(*served, served_old=served[0], served_new=served[1], failing=of_it)
    gates = GateLimits(errors=0.01, minimum=20)
    exceeded = [each for each in judge(gates, seen) if each.outcome is GateOutcome.EXCEEDED]
    (text,) = (each.text for each in exceeded)
    assert text == (
        "errors (404): 8 of 8 requests POST /orders (100%) were answered 404 on the new route, 0 of"
        " 400 requests POST /orders (0%) on the old route so far, within 12 s; 1% more may"
    )
    assert (exceeded[0].new_count, exceeded[0].old_requests) == (8, 400)
