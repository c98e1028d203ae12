"""The states of a client's connection: the complete table, and random sequences of events."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.http.connection_states import (
    BETWEEN,
    CLIENT_TRANSITIONS,
    ClientEvent,
    ClientState,
    IllegalTransitionError,
)

S, E = ClientState, ClientEvent
# The legal events in each state and the resulting states: the table, grouped by state.
LEGAL = {
    S.IDLE: {
        E.BYTES: S.HEAD,
        E.REQUEST: S.ASKED,
        E.REFUSE: S.ENDING,
        E.FINISH: S.ENDING,
        E.LOST: S.CLOSED,
    },
    S.HEAD: {
        E.BYTES: S.HEAD,
        E.REQUEST: S.ASKED,
        E.REFUSE: S.ENDING,
        E.FINISH: S.ENDING,
        E.LOST: S.CLOSED,
    },
    S.ASKED: {E.TAKE: S.ANSWERING, E.FINISH: S.LAST_ASKED, E.LOST: S.CLOSED},
    S.LAST_ASKED: {E.TAKE: S.LAST, E.FINISH: S.LAST_ASKED, E.LOST: S.CLOSED},
    S.ANSWERING: {
        E.SWITCH: S.TUNNEL,
        E.ANSWERED: S.IDLE,
        E.LAST_ANSWERED: S.ENDING,
        E.FINISH: S.LAST,
        E.LOST: S.CLOSED,
    },
    S.LAST: {
        E.SWITCH: S.TUNNEL,
        E.ANSWERED: S.ENDING,
        E.LAST_ANSWERED: S.ENDING,
        E.FINISH: S.LAST,
        E.LOST: S.CLOSED,
    },
    S.TUNNEL: {E.LAST_ANSWERED: S.ENDING, E.FINISH: S.TUNNEL, E.LOST: S.CLOSED},
    S.ENDING: {E.FINISH: S.ENDING, E.LOST: S.CLOSED},
    S.CLOSED: {E.FINISH: S.CLOSED},
}


def test_each_pair_of_state_and_event_is_legal_or_raises() -> None:
    legal = {(state, event): to for state, each in LEGAL.items() for event, to in each.items()}
    assert dict(CLIENT_TRANSITIONS) == legal
    for pair in {*product(S, E)} - legal.keys():
        with pytest.raises(IllegalTransitionError):
            CLIENT_TRANSITIONS[pair]


@given(st.lists(st.sampled_from(E)))
def test_any_sequence_of_events_answers_each_request_once_and_in_order(
    events: list[ClientEvent],
) -> None:
    """No request begins after the last one."""
    state, asked, taken, over, last = S.IDLE, 0, 0, 0, False
    for event in events:
        try:
            state = CLIENT_TRANSITIONS[state, event]
        except IllegalTransitionError:
            continue
        asked += event is E.REQUEST
        taken += event is E.TAKE
        over += event in (E.ANSWERED, E.LAST_ANSWERED)
        assert over <= taken <= asked <= over + 1
        assert not (last and event in (E.BYTES, E.REQUEST))
        last |= event in (E.FINISH, E.LAST_ANSWERED, E.REFUSE, E.SWITCH, E.LOST)
        assert not (last and state in BETWEEN)


@pytest.mark.parametrize("state", S, ids=lambda state: state.name)
def test_each_state_is_reachable_and_leads_to_closed(state: ClientState) -> None:
    assert state in _reached(S.IDLE)
    assert S.CLOSED in _reached(state)


def _reached(start: ClientState) -> set[ClientState]:
    found: set[ClientState] = {start}
    while fresh := {to for (at, _), to in CLIENT_TRANSITIONS.items() if at in found} - found:
        found |= fresh
    return found
