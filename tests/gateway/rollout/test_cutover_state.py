"""The states of a cutover: a table of transitions, and the sentences about the states."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.rollout.cutover import VersionCutover
from gateway.rollout.cutovers import (
    CutoverState,
    DecidedBy,
    advance,
    missing_evidence,
    next_change,
    ordered,
)
from gateway.rollout.gates import GateEvidence, GateLimits, GateOutcome
from tests.gateway.rollout.outcomes import outcomes, result
from tests.gateway.world import LAW

GATES = GateLimits(errors=0.01, minimum=10)
CUTOVER = VersionCutover(("person", "1"), "2", 50.0, gates=GATES)
HOLDING = replace(CUTOVER, gates=replace(GATES, then="hold"))
STEPS = replace(CUTOVER, percent=100.0, steps=(1.0, 25.0, 100.0), every=60.0)
BARE = replace(STEPS, gates=None)
DOUBT = GateEvidence(new=outcomes(12, _5xx=2), doubt="errors (5xx): 2 of 12 requests")
GOOD = GateEvidence(new=outcomes(100), results=(result(GateOutcome.PASSED, (0, 100)),))
EXCEEDED = result(GateOutcome.EXCEEDED, (50, 100))
BAD = GateEvidence(new=outcomes(100, _5xx=50), results=(EXCEEDED,))
NONE = GateEvidence()
DRY = replace(STEPS, gates=replace(GATES, dry_run=True))
HELD_BY_LITTLE = replace(STEPS, gates=replace(GATES, inconclusive="hold"))
LITTLE = "without 10 more requests on the new route by then"
BACK_BY_LITTLE = replace(STEPS, gates=replace(GATES, inconclusive="roll_back"))


def at(
    percent: float, word: DecidedBy = DecidedBy.RULES, why: str = "as configured"
) -> CutoverState:
    return CutoverState(percent, word, why, 0.0)


@pytest.mark.parametrize(
    ("cutover", "before", "evidence", "now", "after"),
    [
        pytest.param(CUTOVER, None, NONE, 5, (50, DecidedBy.RULES, 5), id="it begins"),
        pytest.param(STEPS, None, BAD, 5, (1, DecidedBy.RULES, 5), id="with the first step"),
        pytest.param(CUTOVER, at(50), GOOD, 5, (50, DecidedBy.RULES, 0), id="all is well"),
        pytest.param(
            CUTOVER, at(50), BAD, 5, (0, DecidedBy.ROLLED_BACK, 5), id="it is rolled back"
        ),
        pytest.param(
            CUTOVER, at(0, DecidedBy.ROLLED_BACK), GOOD, 5, (0, DecidedBy.ROLLED_BACK, 0), id="so"
        ),
        pytest.param(
            CUTOVER, at(70, DecidedBy.OPERATOR), BAD, 5, (70, DecidedBy.OPERATOR, 0), id="ordered"
        ),
        pytest.param(HOLDING, at(50), BAD, 5, (50, DecidedBy.HELD, 0), id="it is held"),
        pytest.param(
            HOLDING, at(50, DecidedBy.HELD), BAD, 5, (50, DecidedBy.HELD, 0), id="and stays held"
        ),
        pytest.param(
            HOLDING, at(50, DecidedBy.HELD), GOOD, 5, (50, DecidedBy.RULES, 0), id="let go"
        ),
        pytest.param(
            HOLDING, at(20, DecidedBy.HELD), BAD, 5, (20, DecidedBy.HELD, 0), id="it cannot rise"
        ),
        pytest.param(
            HOLDING, at(20, DecidedBy.HELD), GOOD, 5, (50, DecidedBy.RULES, 5), id="now it can"
        ),
        pytest.param(
            HOLDING, at(80, DecidedBy.HELD), BAD, 5, (50, DecidedBy.RULES, 5), id="it can fall"
        ),
        pytest.param(CUTOVER, at(0), BAD, 5, (0, DecidedBy.HELD, 0), id="nobody to take back"),
        pytest.param(
            CUTOVER, at(20), GOOD, 5, (50, DecidedBy.RULES, 5), id="the rules have changed"
        ),
        pytest.param(STEPS, at(1), GOOD, 59, (1, DecidedBy.RULES, 0), id="too early"),
        pytest.param(STEPS, at(1), NONE, 60, (1, DecidedBy.RULES, 0), id="too little seen"),
        pytest.param(STEPS, at(1), GOOD, 60, (25, DecidedBy.RULES, 60), id="a step"),
        pytest.param(STEPS, at(25), GOOD, 60, (100, DecidedBy.RULES, 60), id="the last step"),
        pytest.param(STEPS, at(100), GOOD, 60, (100, DecidedBy.RULES, 0), id="it has arrived"),
        pytest.param(BARE, at(1), NONE, 60, (25, DecidedBy.RULES, 60), id="no gates, no evidence"),
        pytest.param(DRY, at(1), BAD, 59, (1, DecidedBy.RULES, 0), id="a dry run has no effect"),
        pytest.param(DRY, at(1), BAD, 60, (25, DecidedBy.RULES, 60), id="and goes on"),
        pytest.param(
            HELD_BY_LITTLE, at(1), NONE, 59, (1, DecidedBy.RULES, 0), id="it is too early to judge"
        ),
        pytest.param(
            HELD_BY_LITTLE, at(1), NONE, 60, (1, DecidedBy.HELD, 0), id="held by too little"
        ),
        pytest.param(
            HELD_BY_LITTLE, at(1, DecidedBy.HELD), GOOD, 61, (25, DecidedBy.RULES, 61), id="enough"
        ),
        pytest.param(
            HELD_BY_LITTLE, at(100), NONE, 60, (100, DecidedBy.RULES, 0), id="nothing to decide"
        ),
        pytest.param(
            BACK_BY_LITTLE, at(1), NONE, 60, (0, DecidedBy.ROLLED_BACK, 60), id="back by too little"
        ),
        pytest.param(STEPS, at(0.5), GOOD, 5, (1, DecidedBy.RULES, 5), id="below the first step"),
    ],
)
def test_the_next_state_follows_from_state_evidence_and_time(
    cutover: VersionCutover,
    before: CutoverState | None,
    evidence: GateEvidence,
    now: float,
    after: tuple[float, DecidedBy, float],
) -> None:
    stands = advance(cutover, before, evidence, now)
    assert (stands.percent, stands.decided_by, stands.since) == after


@pytest.mark.parametrize("cutover", [CUTOVER, HOLDING])
def test_the_reason_for_a_rollback_or_hold_is_the_sentence_of_the_gate(
    cutover: VersionCutover,
) -> None:
    assert advance(cutover, at(50), BAD, 5).why.startswith("errors (5xx): 50 of 100 requests")


def test_a_rollback_keeps_the_results_of_its_gates() -> None:
    back = advance(CUTOVER, at(50), BAD, 5)
    assert [each.text for each in back.results if each.outcome == "exceeded"] == [back.why]
    assert advance(CUTOVER, back, NONE, 6) == back
    for other in (advance(HOLDING, at(50), BAD, 5), advance(CUTOVER, at(50), GOOD, 5)):
        assert other.results == ()


def test_the_reason_for_a_step_names_the_previous_step() -> None:
    """If the percentage is not a step, the reason is the configuration."""
    assert advance(STEPS, None, NONE, 5).why == "as configured"
    why = "the step after 1%: 100 requests on the new route, 0 failed"
    assert advance(STEPS, at(1), GOOD, 60).why == why
    assert advance(CUTOVER, at(80), GOOD, 5).why == "as configured"


def test_the_reason_for_an_inconclusive_step_names_the_missing_requests() -> None:
    why = "inconclusive: after 60 s, it still needed 10 more requests on the new route"
    for cutover in (HELD_BY_LITTLE, BACK_BY_LITTLE):
        assert advance(cutover, at(1), NONE, 60).why == why


@pytest.mark.parametrize("cutover", [STEPS, HELD_BY_LITTLE, BACK_BY_LITTLE])
def test_an_uncertain_step_waits_and_is_held_after_three_times_its_length(
    cutover: VersionCutover,
) -> None:
    """A healthy route may also be uncertain, so it is never rolled back for that."""
    for age in (60, 179):
        found = advance(cutover, at(1), DOUBT, age)
        assert (found.percent, found.decided_by) == (1, DecidedBy.RULES)
    held = advance(cutover, at(1), DOUBT, 180)
    assert (held.percent, held.decided_by) == (1, DecidedBy.HELD)
    assert held.why == (
        "inconclusive: after 180 s, it still needed more requests, since the result is uncertain:"
        " errors (5xx): 2 of 12 requests"
    )
    assert advance(cutover, held, GOOD, 200).percent == 25


@pytest.mark.parametrize(
    ("cutover", "standing", "evidence", "said"),
    [
        (CUTOVER, ordered(5, 0), GOOD, "stays until it is cleared"),
        (CUTOVER, at(0, DecidedBy.ROLLED_BACK), GOOD, "stays at 0% until it is cleared or set"),
        (HOLDING, at(50, DecidedBy.HELD), BAD, "is held as long as a gate is exceeded"),
        (
            replace(HELD_BY_LITTLE, every=10),
            at(1, DecidedBy.HELD),
            NONE,
            "is held, and goes to 25% after 10 more requests on the new route",
        ),
        (replace(HELD_BY_LITTLE, every=10), at(1, DecidedBy.HELD), GOOD, "goes to 25% now"),
        (HELD_BY_LITTLE, at(1), NONE, f"goes to 25% in 50 s at the earliest; {LITTLE}, it is held"),
        (
            BACK_BY_LITTLE,
            at(1),
            NONE,
            f"goes to 25% in 50 s at the earliest; {LITTLE}, it goes back to 0%",
        ),
        (HELD_BY_LITTLE, at(1), GOOD, "goes to 25% in 50 s at the earliest"),
        (STEPS, at(1), NONE, "goes to 25% in 50 s at the earliest"),
        (CUTOVER, at(50), GOOD, "has reached its last percentage"),
        (STEPS, at(100), GOOD, "has arrived"),
        (STEPS, at(1), GOOD, "goes to 25% in 50 s at the earliest"),
        (replace(STEPS, every=3600), at(1), GOOD, "goes to 25% in 60 min at the earliest"),
        (replace(STEPS, every=86_400), at(1), GOOD, "goes to 25% in 24 h at the earliest"),
        (
            replace(STEPS, every=10),
            at(1),
            GateEvidence(),
            "goes to 25% after 10 more requests on the new route",
        ),
        (replace(STEPS, every=10), at(1), GOOD, "goes to 25% now"),
        (replace(DRY, every=10), at(1), NONE, "goes to 25% now"),
    ],
)
def test_the_next_change_is_described(
    cutover: VersionCutover, standing: CutoverState, evidence: GateEvidence, said: str
) -> None:
    assert next_change(cutover, standing, evidence, 10) == said


@LAW
@given(
    st.sampled_from([CUTOVER, HOLDING, STEPS, BARE]),
    st.lists(st.tuples(st.sampled_from([GOOD, BAD, NONE]), st.floats(0, 100)), max_size=20),
)
def test_gates_never_move_more_clients_than_configured(
    cutover: VersionCutover, seen: list[tuple[GateEvidence, float]]
) -> None:
    standing: CutoverState | None = None
    now = 0.0
    for evidence, passed in seen:
        now += passed
        before, standing = standing, advance(cutover, standing, evidence, now)
        assert 0 <= standing.percent <= cutover.percent
        if before is not None and evidence is BAD and cutover.gates is not None:
            assert standing.percent <= before.percent
        assert advance(cutover, standing, NONE, now).percent == standing.percent


def test_the_revision_of_a_state_contains_only_its_percentage_and_origin() -> None:
    """The reason and the time may change without a new decision."""
    assert at(50).revision == at(50, why="it goes on")._replace(since=9.0).revision == "50-rules"
    assert at(2.5, DecidedBy.OPERATOR).revision == "2.5-operator"


@pytest.mark.parametrize(
    ("cutover", "standing", "evidence", "now", "more"),
    [
        (STEPS, at(1), NONE, 59, None),
        (STEPS, at(1), NONE, 60, "10 more requests on the new route"),
        (STEPS, at(1), GOOD, 60, None),
        (STEPS, at(100), NONE, 60, None),
        (BARE, at(1), NONE, 60, None),
        (DRY, at(1), NONE, 60, None),
    ],
)
def test_the_missing_requests_are_named_after_the_minimum_time_of_a_step(
    cutover: VersionCutover,
    standing: CutoverState,
    evidence: GateEvidence,
    now: float,
    more: str | None,
) -> None:
    assert missing_evidence(cutover, standing, evidence, now) == more
