"""Transition tables: lookups of legal and illegal pairs."""

from enum import IntEnum, auto

import pytest

from gateway.http.connection_states import IllegalTransitionError, TransitionTable


class Door(IntEnum):
    OPEN = auto()
    SHUT = auto()


class Hand(IntEnum):
    PUSH = auto()
    PULL = auto()


TABLE = TransitionTable({(Door.OPEN, Hand.PUSH): Door.SHUT, (Door.SHUT, Hand.PULL): Door.OPEN})


def test_a_legal_pair_returns_the_next_state() -> None:
    assert TABLE[Door.OPEN, Hand.PUSH] is Door.SHUT


def test_an_illegal_pair_raises_and_is_not_added_to_the_table() -> None:
    for _ in range(2):
        with pytest.raises(IllegalTransitionError, match=r"^PULL cannot happen in OPEN$"):
            TABLE[Door.OPEN, Hand.PULL]
    assert len(TABLE) == 2


def test_a_column_contains_the_rows_of_one_event() -> None:
    push = TABLE.after(Hand.PUSH)
    assert push == {Door.OPEN: Door.SHUT}
    with pytest.raises(IllegalTransitionError, match=r"^PUSH cannot happen in SHUT$"):
        push[Door.SHUT]
    assert len(push) == 1
