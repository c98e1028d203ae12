"""Transition tables of state machines: the next state for each state and event."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Generic, NoReturn, TypeVar

S = TypeVar("S", bound=IntEnum)
E = TypeVar("E", bound=IntEnum)


class IllegalTransitionError(RuntimeError):
    """An event occurred in a state that has no transition for it."""


class Transition(dict[S, S], Generic[S, E]):
    """The next state by state, after one event; a missing state raises IllegalTransitionError.

    It is one column of a TransitionTable. A look-up in it costs a third of one in the table, since
    no pair is made and no member of an Enum is looked up. Hot code writes `column.get(state) or
    column[state]`: the square brackets of a subclass of dict take a call of their own.

    Args:
        event: the event.
        states: the next state for each state in which the event is legal.
    """

    def __init__(self, event: E, states: Mapping[S, S]) -> None:
        super().__init__(states)
        self._event = event

    def __missing__(self, state: S) -> NoReturn:
        """Raise IllegalTransitionError with the names of the state and the event."""
        raise IllegalTransitionError(f"{self._event.name} cannot happen in {state.name}")


class TransitionTable(dict[tuple[S, E], S]):
    """The next state by state and event; a missing pair raises IllegalTransitionError.

    States and events are IntEnum, whose hash and equality are those of int, where plain Enum
    hashes in Python.
    """

    def __missing__(self, key: tuple[S, E]) -> NoReturn:
        """Raise IllegalTransitionError with the names of the state and the event."""
        state, event = key
        raise IllegalTransitionError(f"{event.name} cannot happen in {state.name}")

    def after(self, event: E) -> Transition[S, E]:
        """Return the column of an event: the next state by state."""
        states = {state: to for (state, each), to in self.items() if each is event}
        return Transition(event, states)
