"""Results of the gates: their counts and sentences, and when a step has enough evidence."""

import pytest

from gateway.rollout.evidence import BLOCK, DIFFERS, SLOW, CutoverEvidence, EvidenceRow
from gateway.rollout.gates import GateEvidence, GateLimits, GateOutcome, GateResult
from gateway.rollout.judgement import first_exceeded, judge, margins, missing_requests
from tests.gateway.rollout.outcomes import outcomes

GATES = GateLimits(errors=0.01, latency=1.5, differences=0.02, violations=0.01, minimum=100)
CLIENTS = [f"c{number}" for number in range(30)]
Rows = list[EvidenceRow]


def rows(clients: list[str], operation: str = "GET /orders", **counts: int) -> Rows:
    named = {name.removeprefix("_").replace("_", " "): count for name, count in counts.items()}
    return [EvidenceRow(each, operation, 2, {**named}, checked=2, timed=2) for each in clients]


def usual(clients: list[str]) -> Rows:
    operations = "GET /orders", "GET /items", "POST /orders"
    return [row for operation in operations for row in rows(clients, operation)]


def judged(
    new: Rows, old: Rows, shadow: Rows | None = None, blocks: int = 6, field: str = ""
) -> tuple[dict[str, GateResult], str]:
    """Return the results by measure after equal blocks, and the doubt."""
    evidence, now = CutoverEvidence(), 0.0
    for step in (0, 1):
        evidence.advance(now, step, margins(GATES), timed=True, settled=False)
        for _ in range(blocks):
            if step:
                evidence.add("new", new)
                evidence.add("shadow", shadow or [])
            evidence.add("old", old if step else usual(CLIENTS))
            now += BLOCK
            evidence.advance(now, step, margins(GATES), timed=True, settled=False)
    counted = GateEvidence(outcomes(300, 0.010), outcomes(300, 0.012), 900, 300)
    results, doubt = judge(GATES, evidence, counted, field, 60.0)
    return {each.measure: each for each in results}, doubt


OLD, NEW = CLIENTS[10:], CLIENTS[:10]


AT = "on the new route, {} on the old route, since the percentage was set; 1% more may"
REFUSED = "were answered 4xx other than 401, 403, 404 and 429"


@pytest.mark.parametrize(
    ("new", "failed", "old"),
    [
        (
            rows(NEW, _5xx=1),
            "errors (5xx): 60 of 120 requests (50%) were answered 5xx or broke off",
            "0 of 720 requests (0%)",
        ),
        (
            [*rows(NEW), *rows(NEW[:4], "POST /orders", other_4xx=2)],
            f"errors (other 4xx): 48 of 48 writes (100%) {REFUSED}",
            "0 of 240 writes (0%)",
        ),
        (
            [*rows(NEW), *rows(NEW[:4], "GET /items", other_4xx=2)],
            f"errors (other 4xx): 48 of 48 requests GET /items (100%) {REFUSED}",
            "0 of 240 requests GET /items (0%)",
        ),
        (
            [*rows(NEW[:1], _404=2), *rows(NEW[1:])],
            "errors (404): 12 of 12 reads of the client 'c0' (100%) were answered 404",
            "0 of 480 reads (0%) of all clients",
        ),
        (
            rows(NEW, answers=2),
            "violations (answers): 120 of 120 validated answers (100%) violate the document",
            "0 of 720 validated answers (0%)",
        ),
        (
            rows(NEW, overdue=2),
            "errors (overdue): 120 of 120 requests (100%) took longer than 10 s",
            "0 of 720 requests (0%)",
        ),
    ],
    ids=["all", "writes", "an operation", "a client", "the document", "overdue"],
)
def test_an_exceeded_limit_names_what_fails_and_how_often(new: Rows, failed: str, old: str) -> None:
    results, _ = judged(new, usual(OLD))
    (exceeded,) = (each for each in results.values() if each.outcome is GateOutcome.EXCEEDED)
    assert exceeded.text == f"{failed} {AT.format(old)}"
    assert first_exceeded([*results.values()]) == exceeded.text
    assert exceeded.pressure is not None
    assert exceeded.pressure > 1


def test_without_requests_on_the_old_route_its_usual_share_is_named() -> None:
    new = [*rows(NEW[:5], _404=1), *rows(NEW[5:])]
    evidence = CutoverEvidence({"": [2000.0, {"404": 500.0}]})
    evidence.advance(0, 0, margins(GATES), timed=True, settled=False)
    evidence.add("new", new)
    evidence.advance(BLOCK, 0, margins(GATES), timed=True, settled=False)
    counted = GateEvidence(outcomes(0), outcomes(300), 900, 300)
    results, _ = judge(GATES, evidence, counted, "", 60.0, since="in the last 60 s")
    (found,) = (each for each in results if each.measure == "404")
    assert (found.new, found.old, found.pressure) == (0.25, 0.25, 0.0)
    assert found.text == (
        "errors (404): 5 of 20 requests (25%) were answered 404 on the new route, usually 25% of"
        " the requests on the old route, in the last 60 s; 1% more may"
    )


def test_the_field_that_violates_the_document_most_often_is_named() -> None:
    results, _ = judged(rows(NEW, answers=2), usual(OLD), field="GET /orders /total")
    assert results["answers"].text.endswith("1% more may; most often GET /orders /total")


def test_differences_are_a_share_of_compared_responses() -> None:
    shadow = [EvidenceRow(each, "GET /x", 0, {DIFFERS: 1}, compared=2) for each in CLIENTS]
    results, _ = judged(rows(NEW), usual(OLD), shadow)
    found = results["share"]
    assert (found.outcome, found.new_count, found.new_requests) == ("exceeded", 180, 360)
    assert found.text == (
        "differences: 180 of 360 compared responses (50%) differ, since the percentage was set; 2%"
        " may"
    )


def test_slow_operations_are_named_and_the_means_are_shown() -> None:
    slow = rows(NEW)
    for each in slow:
        each.log_seconds = 4.0
    results, _ = judged(slow, usual(OLD))
    assert results["mean"].outcome is GateOutcome.EXCEEDED
    assert results["mean"].text == (
        "latency: a request takes 12.0 ms on the new route (300 requests, slowest GET /orders),"
        " 10.0 ms on the old route (300 requests), since the percentage was set; 1.5x is allowed"
    )


def test_a_healthy_route_passes_all_measures() -> None:
    results, doubt = judged(rows(NEW), usual(OLD))
    assert {each.outcome for each in results.values()} == {GateOutcome.PASSED}
    assert doubt == ""
    assert results.keys() == {
        *("5xx", "conversion", "401", "403", "404", "429", "other 4xx", "3xx", "overdue"),
        *("abandoned", "answers", "mean", "share"),
    }


def test_a_suspicion_is_inconclusive_and_is_a_doubt() -> None:
    results, doubt = judged([*rows(NEW[:1], _5xx=2), *rows(NEW[1:])], usual(OLD), blocks=2)
    assert results["5xx"].outcome is GateOutcome.INCONCLUSIVE
    assert doubt == results["5xx"].text
    assert "reads of the client 'c0'" in doubt


def test_a_step_continues_while_three_times_the_limit_is_not_unlikely() -> None:
    new = [*rows(NEW[:1], _5xx=1), *rows(NEW[1:])]
    evidence = CutoverEvidence({"": [2000.0, {}]})
    evidence.advance(0, 0, margins(GATES), timed=True, settled=False)
    doubts = []
    for block in range(1, 40):
        evidence.add("new", new if block == 1 else rows(NEW))
        evidence.add("old", rows(OLD))
        evidence.advance(block * BLOCK, 0, margins(GATES), timed=True, settled=False)
        counted = GateEvidence(outcomes(300), outcomes(300), 900, 300)
        doubts.append(bool(judge(GATES, evidence, counted, "", 60.0)[1]))
    assert doubts.index(False) == 8
    assert not any(doubts[8:])


@pytest.mark.parametrize(
    ("evidence", "missing"),
    [
        (GateEvidence(), "100 more requests on the new route"),
        (GateEvidence(new=outcomes(99)), "1 more request on the new route"),
        (GateEvidence(new=outcomes(100), known=40), "60 more requests on the old route"),
        (
            GateEvidence(new=outcomes(100), known=100, compared=1),
            "99 more comparisons of the shadow",
        ),
        (GateEvidence(new=outcomes(100), known=100, compared=100), ""),
    ],
)
def test_the_missing_requests_are_named(evidence: GateEvidence, missing: str) -> None:
    assert missing_requests(GATES, evidence) == missing


def test_only_gates_with_a_limit_are_judged() -> None:
    assert margins(GateLimits()) == {}
    assert margins(GateLimits(violations=0.01)) == {"answers": 0.01}
    assert margins(GateLimits(differences=0.02)) == {DIFFERS: 0.02}
    assert margins(GateLimits(latency=1.0)) == {SLOW: 0.0}
