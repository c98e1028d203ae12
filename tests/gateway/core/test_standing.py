"""How a cutover stands: a table of what happens to it, and what is said of it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.cutover import Cutover
from gateway.core.gates import Evidence, Gates, Outcomes, Then
from gateway.core.standing import Standing, Word, advance, ordered, outlook
from tests.gateway.core.world import LAW

GATES = Gates(errors=0.01, minimum=10)
CUTOVER = Cutover(("person", "1"), "2", 50.0, gates=GATES)
HOLDING = replace(CUTOVER, gates=replace(GATES, then=Then.HOLD))
STEPS = replace(CUTOVER, percent=100.0, steps=(1.0, 25.0, 100.0), every=60.0)
BARE = replace(STEPS, gates=None)
GOOD = Evidence(new=Outcomes(100, 0, 1))
BAD = Evidence(new=Outcomes(100, 50, 1))
NONE = Evidence()


def at(percent: float, word: Word = Word.RULES, why: str = "the rules say so") -> Standing:
    """Return how a cutover stands since the beginning of time."""
    return Standing(percent, word, why, 0.0)


@pytest.mark.parametrize(
    ("cutover", "before", "evidence", "now", "after"),
    [
        pytest.param(CUTOVER, None, NONE, 5, (50, Word.RULES, 5), id="it begins"),
        pytest.param(STEPS, None, BAD, 5, (1, Word.RULES, 5), id="with the first step"),
        pytest.param(CUTOVER, at(50), GOOD, 5, (50, Word.RULES, 0), id="all is well"),
        pytest.param(CUTOVER, at(50), BAD, 5, (0, Word.ROLLED_BACK, 5), id="it is rolled back"),
        pytest.param(CUTOVER, at(0, Word.ROLLED_BACK), GOOD, 5, (0, Word.ROLLED_BACK, 0), id="so"),
        pytest.param(CUTOVER, at(70, Word.OPERATOR), BAD, 5, (70, Word.OPERATOR, 0), id="ordered"),
        pytest.param(HOLDING, at(50), BAD, 5, (50, Word.HELD, 0), id="it is held"),
        pytest.param(HOLDING, at(50, Word.HELD), BAD, 5, (50, Word.HELD, 0), id="and stays held"),
        pytest.param(HOLDING, at(50, Word.HELD), GOOD, 5, (50, Word.RULES, 0), id="let go"),
        pytest.param(HOLDING, at(20, Word.HELD), BAD, 5, (20, Word.HELD, 0), id="it cannot rise"),
        pytest.param(HOLDING, at(20, Word.HELD), GOOD, 5, (50, Word.RULES, 5), id="now it can"),
        pytest.param(HOLDING, at(80, Word.HELD), BAD, 5, (50, Word.RULES, 5), id="it can fall"),
        pytest.param(CUTOVER, at(0), BAD, 5, (0, Word.HELD, 0), id="nobody to take back"),
        pytest.param(CUTOVER, at(20), GOOD, 5, (50, Word.RULES, 5), id="the rules have changed"),
        pytest.param(STEPS, at(1), GOOD, 59, (1, Word.RULES, 0), id="too early"),
        pytest.param(STEPS, at(1), NONE, 60, (1, Word.RULES, 0), id="too little seen"),
        pytest.param(STEPS, at(1), GOOD, 60, (25, Word.RULES, 60), id="a step"),
        pytest.param(STEPS, at(25), GOOD, 60, (100, Word.RULES, 60), id="the last step"),
        pytest.param(STEPS, at(100), GOOD, 60, (100, Word.RULES, 0), id="it has arrived"),
        pytest.param(BARE, at(1), NONE, 60, (25, Word.RULES, 60), id="no gates, no evidence"),
        pytest.param(STEPS, at(0.5), GOOD, 5, (1, Word.RULES, 5), id="below the first step"),
    ],
)
def test_advance(
    cutover: Cutover,
    before: Standing | None,
    evidence: Evidence,
    now: float,
    after: tuple[float, Word, float],
) -> None:
    stands = advance(cutover, before, evidence, now)
    assert (stands.percent, stands.word, stands.since) == after


@pytest.mark.parametrize("cutover", [CUTOVER, HOLDING])
def test_it_says_why(cutover: Cutover) -> None:
    assert advance(cutover, at(50), BAD, 5).why.startswith("errors: 50 of 100 requests failed")


@pytest.mark.parametrize(
    ("cutover", "standing", "evidence", "said"),
    [
        (CUTOVER, ordered(5, 0), GOOD, "stays until it is cleared"),
        (CUTOVER, at(0, Word.ROLLED_BACK), GOOD, "stays at 0% until it is cleared or set"),
        (CUTOVER, at(50, Word.HELD), BAD, "is held until nothing speaks against it"),
        (CUTOVER, at(50), GOOD, "has arrived"),
        (STEPS, at(1), GOOD, "goes to 25% in 50 s at the earliest"),
        (replace(STEPS, every=10), at(1), Evidence(), "goes to 25% after 10 more requests"),
    ],
)
def test_outlook(cutover: Cutover, standing: Standing, evidence: Evidence, said: str) -> None:
    assert outlook(cutover, standing, evidence, 10) == said


@LAW
@given(
    st.sampled_from([CUTOVER, HOLDING, STEPS, BARE]),
    st.lists(st.tuples(st.sampled_from([GOOD, BAD, NONE]), st.floats(0, 100)), max_size=20),
)
def test_it_never_goes_beyond_the_rules(
    cutover: Cutover, seen: list[tuple[Evidence, float]]
) -> None:
    """Left to itself, it climbs step by step, and what speaks against it never moves more."""
    standing: Standing | None = None
    now = 0.0
    for evidence, passed in seen:
        now += passed
        before, standing = standing, advance(cutover, standing, evidence, now)
        assert 0 <= standing.percent <= cutover.percent
        if before is not None and evidence is BAD and cutover.gates is not None:
            assert standing.percent <= before.percent
        assert advance(cutover, standing, NONE, now).percent == standing.percent
