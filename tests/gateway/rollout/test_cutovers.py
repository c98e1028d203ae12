"""Decisions about cutovers by steps and gates, also after changes of the clock and restarts."""

import json

import msgspec
import pytest

from gateway.rollout.cutovers import PercentCommand, evidence_document, published_evidence
from gateway.rollout.evidence import DIFFERS, SHADOW, EvidenceRow
from gateway.rollout.gates import GateEvidence
from gateway.rollout.route_outcomes import OUTCOMES
from gateway.usage.delta import CounterDelta, CutoverDelta, Delta
from tests.gateway.rollout.deciding import KEY, Decider
from tests.gateway.rules.rules import edited, loaded

SHADOWED = loaded(
    edited(
        "{ service: old }",
        '{ service: old, shadow: { via: "2" }, cutover: { via: "2", percent: 5,'
        " sticky_by: request, gates: { differences: 1%, minimum: 10 } } }",
    )
)
STEPS = loaded(
    edited(
        "{ service: old }",
        '{ service: old, cutover: { via: "2", steps: [5, 50], every: 1m, sticky_by: request,'
        " gates: { errors: 10%, window: 30s, minimum: 10, then: roll_back } } }",
    )
)


def compared(number: int, differing: int) -> Delta:
    counts = [CounterDelta("compared", KEY, number), CounterDelta("differing", KEY, differing)]
    rows = [
        EvidenceRow(f"c{each}", "GET /p", counts={DIFFERS: int(each < differing)}, compared=1)
        for each in range(number)
    ]
    return Delta(1.0, [], [], counts, [CutoverDelta(*KEY, SHADOW, rows=rows)], [])


def outcomes(requests: int, failures: int, route: str = "new", status: str = "5xx") -> Delta:
    """Return the outcomes of requests, each of another client."""
    ends = [0] * len(OUTCOMES)
    ends[OUTCOMES.index("2xx")], ends[OUTCOMES.index(status)] = requests - failures, failures
    rows = [
        EvidenceRow(f"c{number}", "POST /p", 1, {status: 1} if number < failures else {})
        for number in range(requests)
    ]
    counted = CutoverDelta(*KEY, route, requests, 0, ends, 0.1 * requests, rows=rows)
    return Delta(1.0, [], [], [], [counted], [])


def restarted(former: Decider) -> Decider:
    """Return the cutovers after a restart, with the documents from JSON and without counts."""
    return Decider(STEPS, msgspec.json.decode(msgspec.json.encode(former.documents)))


def test_comparisons_before_a_reset_of_the_shadow_do_not_count() -> None:
    decider = Decider(SHADOWED)
    decider.totals.absorb(compared(100, 0))
    decider.decide()
    decider.decide(10)
    decider.totals.absorb(compared(50, 0))
    decider.totals.reset_shadow(KEY)
    decider.cutovers.reset_shadow(KEY)
    decider.totals.absorb(compared(20, 0))
    decider.decide(10)
    for _ in range(3):
        decider.totals.absorb(compared(20, 20))
        state = decider.decide(10)
    assert state.percent == 0
    assert "20 of 40" in state.why


@pytest.mark.parametrize("judges", [False, True])
@pytest.mark.parametrize("moved", [-40_000_000.0, -3600.0, 3600.0, 40_000_000.0])
def test_setting_the_clock_does_not_change_windows_or_steps(moved: float, *, judges: bool) -> None:
    """With `judges`, the states are read before each decision, as by the leader of a fleet."""
    decider = Decider(STEPS)

    def decide(seconds: int) -> float:
        for _ in range(seconds):
            if judges:
                decider.load()
            decider.decide(1)
        return decider.state.percent

    decide(10)
    decider.date += moved
    decider.totals.absorb(outcomes(20, 0))
    assert decide(40) == 5
    decider.totals.absorb(outcomes(20, 0))
    assert decide(20) == 50
    current = decider.current()
    assert 0 <= decider.date - current.state.since < 20
    assert current.evidence.new.requests == 0
    decider.totals.absorb(outcomes(9, 0))
    assert decide(30) == 50
    assert decider.current().evidence.new.requests == 9
    decider.date -= moved
    decide(5)
    for _ in range(2):
        decider.totals.absorb(outcomes(300, 0, "old"))
        decider.totals.absorb(outcomes(300, 165))
        decide(10)
    assert decider.state.percent == 0
    assert "165 of" in decider.state.why


@pytest.mark.parametrize("moved", [-3600.0, 3600.0])
def test_setting_the_clock_does_not_change_the_steps_of_the_next_leader(moved: float) -> None:
    first = Decider(STEPS)
    first.decide()
    first.date += moved
    first.decide(10)
    following = Decider(STEPS)
    following.seconds, following.date = first.seconds, first.date
    following.documents = first.documents
    following.load()
    percents = []
    for _ in range(60):
        following.totals.absorb(outcomes(1, 0))
        percents.append(following.decide(1).percent)
    assert percents.index(50.0) == 49


def test_a_state_with_a_future_date_does_not_block_the_next_step() -> None:
    ahead = Decider(STEPS)
    ahead.date += 40_000_000
    ahead.decide()
    again = restarted(ahead)
    for _ in range(70):
        again.totals.absorb(outcomes(1, 0))
        again.decide(1)
    assert again.state.percent == 50


def test_an_operator_can_set_a_percentage_before_the_first_decision() -> None:
    decider = Decider(STEPS)
    decider.order(25.0)
    assert decider.state.percent == 25
    decider.order(PercentCommand.STAY)
    assert decider.state.percent == 25
    decider.order(PercentCommand.CLEAR)
    assert (decider.state.percent, decider.state.decided_by) == (5, "rules")


def test_a_restart_keeps_the_state_and_the_history_of_the_old_route() -> None:
    """At 100 %, the old route gets no further requests to compare with."""
    decider = Decider(STEPS)
    decider.decide()
    decider.totals.absorb(outcomes(40, 30, "old", "404"))
    decider.decide(10)
    decider.order(100.0)
    again = restarted(decider)
    again.decide(1)
    found = again.current()
    assert (found.state.percent, found.state.why) == (100, "an operator has set it")
    again.order(PercentCommand.STAY)
    history = again.documents["cutovers"][0]["history"]  # type: ignore[index]
    assert history["POST /p"] == [40, {"404": 30}]


def test_the_results_of_a_rollback_outlive_a_restart() -> None:
    decider = Decider(STEPS)
    decider.decide()
    decider.totals.absorb(outcomes(40, 30))
    decider.decide(10)
    decider.totals.absorb(outcomes(40, 40))
    decider.decide(10)
    back = decider.current()
    (gate,) = (each for each in back.results if each.outcome == "exceeded")
    assert (gate.new_count, gate.new_requests, gate.text) == (70, 80, back.state.why)
    again = restarted(decider)
    assert (again.state.decided_by, again.state.results) == ("rolled_back", back.results)
    stored = json.loads(json.dumps(again.documents))
    stored["cutovers"][0]["results"] = [{"gate": "of another release"}]
    other = Decider(STEPS, stored)
    assert (other.state.decided_by, other.state.results) == ("rolled_back", ())
    decider.order(PercentCommand.CLEAR)
    assert {each.new_requests for each in decider.current().results} == {0}


def test_requests_that_end_after_a_rollback_log_no_event() -> None:
    """Late requests end after all clients are back on the old route.

    After `clear`, failures are logged again.
    """
    decider = Decider(STEPS)

    def exceeded() -> int:
        for _ in range(3):
            decider.totals.absorb(outcomes(40, 40))
            decider.decide(10)
        return decider.events.count("gate_exceeded")

    decider.decide()
    assert exceeded() == 1
    assert exceeded() == 1
    decider.order(PercentCommand.CLEAR)
    assert exceeded() == 2


STORED = {"served": KEY, "percent": 5, "word": "rules", "why": "so", "since": 1}


@pytest.mark.parametrize(
    ("stored", "lost"),
    [
        ([{"served": ["person", "1"], "percent": "much"}], 1),
        # An earlier release stores no history of the old route. A later release may store more.
        ([STORED], 0),
        ([STORED | {"history": {"": [9.0, {}, 1]}}], 0),
        ([STORED | {"history": [9], "word": "new", "more": 1}], 0),
        ([{"served": ["users", "1"], "percent": "much"}, STORED], 1),
    ],
)
def test_an_unreadable_stored_state_is_reported(stored: object, lost: int) -> None:
    decider, reported = Decider(STEPS, {"cutovers": stored}), list[str]()
    decider.cutovers.load(decider.documents, decider.at, report=reported.append)
    assert len(reported) == lost
    assert decider.current().evidence.old.requests == 0


def test_a_decision_of_a_later_release_is_kept() -> None:
    stored = [STORED | {"word": "something new", "percent": 0}]
    decider = Decider(STEPS, {"cutovers": stored})
    assert decider.decide(3600).percent == 0


def test_other_replicas_can_read_the_evidence_that_the_leader_publishes() -> None:
    decider = Decider(STEPS)
    for second in range(6):
        decider.decide()
        decider.go_on(1)
        for route, failures in (("old", 0), ("new", int(second == 5))):
            decider.totals.absorb(outcomes(9, failures, route))
    counted = decider.totals.route_counts
    document = evidence_document(decider.cutovers, STEPS.cutovers, counted, decider.at)
    published = json.loads(json.dumps(document))
    evidence = published_evidence(published)[KEY]
    assert (evidence.new.requests, evidence.new.failures, evidence.known) == (54, 1, 54)
    (result,) = (each for each in evidence.results if each.measure == "5xx")
    assert (result.new_count, result.old_count, result.old_requests) == (1, 0, 54)
    published[0]["evidence"][0].append(0)
    assert published_evidence(published).get(KEY, GateEvidence()) == GateEvidence()
