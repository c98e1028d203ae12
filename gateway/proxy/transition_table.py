"""Transition tables of state machines: the next state for each state and event."""

from enum import IntEnum
from typing import NoReturn, TypeVar

S = TypeVar("S", bound=IntEnum)
E = TypeVar("E", bound=IntEnum)


class IllegalTransitionError(RuntimeError):
    """An event occurred in a state that has no transition for it."""


class TransitionTable(dict[tuple[S, E], S]):
    """The next state by state and event; a missing pair raises IllegalTransitionError.

    `table[state, event]` is one look-up in C: states and events are IntEnum, whose hash and
    equality are those of int, where plain Enum hashes in Python.
    """

    def __missing__(self, key: tuple[S, E]) -> NoReturn:
        """Raise IllegalTransitionError with the names of the state and the event."""
        state, event = key
        raise IllegalTransitionError(f"{event.name} cannot happen in {state.name}")
