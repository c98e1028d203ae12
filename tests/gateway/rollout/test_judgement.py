"""The judgement of gates: which limits are exceeded, and the exact sentences about them."""

from dataclasses import replace
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.rollout.gates import (
    MEASURES,
    GateEvidence,
    GateLimits,
    GateOutcome,
    GateResult,
    MovedClients,
    ViolatedField,
)
from gateway.rollout.judgement import (
    doubtful_result,
    first_exceeded,
    judge,
    missing_requests,
    worst_moved_clients,
)
from gateway.rollout.route_outcomes import RouteOutcomes
from tests.gateway.rollout.outcomes import outcomes
from tests.gateway.world import LAW

GATES = GateLimits(differences=0.01, errors=0.02, latency=1.5, minimum=100)
LATE = (
    "latency: a request takes 16.0 ms on the new route (200 requests), 10.0 ms on the old route"
    " (100 requests), within 300 s; 1.5x is allowed"
)
NOBODY = RouteOutcomes()
WRITTEN = outcomes(100, writes=100)


def against(gates: GateLimits | None, evidence: GateEvidence) -> str | None:
    return first_exceeded(judge(gates, evidence))


@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        (GateEvidence(), None),
        # Two differing responses may be due to chance, but five are not.
        (GateEvidence(compared=10, differing=2), None),
        (
            GateEvidence(compared=10, differing=5),
            "differences: 5 of 10 compared responses differ (50%), within 300 s; 1% may",
        ),
        (GateEvidence(compared=1000, differing=10), None),
        (GateEvidence(compared=1000, differing=11), None),
        (
            GateEvidence(compared=1000, differing=40),
            "differences: 40 of 1000 compared responses differ (4%), within 300 s; 1% may",
        ),
        (GateEvidence(new=outcomes(3, _5xx=3)), None),
        (
            GateEvidence(new=outcomes(4, _5xx=4)),
            (
                "errors (5xx): 4 of 4 requests (100%) were answered 5xx or broke off on the new"
                " route, 0 of 0 requests (none seen) on the old route, within 300 s; 2% more may"
            ),
        ),
        (GateEvidence(outcomes(100, _5xx=10), outcomes(100, _5xx=13)), None),
        (
            GateEvidence(outcomes(1000, _5xx=100), outcomes(1000, _5xx=200)),
            (
                "errors (5xx): 200 of 1000 requests (20%) were answered 5xx or broke off on the new"
                " route, 100 of 1000 requests (10%) on the old route, within 300 s; 2% more may"
            ),
        ),
        (
            GateEvidence(outcomes(400, _404=4), outcomes(20, _404=12)),
            (
                "errors (404): 12 of 20 requests (60%) were answered 404 on the new route,"
                " 4 of 400 requests (1%) on the old route, within 300 s; 2% more may"
            ),
        ),
        (
            # The number of 4xx responses is unchanged, but the statuses differ.
            GateEvidence(outcomes(400, _401=200), outcomes(400, _404=200)),
            (
                "errors (404): 200 of 400 requests (50%) were answered 404 on the new route,"
                " 0 of 400 requests (0%) on the old route, within 300 s; 2% more may"
            ),
        ),
        (
            GateEvidence(outcomes(400), outcomes(20, _conversion=20)),
            (
                "errors (conversion): 20 of 20 requests (100%) could not be converted on the new"
                " route, 0 of 400 requests (0%) on the old route, within 300 s; 2% more may"
            ),
        ),
        (
            # The old route converts nothing, so a few failures exceed the limit.
            GateEvidence(outcomes(125), outcomes(125, _conversion=15)),
            (
                "errors (conversion): 15 of 125 requests (12%) could not be converted on the new"
                " route, 0 of 125 requests (0%) on the old route, within 300 s; 2% more may"
            ),
        ),
        (
            GateEvidence(outcomes(400), outcomes(20, overdue=20)),
            (
                "errors (overdue): 20 of 20 requests (100%) took longer than 10 s on the new route,"
                " 0 of 400 requests (0%) on the old route, within 300 s; 2% more may"
            ),
        ),
        # Without requests on the old route, the usual share of 404 is unknown.
        (GateEvidence(new=outcomes(500, _404=500, overdue=500)), None),
        (GateEvidence(outcomes(1, _404=0), outcomes(500, _404=500)), None),
        # A client that is refused on the old route is also refused on the new route.
        (GateEvidence(outcomes(900), outcomes(100, _401=50), before=outcomes(100, _401=50)), None),
        (
            GateEvidence(outcomes(900), outcomes(100, _401=50), before=outcomes(100, _401=1)),
            (
                "errors (401): 50 of 100 requests (50%) were answered 401 on the new route,"
                " 0 of 900 requests (0%) on the old route, within 300 s; 2% more may"
            ),
        ),
        (
            # There are too few requests of the moved clients before the move.
            GateEvidence(outcomes(900), outcomes(100, _401=50), before=outcomes(99, _401=50)),
            (
                "errors (401): 50 of 100 requests (50%) were answered 401 on the new route,"
                " 0 of 900 requests (0%) on the old route, within 300 s; 2% more may"
            ),
        ),
        (GateEvidence(outcomes(100), outcomes(100, 0.015)), None),
        (GateEvidence(outcomes(99), outcomes(100, 0.09)), None),
        (GateEvidence(outcomes(100), outcomes(99, 0.09)), None),
        (GateEvidence(outcomes(100, spread=0.001), outcomes(200, 0.016, spread=0.001)), LATE),
        (GateEvidence(outcomes(100, spread=0.1), outcomes(200, 0.016, spread=0.1)), None),
    ],
)
def test_the_reason_is_the_text_of_the_first_exceeded_limit(
    evidence: GateEvidence, said: str | None
) -> None:
    assert against(GATES, evidence) == said


def test_outcomes_are_a_share_of_the_ended_requests() -> None:
    """An overdue request may end in a window without any other request."""
    late = outcomes(500)._replace(requests=0, overdue=0, ends=outcomes(9, _5xx=9).ends)
    found = {result.measure: result for result in judge(GATES, GateEvidence(outcomes(500), late))}
    assert (found["5xx"].new_count, found["5xx"].new_requests) == (9, 9)
    assert found["5xx"].outcome is GateOutcome.EXCEEDED
    assert found["overdue"].new is None


def test_evidence_from_few_clients_is_weakened_by_differences_between_clients() -> None:
    """If half of the clients are always refused or slow, two such clients prove nothing."""
    rest = GateEvidence(outcomes(1000, 0.1, spread=0.1, _403=500), compared=1000)
    unlike = tuple(outcomes(50, 0.2 * (number % 2), _403=50 * (number % 2)) for number in range(20))
    alike = tuple(outcomes(50, 0.1, spread=0.1, _403=25) for _ in range(20))
    for new, gate in (
        (outcomes(100, 0.1, spread=0.1, _403=100), "errors"),
        (outcomes(100, 0.3, spread=0.1, _403=50), "latency"),
    ):
        assert against(GATES, rest._replace(new=new, cells=unlike)) is None
        assert str(against(GATES, rest._replace(new=new, cells=alike))).startswith(gate)


def of_measure(measure: str, requests: int) -> RouteOutcomes:
    if measure == "overdue":
        return outcomes(requests, overdue=requests)
    if measure == "writes":
        return outcomes(requests, writes=requests, failed_writes=requests)
    return outcomes(requests, **{f"_{measure.removeprefix('other ')}": requests})


def test_every_measure_of_errors_is_compared() -> None:
    for measure in MEASURES:
        seen = GateEvidence(outcomes(500, writes=500), of_measure(measure, 50))
        exceeded = [
            result for result in judge(GATES, seen) if result.outcome is GateOutcome.EXCEEDED
        ]
        assert measure in [result.measure for result in exceeded]
        for result in exceeded:
            assert (result.gate, result.new, result.old, result.limit) == ("errors", 1, 0, 0.02)
            counts = result.new_count, result.new_requests, result.old_count, result.old_requests
            assert (*counts, result.window) == (50, 50, 0, 500, 300)


@pytest.mark.parametrize(
    ("evidence", "outcome"),
    [
        (GateEvidence(WRITTEN, WRITTEN, 100), GateOutcome.PASSED),
        (GateEvidence(outcomes(100), outcomes(99), 99), GateOutcome.INCONCLUSIVE),
    ],
)
def test_the_outcome_is_inconclusive_with_too_few_requests(
    evidence: GateEvidence, outcome: GateOutcome
) -> None:
    results = judge(GATES, evidence)
    assert {result.outcome for result in results} == {outcome}
    assert [result.gate for result in results] == ["errors"] * 12 + ["latency", "differences"]


def test_the_requests_that_a_judgement_still_needs_are_named() -> None:
    slow, few = GateLimits(latency=2, minimum=10), outcomes(9)
    assert (
        missing_requests(slow, GateEvidence(few, outcomes(8))) == "2 more requests on the new route"
    )
    assert (
        missing_requests(slow, GateEvidence(few, outcomes(10))) == "1 more request on the old route"
    )
    assert missing_requests(slow, GateEvidence(outcomes(10), outcomes(10))) is None
    assert (
        missing_requests(GATES, GateEvidence(new=outcomes(99))) == "1 more request on the new route"
    )
    quiet = GateEvidence(few, few, served_old=outcomes(10), served_new=outcomes(10))
    assert (
        missing_requests(slow, quiet) is None
    )  # all requests of the step count, not only those in the window
    errors = replace(GATES, latency=None, differences=None)
    assert missing_requests(errors, GateEvidence(new=outcomes(100))) is None
    compared = replace(GATES, latency=None)
    left = missing_requests(compared, GateEvidence(new=outcomes(100), compared=99))
    assert left == "1 more comparisons of the shadow"
    assert missing_requests(compared, GateEvidence(new=outcomes(100), compared=100)) is None


def exceeded(gates: GateLimits, seen: GateEvidence) -> dict[str, str]:
    found = judge(gates, seen)
    return {each.measure: each.text for each in found if each.outcome is GateOutcome.EXCEEDED}


def test_an_increase_in_other_4xx_is_found_despite_fewer_404() -> None:
    """Each service has its own data.

    There are as many additional 422 responses as fewer 404 responses.
    """
    seen = GateEvidence(outcomes(400, _404=80), outcomes(400, _404=10, _4xx=70))
    assert list(exceeded(GATES, seen)) == ["other 4xx"]


def test_failing_writes_are_found_among_many_reads() -> None:
    """All writes fail. They are one request in a hundred."""
    old, new = outcomes(900, writes=10), outcomes(900, writes=9, failed_writes=9, _404=9)
    assert exceeded(GATES, GateEvidence(old, new)) == {
        "writes": (
            "errors (writes): 9 of 9 writes (100%) were answered 4xx or 5xx on the new route,"
            " 0 of 10 writes (0%) on the old route, within 300 s; 2% more may;"
            " 9 of all 900 requests were answered 404"
        )
    }


def test_few_writes_are_compared_with_old_writes_over_a_longer_time() -> None:
    old, new = outcomes(900, writes=2), outcomes(900, writes=9, failed_writes=9)
    assert exceeded(GATES, GateEvidence(old, new)) == {}  # too few writes on the old route
    longer = GateEvidence(old, new, served_old=outcomes(9000, writes=40))
    assert list(exceeded(GATES, longer)) == ["writes"]
    # Two writes of the moved clients are too few to compare with.
    known = longer._replace(before=outcomes(200, writes=2))
    assert list(exceeded(GATES, known)) == ["writes"]
    unlike = longer._replace(before=outcomes(200, writes=100, failed_writes=100))
    assert exceeded(GATES, unlike) == {}


def test_rare_failures_are_judged_over_the_time_since_the_percentage_was_set() -> None:
    """One of two requests a minute fails. A window has too few of them, but an hour has enough."""
    since = "since the percentage was set"
    errors = outcomes(5, _5xx=2), outcomes(60, _5xx=30)
    slow = outcomes(5, 0.1), outcomes(100, 0.1, spread=0.01)
    rare = outcomes(500), outcomes(900, _404=9, writes=9, failed_writes=9)
    old = outcomes(500, spread=0.001, writes=50)
    for measure, (new, longer) in (("5xx", errors), ("mean", slow), ("writes", rare)):
        seen = GateEvidence(old, new, served_new=longer, outlasts=True)
        assert since in exceeded(GATES, seen)[measure]
        assert exceeded(GATES, seen._replace(outlasts=False)) == {}
        assert exceeded(GATES, seen._replace(served_new=seen.new)) == {}
    many = GateEvidence(old, WRITTEN, served_new=outcomes(900, _5xx=90), outlasts=True)
    assert exceeded(GATES, many) == {}


def test_a_step_waits_while_few_writes_leave_doubt() -> None:
    new = outcomes(900, writes=3, failed_writes=2)
    seen = GateEvidence(outcomes(900, writes=90, failed_writes=1), new, served_new=new)
    assert exceeded(SMALL, seen) == {}
    assert "errors (writes): 2 of 3 writes (66.7%)" in str(doubtful_result(SMALL, seen))


def test_old_durations_are_not_compared_but_old_shares_are() -> None:
    """Shares depend less on the time of day than durations do."""
    slow = GateEvidence(outcomes(100, spread=0.001), outcomes(200, 0.016, spread=0.001, _5xx=99))
    assert list(exceeded(GATES, slow)) == ["5xx", "mean"]
    ceased = slow._replace(old_ceased=True)
    assert list(exceeded(GATES, ceased)) == ["5xx"]
    (latency,) = (each for each in judge(GATES, ceased) if each.gate == "latency")
    assert latency.outcome is GateOutcome.INCONCLUSIVE
    assert latency.text == f"{LATE}, but those were too long ago"


def test_a_stalled_machine_does_not_count_as_a_slow_route() -> None:
    """Without traffic on the old route, durations must exceed the limit for most of the window."""
    still = (*[outcomes(20)] * 8, outcomes(20, 1.0, spread=0.5), outcomes(20, 0.5, spread=0.5))
    for parts, slow in ((still, []), ([outcomes(20, 0.07)] * 6 + [outcomes(10)] * 4, ["mean"])):
        new = reduce(RouteOutcomes.plus, parts)
        seen = GateEvidence(outcomes(1000, spread=0.001), new, parts=tuple(parts))
        assert list(exceeded(GATES, seen)) == slow
        assert list(exceeded(GATES, seen._replace(parts=()))) == ["mean"]
    seen = GateEvidence(outcomes(1000, spread=0.001), new, parts=(outcomes(0), outcomes(20, 0.07)))
    assert list(exceeded(GATES, seen)) == ["mean"]


@pytest.mark.parametrize("ends", [{"overdue": 9}, {"_abandoned": 9}])
def test_overdue_requests_in_two_parts_of_a_window_may_be_a_stall(
    ends: dict[str, int],
) -> None:
    gates = GateLimits(errors=0.01)
    for parts, count in (([9, 9], 0), ([9, 9, 9, 9], 1)):
        bad = [outcomes(20, **ends)] * len(parts)
        parts_of_it = (*bad, *[outcomes(20)] * (10 - len(bad)))
        new = reduce(RouteOutcomes.plus, parts_of_it)
        seen = GateEvidence(outcomes(1000), new, parts=parts_of_it)
        assert len(exceeded(gates, seen)) == count
        assert len(exceeded(gates, seen._replace(parts=()))) == 1


SMALL = GateLimits(errors=0.01, minimum=5)


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        (outcomes(8), outcomes(5, _404=3), "errors (404): 3 of 5 requests (60%)"),
        (outcomes(5), outcomes(5, _404=1), "errors (404): 1 of 5 requests (20%)"),
        (outcomes(8), outcomes(5, _5xx=1), "errors (5xx): 1 of 5 requests (20%)"),
        (outcomes(150, _404=1), outcomes(100, _404=2), None),
        (outcomes(8, _404=5), outcomes(5, _404=3), None),
        (outcomes(8), outcomes(5), None),
        (NOBODY, outcomes(5, _404=5), None),  # the usual share is unknown
    ],
)
def test_a_few_failing_requests_leave_doubt(
    old: RouteOutcomes, new: RouteOutcomes, left: str | None
) -> None:
    for seen in (GateEvidence(old, new), GateEvidence(NOBODY, outcomes(5), served_old=old)):
        seen = seen._replace(served_new=new)
        assert against(SMALL, seen) is None
        assert missing_requests(SMALL, seen) is None
        found = doubtful_result(SMALL, seen)
        if left is None:
            assert found is None
            continue
        assert str(found).startswith(f"more requests, since the result is uncertain: {left}")
        assert "since the percentage was set; 1% more may" in str(found)
        measure = left.partition("(")[2].partition(")")[0]
        outcome = next(each.outcome for each in judge(SMALL, seen) if each.measure == measure)
        assert outcome is GateOutcome.INCONCLUSIVE


def test_a_few_durations_and_comparisons_leave_doubt() -> None:
    gates = GateLimits(differences=0.01, latency=1.5, minimum=5)
    slow = GateEvidence(outcomes(5, 0.01), outcomes(5, 0.1, spread=0.05), 5)
    seen = slow._replace(served_new=slow.new)
    assert against(gates, seen) is None
    assert str(doubtful_result(gates, seen)).startswith(
        "more requests, since the result is uncertain: latency: a"
    )
    results = {each.gate: each.outcome for each in judge(gates, seen)}
    assert results == {"latency": GateOutcome.INCONCLUSIVE, "differences": GateOutcome.PASSED}
    for compared, differing, leaves in (
        (5, 1, True),
        (50, 1, False),
        (99, 3, True),
        (100, 3, False),
    ):
        differs = GateEvidence(outcomes(100), outcomes(100), compared, differing)
        assert against(gates, differs) is None
        assert (doubtful_result(gates, differs) is not None) is leaves
        (outcome,) = (e.outcome for e in judge(gates, differs) if e.gate == "differences")
        assert outcome is (GateOutcome.INCONCLUSIVE if leaves else GateOutcome.PASSED)


def test_many_requests_leave_no_doubt() -> None:
    seen = GateEvidence(outcomes(100), outcomes(100, _404=3))
    assert doubtful_result(SMALL, seen._replace(served_new=seen.new)) is None
    few = GateEvidence(outcomes(99), outcomes(99, _404=4))
    assert doubtful_result(SMALL, few._replace(served_new=few.new)) is not None


def test_clients_that_may_differ_from_the_rest_leave_no_doubt() -> None:
    rest = GateEvidence(outcomes(1000, _403=300), outcomes(10, _403=6))
    unlike = tuple(outcomes(50, _403=50 * (number < 6)) for number in range(20))
    alike = tuple(outcomes(50, _403=15) for _ in range(20))
    for cells, leaves in ((unlike, False), (alike, True)):
        seen = rest._replace(served_new=rest.new, cells=cells)
        assert (doubtful_result(SMALL, seen) is not None) is leaves


WORST = GateEvidence(outcomes(100), outcomes(100, 9.0, _5xx=100), 100, 100)


@pytest.mark.parametrize("gates", [None, GateLimits()])
def test_gates_without_limits_are_never_exceeded(gates: GateLimits | None) -> None:
    assert against(gates, WORST) is None


def test_each_gate_judges_its_own_measures() -> None:
    for name, gates in {
        "differences": replace(GATES, errors=None, latency=None),
        "errors": replace(GATES, differences=None, latency=None),
        "latency": replace(GATES, differences=None, errors=None),
    }.items():
        assert str(against(gates, WORST)).startswith(name)


@LAW
@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 300))
def test_more_good_responses_never_exceed_a_limit(requests: int, failures: int, more: int) -> None:
    failures = min(failures, requests)
    if against(GATES, GateEvidence(new=outcomes(requests, _5xx=failures))) is None:
        new = outcomes(requests + more, _5xx=failures)
        assert against(GATES, GateEvidence(new=new)) is None


VALIDATING = GateLimits(violations=0.01, minimum=5)
BAD, USUAL = "GET /orders /total", "GET /orders /note"


def validated(checked: int, violating: int, writes: int = 0, bad: int = 0) -> RouteOutcomes:
    sampled = outcomes(checked * 2, writes=writes)
    return sampled._replace(
        checked=checked, violating=violating, checked_writes=writes, violating_writes=bad
    )


def violated(seen: GateEvidence, gates: GateLimits = VALIDATING) -> dict[str, str]:
    found = judge(gates, seen)
    return {each.measure: each.text for each in found if each.outcome is GateOutcome.EXCEEDED}


def test_violations_only_on_the_new_route_exceed_the_limit() -> None:
    old, new = validated(200, 0), validated(20, 20)
    fields = ViolatedField(USUAL, 30, 3), ViolatedField(BAD, 0, 20)
    seen = GateEvidence(old, new, served_old=old, served_new=new, fields=fields)
    assert violated(seen) == {
        "answers": (
            "violations (answers): 20 of 20 validated answers (100%) violate the document on the"
            " new route, 0 of 200 validated answers (0%) on the old route, within 300 s; 1% more"
            f" may; most of all {BAD}"
        )
    }
    assert [each.gate for each in judge(VALIDATING, seen)] == ["violations"] * 2
    assert violated(seen, GateLimits(errors=0.01, minimum=5)) == {}


def test_equal_shares_of_violations_on_both_routes_exceed_no_limit() -> None:
    for share in (0.1, 0.5, 1.0):
        old, new = validated(200, int(200 * share)), validated(40, int(40 * share))
        seen = GateEvidence(old, new, served_old=old, served_new=new)
        assert violated(seen) == {}
        assert doubtful_result(VALIDATING, seen) is None


def test_violations_are_not_judged_without_responses_on_the_old_route() -> None:
    new = validated(500, 500)
    seen = GateEvidence(outcomes(500), new, served_new=new)
    assert violated(seen) == {}
    assert {each.outcome for each in judge(VALIDATING, seen)} == {GateOutcome.INCONCLUSIVE}
    assert (
        missing_requests(VALIDATING, seen) is None
    )  # a version may have no document, and a step goes on


def test_clients_whose_responses_always_violate_the_document_do_not_count() -> None:
    old, new = validated(900, 9), validated(100, 50)
    assert list(violated(GateEvidence(old, new))) == ["answers"]
    assert violated(GateEvidence(old, new, before=validated(100, 50))) == {}
    unlike = tuple(validated(50, 50 * (number == 0)) for number in range(20))
    few = GateEvidence(validated(1000, 50), validated(50, 50))
    assert list(violated(few)) == ["answers"]
    assert violated(few._replace(cells=unlike)) == {}


def test_violations_of_writes_are_compared_separately() -> None:
    old, new = validated(5000, 0, 40), validated(5000, 12, 12, 12)
    seen = GateEvidence(old, new, served_old=old, served_new=new)
    assert violated(seen) == {
        "write answers": (
            "violations (write answers): 12 of 12 validated answers to writes (100%) violate the"
            " document on the new route, 0 of 40 validated answers to writes (0%) on the old"
            " route, within 300 s; 1% more may"
        )
    }


def test_a_step_waits_while_few_violations_leave_doubt() -> None:
    old, new = validated(8, 0), validated(5, 2)
    seen = GateEvidence(old, new, served_old=old, served_new=new)
    assert violated(seen) == {}
    assert "violations (answers): 2 of 5" in str(doubtful_result(VALIDATING, seen))
    longer = seen._replace(served_new=validated(50, 20), served_old=validated(80, 0), outlasts=True)
    assert "since the percentage was set" in violated(longer)["answers"]


ERRORS = GateLimits(errors=0.01, minimum=100)


def written(writes: int, failed: int) -> RouteOutcomes:
    """Return the outcomes of requests. A quarter of them are writes."""
    return outcomes(writes * 4, writes=writes, failed_writes=failed, _4xx=failed)


FINE = MovedClients(written(30, 2), written(20, 1))
LOST = MovedClients(written(30, 2), written(20, 20))
MANY = GateEvidence(written(300, 18), written(300, 30), served_new=written(900, 90), outlasts=True)


def failed(seen: GateEvidence) -> dict[str, str]:
    found = judge(ERRORS, seen)
    return {each.measure: each.text for each in found if each.outcome is GateOutcome.EXCEEDED}


def test_one_moved_client_with_failing_writes_exceeds_the_limit() -> None:
    assert failed(MANY._replace(moved=(FINE,) * 11)) == {}
    seen = MANY._replace(moved=(*(FINE,) * 11, LOST))
    assert failed(seen) == {
        "writes": (
            "errors (writes): 20 of 20 writes (100%) were answered 4xx or 5xx on the new route,"
            " 2 of 30 writes (6.67%) of the same clients before, since the percentage was set;"
            " 1% more may; 30 of all 1200 requests were answered 4xx other than 401,"
            " 403, 404 and 429"
        )
    }
    assert failed(seen._replace(outlasts=False)) == {}
    assert doubtful_result(ERRORS, seen) is None


def test_moved_clients_that_failed_before_or_seldom_fail_exceed_no_limit() -> None:
    for before, since in (
        (written(30, 30), written(20, 20)),  # the client always failed
        (written(30, 2), written(20, 17)),  # some writes succeed
        (written(30, 2), written(4, 4)),  # too few writes
        (written(0, 0), written(20, 20)),  # the usual share is unknown
        (written(30, 2), written(0, 0)),
    ):
        assert failed(MANY._replace(moved=(FINE, MovedClients(before, since)))) == {}


def test_stronger_evidence_is_needed_if_more_clients_are_compared() -> None:
    few = MovedClients(written(30, 2), written(8, 8))
    assert worst_moved_clients(MANY._replace(moved=(few,)), "writes", 0.01, 1) == few
    assert worst_moved_clients(MANY._replace(moved=(few,) * 100), "writes", 0.01, 14) is None


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
