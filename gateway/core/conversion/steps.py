"""Steps: changes of one direction, put together so that a document is walked once.

Changes of the elements of one array become one step over it: each element is opened once, changed
by all of them, and closed before the next is looked at.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gateway.core.conversion.document import (
    ConversionError,
    Document,
    JsonForm,
    JsonObject,
    reach,
    refuse,
)
from gateway.core.conversion.field_path import Keys

ConversionStep = Callable[[JsonObject, JsonForm], None]
"""Changes an open object in place; raises ConversionError."""


@dataclass(frozen=True, slots=True)
class ConversionTask:
    """One change in one direction, as it is declared.

    Attributes:
        scopes: the arrays that lead to the objects which it changes.
        touches: the fields of such an object that it reads or writes.
        step: what it does to one.
    """

    scopes: tuple[Keys, ...]
    touches: tuple[Keys, ...]
    step: ConversionStep


@dataclass(frozen=True, slots=True)
class ArrayStep:
    """Changes every element of an array; one that is absent or null has none.

    An element that is null holds no field to change, and stays null.

    Attributes:
        keys: what leads to the array.
        depth: how many more arrays lie in one another before the objects come.
        steps: what is done to each object.
    """

    keys: Keys
    depth: int
    steps: tuple[ConversionStep, ...]

    def __call__(self, fields: JsonObject, form: JsonForm) -> None:
        """Change the array that is in the object."""
        holder = reach(fields, self.keys, form)
        key = self.keys[-1]
        if holder is not None and key in holder:
            try:
                holder[key] = self._changed(holder[key], self.depth, form)
            except ConversionError as error:
                raise error.under(*self.keys) from None

    def _changed(self, value: Document, depth: int, form: JsonForm) -> Document:
        array = form.open(value)
        if array is None:
            return None
        if not isinstance(array, list):
            refuse("an array", array)
        index = 0
        try:
            if depth:
                for index, element in enumerate(array):
                    array[index] = self._changed(element, depth - 1, form)
            else:
                for index, element in enumerate(array):
                    array[index] = change(element, self.steps, form)
        except ConversionError as error:
            raise error.under(index) from None
        return array


def change(value: Document, steps: tuple[ConversionStep, ...], form: JsonForm) -> Document:
    """Return an object after these steps, closed; null, which holds no field, stays null."""
    fields = form.open(value)
    if fields is None:
        return None
    if not isinstance(fields, dict):
        refuse("an object", fields)
    for step in steps:
        step(fields, form)
    return form.close(fields)


def fuse(tasks: Iterable[ConversionTask]) -> tuple[ConversionStep, ...]:
    """Return the steps that do all tasks in their order, as far as the order matters."""
    groups: list[tuple[tuple[Keys, ...], tuple[Keys, ...], list[ConversionTask]]] = []
    for task in tasks:
        array = _array(task.scopes)
        touches = array[:1] or task.touches
        for known, touched, members in reversed(groups):
            if array and known == array:
                members.append(task)
                break
            if not _apart(touches, touched):
                groups.append((array, touches, [task]))
                break
        else:
            groups.append((array, touches, [task]))
    return tuple(_step(array, members) for array, _, members in groups)


def _array(scopes: tuple[Keys, ...]) -> tuple[Keys, ...]:
    """Return the first of the arrays, with those that are its elements, and theirs."""
    end = 1
    while end < len(scopes) and not scopes[end]:
        end += 1
    return scopes[:end]


def _step(array: tuple[Keys, ...], tasks: Sequence[ConversionTask]) -> ConversionStep:
    if not array:
        return tasks[0].step
    inner = (ConversionTask(task.scopes[len(array) :], task.touches, task.step) for task in tasks)
    return ArrayStep(array[0], len(array) - 1, fuse(inner))


def _apart(some: Iterable[Keys], others: Iterable[Keys]) -> bool:
    return not any(one[: len(other)] == other[: len(one)] for one in some for other in others)
