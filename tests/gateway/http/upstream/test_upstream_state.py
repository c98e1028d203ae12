"""The states of a connection to a service: the complete table, and random sequences of events."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.http.connection_states import (
    AT_END,
    FREE,
    OVER,
    UPSTREAM_TRANSITIONS,
    ConnectionEnd,
    IllegalTransitionError,
    UpstreamEvent,
    UpstreamState,
)

S, E = UpstreamState, UpstreamEvent
FINAL = {E.FINAL_HEAD, E.FINAL_LAST_HEAD, E.FINAL_ENDLESS_HEAD}


@dataclass
class Flags:
    """A model of the connection as independent flags that events change."""

    used: bool = False
    asked: bool = False
    sent: bool = False
    begun: bool = False
    head: bool = False
    keep: bool = False
    endless: bool = False
    switched: bool = False
    complete: bool = False
    lost: bool = False

    def allow(self, event: UpstreamEvent) -> bool:
        if self.lost:
            return False
        reading = self.begun and not (self.head or self.switched)
        body = self.head and not self.complete
        if event in (E.SEND_ALL, E.SEND_HEAD):
            return not self.asked
        if event is E.SENT:  # some states do not show whether all was sent
            hidden = body and not self.keep
            return self.asked and not self.complete and (not self.sent or hidden)
        if event is E.BEGIN:
            return self.asked and not (self.head or self.switched)
        if event is E.SWITCH:
            return reading and self.sent
        if event in FINAL:
            return reading
        if event is E.PIECE:
            return body
        if event is E.CLOSING:  # trailer fields follow the last chunk
            return body and not self.endless
        if event is E.END:
            return self.begun
        if event is E.RELEASE:
            return self.complete and self.keep and self.sent
        return True

    def take(self, event: UpstreamEvent) -> None:
        if event in (E.SEND_ALL, E.SEND_HEAD):
            self.asked, self.sent = True, event is E.SEND_ALL
        elif event is E.SENT:
            self.sent = True
        elif event is E.BEGIN:
            self.begun = True
        elif event in FINAL:
            self.head, self.keep = True, event is E.FINAL_HEAD
            self.endless = event is E.FINAL_ENDLESS_HEAD
        elif event is E.SWITCH:
            self.switched = True
        elif event is E.CLOSING:
            self.keep = False
        elif event is E.END and self.head and not self.complete:
            self.complete, self.keep = True, self.keep and self.sent
        elif event is E.RELEASE:
            self.__init__(used=True)  # type: ignore[misc]  # reset all flags
        elif event is E.LOST:
            self.lost = True

    @property
    def loss(self) -> ConnectionEnd:
        if not self.asked or self.complete:
            return ConnectionEnd.NOTHING
        if self.switched or self.endless:
            return ConnectionEnd.END
        if self.begun:
            return ConnectionEnd.BROKEN
        return ConnectionEnd.STALE if self.used else ConnectionEnd.UNREACHABLE


@pytest.mark.parametrize("state", S, ids=lambda state: state.name)
def test_each_event_in_a_state_agrees_with_the_model(state: UpstreamState) -> None:
    """The state is reached on the shortest path."""
    at, flags = S.FRESH, Flags()
    for each in _paths()[state]:
        at = UPSTREAM_TRANSITIONS[at, each]
        flags.take(each)
    assert at is state
    legal = {event for event in E if (state, event) in UPSTREAM_TRANSITIONS}
    assert legal == {event for event in E if flags.allow(event)}
    for event in {*E} - legal:
        with pytest.raises(IllegalTransitionError):
            UPSTREAM_TRANSITIONS[state, event]


@given(st.lists(st.sampled_from(E), max_size=60))
def test_any_sequence_of_events_agrees_with_the_model(events: list[UpstreamEvent]) -> None:
    state, flags = S.FRESH, Flags()
    for event in events:
        if not flags.allow(event):
            with pytest.raises(IllegalTransitionError):
                UPSTREAM_TRANSITIONS[state, event]
            continue
        state = UPSTREAM_TRANSITIONS[state, event]
        flags.take(event)
        assert (state in FREE) == (not flags.asked and not flags.lost)
        assert (state in OVER) == (flags.complete and not flags.lost)
        assert (state is S.COMPLETE) == (flags.complete and flags.keep and not flags.lost)
        assert (state is S.SWITCHED) == (flags.switched and not flags.lost)
        assert (state is S.CLOSED) == flags.lost
        if not flags.lost:
            assert AT_END[state] is flags.loss


@pytest.mark.parametrize("state", S, ids=lambda state: state.name)
def test_each_open_state_defines_what_the_end_of_the_connection_means(state: UpstreamState) -> None:
    assert (state in AT_END) == (state is not S.CLOSED)
    assert S.CLOSED in {to for (at, _), to in UPSTREAM_TRANSITIONS.items() if at is state} | {state}


def _paths() -> dict[UpstreamState, tuple[UpstreamEvent, ...]]:
    paths: dict[UpstreamState, tuple[UpstreamEvent, ...]] = {S.FRESH: ()}
    while fresh := {
        to: (*paths[at], event)
        for (at, event), to in UPSTREAM_TRANSITIONS.items()
        if at in paths and to not in paths
    }:
        paths |= fresh
    return paths
