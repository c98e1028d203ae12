"""Steps: changes of one direction, put together so that a document is walked once.

Changes of the elements of one array become one step over it: each element is opened once, changed
by all of them, and closed before the next is looked at. So do changes of the members of one object
with free keys, and those inside of one object.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from gateway.core.conversion.document import (
    ConversionError,
    Document,
    JsonForm,
    JsonObject,
    reach,
    refuse,
)
from gateway.core.conversion.field_path import Inside, Keys, Members, Scope, keys_of

ConversionStep = Callable[[JsonObject, JsonForm], None]
"""Changes an open object in place; raises ConversionError."""
BodyStep = Callable[[Document, JsonForm], Document]
"""Returns what a whole body becomes; raises ConversionError."""
BODY: Keys = ("",)
"""The field of an object in which a whole body is held while a change of it is made."""


@dataclass(frozen=True, slots=True)
class ConversionTask:
    """One change in one direction, as it is declared.

    Attributes:
        scopes: lead to the objects that it changes.
        touches: the fields of such an object that it reads or writes.
        step: what it does to one.
        whole: whether it changes the whole body, held in the field BODY, instead of objects.
    """

    scopes: tuple[Scope, ...]
    touches: tuple[Keys, ...]
    step: ConversionStep
    whole: bool = False


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
                holder[key] = _elements(holder[key], self.depth, self.steps, form)
            except ConversionError as error:
                raise error.under(*self.keys) from None


@dataclass(frozen=True, slots=True)
class MembersStep:
    """Changes every member of an object with free keys; one that is absent or null has none.

    Attributes:
        keys: what leads to the object.
        depth: how many arrays lie in each member before the objects come.
        steps: what is done to each object.
    """

    keys: Keys
    depth: int
    steps: tuple[ConversionStep, ...]

    def __call__(self, fields: JsonObject, form: JsonForm) -> None:
        """Change the members of the object that is in the object."""
        holder = reach(fields, (*self.keys, ""), form)
        if holder is None:
            return
        key = ""
        try:
            for key, value in holder.items():
                if self.depth:
                    holder[key] = _elements(value, self.depth - 1, self.steps, form)
                else:
                    holder[key] = change(value, self.steps, form)
        except ConversionError as error:
            raise error.under(*self.keys, key) from None


@dataclass(frozen=True, slots=True)
class InsideStep:
    """Changes one object; where it is absent or null, nothing.

    Attributes:
        keys: what leads to the object.
        steps: what is done to it.
    """

    keys: Keys
    steps: tuple[ConversionStep, ...]

    def __call__(self, fields: JsonObject, form: JsonForm) -> None:
        """Change the object that is in the object."""
        holder = reach(fields, (*self.keys, ""), form)
        if holder is None:
            return
        try:
            for step in self.steps:
                step(holder, form)
        except ConversionError as error:
            raise error.under(*self.keys) from None


def _elements(
    value: Document, depth: int, steps: tuple[ConversionStep, ...], form: JsonForm
) -> Document:
    array = form.open(value)
    if array is None:
        return None
    if not isinstance(array, list):
        refuse("an array", array)
    index = 0
    try:
        if depth:
            for index, element in enumerate(array):
                array[index] = _elements(element, depth - 1, steps, form)
        else:
            for index, element in enumerate(array):
                array[index] = change(element, steps, form)
    except ConversionError as error:
        raise error.under(index) from None
    return array


@dataclass(frozen=True, slots=True)
class EachObject:
    """Changes a body that is an object, or each object of an array."""

    steps: tuple[ConversionStep, ...]

    def __call__(self, document: Document, form: JsonForm) -> Document:
        """Return the body, changed; null in an array holds no field, and stays."""
        value, steps = form.open(document), self.steps
        if isinstance(value, dict):
            for step in steps:
                step(value, form)
            return form.close(value)
        if isinstance(value, list):
            index = 0
            try:
                for index, element in enumerate(value):
                    fields = form.open(element)
                    if isinstance(fields, dict):
                        for step in steps:
                            step(fields, form)
                        value[index] = form.close(fields)
                    elif fields is not None:
                        value[index] = self(element, form)
            except ConversionError as error:
                raise error.under(index) from None
            return value
        return refuse("an object", value)


@dataclass(frozen=True, slots=True)
class WholeBody:
    """Changes a body as it is, whatever it is."""

    step: ConversionStep

    def __call__(self, document: Document, form: JsonForm) -> Document:
        """Return what the body becomes."""
        held: JsonObject = {BODY[0]: document}
        try:
            self.step(held, form)
        except ConversionError as error:
            # The field that held it is none of its places.
            raise ConversionError(error.reason, error.pointer[1:], error.cause) from None
        return held[BODY[0]]


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


def body_steps(tasks: Iterable[ConversionTask]) -> tuple[BodyStep, ...]:
    """Return the steps that do all tasks to a body, in their order as far as it matters."""
    steps: list[BodyStep] = []
    for whole, some in groupby(tasks, lambda task: task.whole):
        if whole:
            steps += [WholeBody(task.step) for task in some]
        else:
            steps.append(EachObject(fuse(some)))
    return tuple(steps)


def fuse(tasks: Iterable[ConversionTask]) -> tuple[ConversionStep, ...]:
    """Return the steps that do all tasks in their order, as far as the order matters."""
    groups: list[tuple[tuple[Scope, ...], tuple[Keys, ...], list[ConversionTask]]] = []
    for task in tasks:
        array = _array(task.scopes)
        touches = (keys_of(array[0]),) if array else task.touches
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


def _array(scopes: tuple[Scope, ...]) -> tuple[Scope, ...]:
    """Return the first of the scopes, with the arrays that are its elements, and theirs."""
    end = 1
    while end < len(scopes) and scopes[end] == ():
        end += 1
    return scopes[:end]


def _step(array: tuple[Scope, ...], tasks: Sequence[ConversionTask]) -> ConversionStep:
    if not array:
        return tasks[0].step
    first = array[0]
    inner = fuse(
        ConversionTask(task.scopes[len(array) :], task.touches, task.step) for task in tasks
    )
    if isinstance(first, Members):
        return MembersStep(first.keys, len(array) - 1, inner)
    if isinstance(first, Inside):
        return InsideStep(first.keys, inner)
    return ArrayStep(first, len(array) - 1, inner)


def _apart(some: Iterable[Keys], others: Iterable[Keys]) -> bool:
    return not any(one[: len(other)] == other[: len(one)] for one in some for other in others)
