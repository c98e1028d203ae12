"""Changes of overrides with their audit entries, and overrides as JSON."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.overrides import NO_OVERRIDES, Overrides
from gateway.rollout.decisions import (
    ChangedMeanwhileError,
    ChangeRequest,
    Draft,
    overrides_document,
    overrides_of,
)
from tests.gateway.world import LAW

ANN = ChangeRequest("ann", "192.0.2.7", "a test")
KEY = ("person", "1")
KEYS = st.tuples(st.text(), st.text())
GONE = "the configuration has no such cutover"


@LAW
@given(st.frozensets(KEYS), st.dictionaries(KEYS, st.floats(0, 100)))
def test_overrides_are_equal_after_writing_and_reading_json(
    paused: frozenset[tuple[str, str]], percents: dict[tuple[str, str], float]
) -> None:
    overrides = Overrides(paused, percents)
    assert overrides_of({"overrides": overrides_document(overrides)}) == overrides


@pytest.mark.parametrize("document", [{"paused": "person"}, [], None])
def test_unreadable_overrides_are_reported(document: object) -> None:
    reported: list[str] = []
    assert overrides_of({"overrides": document}, reported.append) == NO_OVERRIDES
    assert len(reported) == (document is not None)


def test_each_change_is_recorded_in_the_audit_log() -> None:
    draft = Draft({}, 5.0)
    draft.pause(KEY, ANN, paused=True)
    draft.set_percent(KEY, 25.0, "an operator has set it", ANN, configured=5.0)
    assert draft.overrides == Overrides(frozenset({KEY}), {KEY: 25.0})
    draft.set_percent(KEY, 0.0, "errors: too many", configured=5.0)
    draft.set_percent(KEY, None, "it goes on", ANN, configured=5.0)
    draft.set_percent(KEY, None, GONE)
    draft.pause(KEY, ANN._replace(why=""), paused=False)
    assert draft.overrides == overrides_of(draft.documents) == NO_OVERRIDES
    assert draft.changed == {"overrides"}
    assert [entry[1:] for entry in draft.entries] == [
        ("ann", "192.0.2.7", "brownout pause", *KEY, "a test", "by the rules", "paused"),
        ("ann", "192.0.2.7", "cutover", *KEY, "a test", "5% by the rules", "25%"),
        ("gateway", "", "cutover", *KEY, "errors: too many", "25%", "0%"),
        ("ann", "192.0.2.7", "cutover", *KEY, "a test", "0%", "5% by the rules"),
        ("gateway", "", "cutover", *KEY, GONE, "by the rules", "by the rules"),
        ("ann", "192.0.2.7", "brownout resume", *KEY, "", "paused", "by the rules"),
    ]
    assert [event.name for event in draft.events] == [
        "brownout_paused",
        *["cutover_set"] * 4,
        "brownout_resumed",
    ]


@pytest.mark.parametrize(("seen", "refused"), [("", False), ("running", False), ("paused", True)])
def test_a_change_is_refused_if_the_user_saw_another_state(seen: str, *, refused: bool) -> None:
    draft = Draft({}, 5.0)
    request = ANN._replace(seen=seen)
    if refused:
        with pytest.raises(ChangedMeanwhileError, match="The brownouts are not paused now"):
            draft.pause(KEY, request, paused=True)
    else:
        draft.pause(KEY, request, paused=True)
    assert bool(draft) is not refused
