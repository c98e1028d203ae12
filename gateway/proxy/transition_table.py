"""Transition tables: from a state and an event to the next state, as data."""

from enum import IntEnum
from typing import NoReturn, TypeVar

S = TypeVar("S", bound=IntEnum)
E = TypeVar("E", bound=IntEnum)


class IllegalTransitionError(RuntimeError):
    """An event in a state in which it cannot happen."""


class TransitionTable(dict[tuple[S, E], S]):
    """The next state by state and event; what is not in it raises IllegalTransitionError.

    `table[state, event]` is one look-up in C: states and events are IntEnum, whose hash and
    equality are those of int, where plain Enum hashes in Python.
    """

    def __missing__(self, key: tuple[S, E]) -> NoReturn:
        """Raise, with the state and the event by name."""
        state, event = key
        raise IllegalTransitionError(f"{event.name} cannot happen in {state.name}")
