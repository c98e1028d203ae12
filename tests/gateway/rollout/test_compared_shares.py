"""Shares of answers that violate the document: compared with the old route, never judged alone."""

from gateway.rollout.gates import GateEvidence, GateLimits, GateOutcome, ViolatedField
from gateway.rollout.judgement import doubt, judge, missing
from gateway.rollout.route_outcomes import RouteOutcomes
from tests.gateway.rollout.outcomes import outcomes

GATES = GateLimits(violations=0.01, minimum=5)
BAD, USUAL = "GET /orders /total", "GET /orders /note"


def validated(checked: int, violating: int, writes: int = 0, bad: int = 0) -> RouteOutcomes:
    """Return the outcomes of requests, of whose answers some are validated."""
    sampled = outcomes(checked * 2, writes=writes)
    return sampled._replace(
        checked=checked, violating=violating, checked_writes=writes, violating_writes=bad
    )


def exceeded(seen: GateEvidence, gates: GateLimits = GATES) -> dict[str, str]:
    """Return the texts of the comparisons that exceed their limits."""
    found = judge(gates, seen)
    return {each.measure: each.text for each in found if each.outcome is GateOutcome.EXCEEDED}


def test_a_violation_on_the_new_route_alone_exceeds_the_limit() -> None:
    old, new = validated(200, 0), validated(20, 20)
    fields = ViolatedField(USUAL, 30, 3), ViolatedField(BAD, 0, 20)
    seen = GateEvidence(old, new, served_old=old, served_new=new, fields=fields)
    assert exceeded(seen) == {
        "answers": (
            "violations (answers): 20 of 20 validated answers (100%) violate the document on the"
            " new route, 0 of 200 validated answers (0%) on the old route, within 300 s; 1% more"
            f" may; most of all {BAD}"
        )
    }
    assert [each.gate for each in judge(GATES, seen)] == ["violations"] * 2
    assert exceeded(seen, GateLimits(errors=0.01, minimum=5)) == {}


def test_violations_on_both_routes_exceed_nothing() -> None:
    for share in (0.1, 0.5, 1.0):
        old, new = validated(200, int(200 * share)), validated(40, int(40 * share))
        seen = GateEvidence(old, new, served_old=old, served_new=new)
        assert exceeded(seen) == {}
        assert doubt(GATES, seen) is None


def test_violations_are_not_judged_without_the_old_route() -> None:
    new = validated(500, 500)
    seen = GateEvidence(outcomes(500), new, served_new=new)
    assert exceeded(seen) == {}
    assert {each.outcome for each in judge(GATES, seen)} == {GateOutcome.INCONCLUSIVE}
    assert missing(GATES, seen) is None  # a version may have no document, and a step goes on


def test_clients_whose_responses_always_violate_the_document_do_not_count() -> None:
    old, new = validated(900, 9), validated(100, 50)
    assert list(exceeded(GateEvidence(old, new))) == ["answers"]
    assert exceeded(GateEvidence(old, new, before=validated(100, 50))) == {}
    unlike = tuple(validated(50, 50 * (number == 0)) for number in range(20))
    few = GateEvidence(validated(1000, 50), validated(50, 50))
    assert list(exceeded(few)) == ["answers"]
    assert exceeded(few._replace(cells=unlike)) == {}


def test_violations_of_writes_are_compared_separately() -> None:
    old, new = validated(5000, 0, 40), validated(5000, 12, 12, 12)
    seen = GateEvidence(old, new, served_old=old, served_new=new)
    assert exceeded(seen) == {
        "write answers": (
            "violations (write answers): 12 of 12 validated answers to writes (100%) violate the"
            " document on the new route, 0 of 40 validated answers to writes (0%) on the old"
            " route, within 300 s; 1% more may"
        )
    }


def test_few_violations_make_a_step_wait() -> None:
    old, new = validated(8, 0), validated(5, 2)
    seen = GateEvidence(old, new, served_old=old, served_new=new)
    assert exceeded(seen) == {}
    assert "violations (answers): 2 of 5" in str(doubt(GATES, seen))
    longer = seen._replace(served_new=validated(50, 20), served_old=validated(80, 0), outlasts=True)
    assert "since the percentage was set" in exceeded(longer)["answers"]
