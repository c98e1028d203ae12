"""Transition tables: what is in them, and what is not."""

from enum import IntEnum, auto

import pytest

from gateway.http.connection_states import IllegalTransitionError, TransitionTable


class Door(IntEnum):
    """A state."""

    OPEN = auto()
    SHUT = auto()


class Hand(IntEnum):
    """An event."""

    PUSH = auto()
    PULL = auto()


TABLE = TransitionTable({(Door.OPEN, Hand.PUSH): Door.SHUT, (Door.SHUT, Hand.PULL): Door.OPEN})


def test_a_row() -> None:
    assert TABLE[Door.OPEN, Hand.PUSH] is Door.SHUT


def test_what_is_in_no_row_raises_and_stays_out() -> None:
    for _ in range(2):
        with pytest.raises(IllegalTransitionError, match=r"^PULL cannot happen in OPEN$"):
            TABLE[Door.OPEN, Hand.PULL]
    assert len(TABLE) == 2


def test_a_column_is_the_table_for_one_event() -> None:
    push = TABLE.after(Hand.PUSH)
    assert push == {Door.OPEN: Door.SHUT}
    with pytest.raises(IllegalTransitionError, match=r"^PUSH cannot happen in SHUT$"):
        push[Door.SHUT]
    assert len(push) == 1
