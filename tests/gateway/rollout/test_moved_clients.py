"""One client of many, all of whose requests of a kind fail since it was moved."""

from gateway.rollout.gates import GateEvidence, GateLimits, GateOutcome, MovedClients
from gateway.rollout.judgement import doubt, judge, worst_moved
from gateway.rollout.route_outcomes import RouteOutcomes
from tests.gateway.rollout.outcomes import outcomes

GATES = GateLimits(errors=0.01, minimum=100)


def written(writes: int, failed: int) -> RouteOutcomes:
    """Return the outcomes of requests, a quarter of which are writes."""
    return outcomes(writes * 4, writes=writes, failed_writes=failed, _4xx=failed)


FINE = MovedClients(written(30, 2), written(20, 1))
LOST = MovedClients(written(30, 2), written(20, 20))
MANY = GateEvidence(written(300, 18), written(300, 30), served_new=written(900, 90), outlasts=True)


def exceeded(seen: GateEvidence) -> dict[str, str]:
    """Return the texts of the comparisons that exceed their limits."""
    found = judge(GATES, seen)
    return {each.measure: each.text for each in found if each.outcome is GateOutcome.EXCEEDED}


def test_one_moved_client_with_failing_writes_exceeds_the_limit() -> None:
    assert exceeded(MANY._replace(moved=(FINE,) * 11)) == {}
    seen = MANY._replace(moved=(*(FINE,) * 11, LOST))
    assert exceeded(seen) == {
        "writes": (
            "errors (writes): 20 of 20 writes (100%) were answered 4xx or 5xx on the new route,"
            " 2 of 30 writes (6.67%) of the same clients before, since the percentage was set;"
            " 1% more may; 30 of all 1200 requests were answered 4xx other than 401, 403, 404 and"
            " 429"
        )
    }
    assert exceeded(seen._replace(outlasts=False)) == {}
    assert doubt(GATES, seen) is None


def test_moved_clients_that_failed_before_or_seldom_exceed_nothing() -> None:
    for before, since in (
        (written(30, 30), written(20, 20)),  # it always failed
        (written(30, 2), written(20, 17)),  # some succeed
        (written(30, 2), written(4, 4)),  # too few
        (written(0, 0), written(20, 20)),  # nobody knows what is usual
        (written(30, 2), written(0, 0)),
    ):
        assert exceeded(MANY._replace(moved=(FINE, MovedClients(before, since)))) == {}


def test_more_clients_need_stronger_evidence() -> None:
    few = MovedClients(written(30, 2), written(8, 8))
    assert worst_moved(MANY._replace(moved=(few,)), "writes", 0.01, 1) == few
    assert worst_moved(MANY._replace(moved=(few,) * 100), "writes", 0.01, 14) is None
