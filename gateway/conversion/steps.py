"""Steps: the changes of one direction, fused so that a document is traversed once.

Changes of the elements of one array are fused into one step: it opens each element once, applies
all changes to it, and closes it before the next element. Changes of the members of one object with
free keys are fused in the same way, and so are changes inside one object.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, takewhile
from typing import Generic, NamedTuple, Protocol, TypeVar

from gateway.conversion.conversion_error import (
    Beside,
    ConversionError,
    ErrorPlace,
    Origin,
    inside,
    same_place,
)
from gateway.conversion.document import (
    Document,
    JsonForm,
    JsonObject,
    change_elements,
    reach,
    refuse,
)
from gateway.conversion.field_path import Inside, Keys, Members, Scope, keys_of

T = TypeVar("T")
ConversionStep = Callable[[JsonObject, JsonForm], None]
"""A function that changes an open object in place; it may raise ConversionError."""
BodyConverting = Callable[[Document, JsonForm], Document]
"""A function that returns the changed form of a whole body; it may raise ConversionError."""
BODY: Keys = ("",)
"""The keys of the field that holds a whole body, in an object made for changes of that body."""


class ConversionTask(NamedTuple):
    """One declared change in one direction.

    Attributes:
        scopes: The scopes that lead to the objects to change.
        whole: Whether the change applies to the whole body, held in the field BODY, instead of to
            objects in it.
        origin: Returns where a place of such an object was before the change.
        keeps: Whether what is neither an object nor an array, where there is to be one, stays.
    """

    scopes: tuple[Scope, ...]
    touches: tuple[Keys, ...]
    step: ConversionStep
    whole: bool = False
    origin: Origin = same_place
    keeps: bool = False


@dataclass(frozen=True, slots=True)
class Steps(Generic[T]):
    """Steps that are applied one after the other.

    Attributes:
        keeps: Whether what is neither an object nor an array, where there is to be one, stays.
    """

    calls: tuple[T, ...] = ()
    origins: tuple[Origin, ...] = ()
    keeps: bool = False

    def origin(self, place: ErrorPlace) -> ErrorPlace:
        for origin in reversed(self.origins):
            place = origin(place)
        return place

    def refused(self, error: ConversionError, step: T) -> ConversionError:
        """Return the error of a step with its place as it was before the first step."""
        index = next(index for index, each in enumerate(self.calls) if each is step)
        return error.moved(Steps((), self.origins[:index]).origin)


@dataclass(frozen=True, slots=True)
class ArrayStep:
    """A step that changes every element of an array.

    An array that is absent or null has no elements. An element that is null has no fields to
    change, and stays null.

    Attributes:
        depth: The number of further nested arrays around the objects.
    """

    keys: Keys
    depth: int
    steps: Steps[ConversionStep]

    def origin(self, place: ErrorPlace) -> ErrorPlace:
        return inside((self.keys, *((),) * self.depth), place, self.steps.origin)

    def __call__(self, fields: JsonObject, form: JsonForm) -> None:
        keeps, key = self.steps.keeps, self.keys[-1]
        holder = reach(fields, self.keys, form, keeps=keeps)
        if holder is not None and key in holder:
            try:
                each = partial(change_object, self.steps, form)
                holder[key] = change_elements(holder[key], self.depth, form, each, keeps=keeps)
            except ConversionError as error:
                raise error.under(*self.keys) from None


@dataclass(frozen=True, slots=True)
class MembersStep:
    """A step that changes every member of an object with free keys.

    An object that is absent or null has no members.

    Attributes:
        depth: The number of nested arrays around the objects in each member.
    """

    keys: Keys
    depth: int
    steps: Steps[ConversionStep]

    def origin(self, place: ErrorPlace) -> ErrorPlace:
        return inside((Members(self.keys), *((),) * self.depth), place, self.steps.origin)

    def __call__(self, fields: JsonObject, form: JsonForm) -> None:
        keeps = self.steps.keeps
        holder = reach(fields, (*self.keys, ""), form, keeps=keeps)
        if holder is None:
            return
        each = partial(change_object, self.steps, form)
        key = ""
        try:
            for key, value in holder.items():
                if self.depth:
                    holder[key] = change_elements(value, self.depth - 1, form, each, keeps=keeps)
                else:
                    holder[key] = each(value)
        except ConversionError as error:
            raise error.under(*self.keys, key) from None


@dataclass(frozen=True, slots=True)
class InsideStep:
    """A step that changes one object, or nothing where the object is absent or null."""

    keys: Keys
    steps: Steps[ConversionStep]

    def origin(self, place: ErrorPlace) -> ErrorPlace:
        return inside((Inside(self.keys),), place, self.steps.origin)

    def __call__(self, fields: JsonObject, form: JsonForm) -> None:
        holder = reach(fields, (*self.keys, ""), form, keeps=self.steps.keeps)
        if holder is None:
            return
        try:
            for step in self.steps.calls:
                step(holder, form)
        except ConversionError as error:
            raise self.steps.refused(error, step).under(*self.keys) from None


@dataclass(frozen=True, slots=True)
class EachObject:
    """A step that changes a body that is an object, or each object of a body that is an array.

    Any other body, and any other element, has no fields that a change could name, and passes.
    """

    steps: Steps[ConversionStep]

    def origin(self, place: ErrorPlace) -> ErrorPlace:
        tokens = () if isinstance(place, Beside) else place
        arrays = [*takewhile(lambda token: isinstance(token, int), tokens)]
        return inside(((),) * len(arrays), place, self.steps.origin)

    def convert(self, document: Document, form: JsonForm) -> Document:
        value, steps = form.open(document), self.steps.calls
        if isinstance(value, dict):
            try:
                for step in steps:
                    step(value, form)
            except ConversionError as error:
                raise self.steps.refused(error, step) from None
            return value
        if isinstance(value, list):
            index = 0
            try:
                for index, element in enumerate(value):
                    fields = form.open(element)
                    if isinstance(fields, dict):
                        try:
                            for step in steps:
                                step(fields, form)
                        except ConversionError as error:
                            raise self.steps.refused(error, step) from None
                        value[index] = form.close(fields)
                    elif isinstance(fields, list):
                        value[index] = self.convert(element, form)
            except ConversionError as error:
                raise error.under(index) from None
            return value
        return document


@dataclass(frozen=True, slots=True)
class WholeBody:
    task: ConversionTask

    def origin(self, place: ErrorPlace) -> ErrorPlace:
        held = place if isinstance(place, Beside) else (*BODY, *place)
        return _in_body(self.task.origin(held))

    def convert(self, document: Document, form: JsonForm) -> Document:
        held: JsonObject = {BODY[0]: document}
        try:
            self.task.step(held, form)
        except ConversionError as error:
            raise error.moved(_in_body) from None
        return held[BODY[0]]


def _in_body(place: ErrorPlace) -> ErrorPlace:
    # The field that holds the body is not part of a place in the body.
    return place if isinstance(place, Beside) else place[1:]


def change_object(steps: Steps[ConversionStep], form: JsonForm, value: Document) -> Document:
    """Return an object changed by steps, and closed; null has no fields, and stays null."""
    fields = form.open(value)
    if fields is None:
        return None
    if not isinstance(fields, dict):
        return value if steps.keeps else refuse("an object", fields)
    try:
        for step in steps.calls:
            step(fields, form)
    except ConversionError as error:
        raise steps.refused(error, step) from None
    return form.close(fields)


class BodyStep(Protocol):
    def convert(self, document: Document, form: JsonForm) -> Document: ...

    def origin(self, place: ErrorPlace) -> ErrorPlace: ...


def body_steps(tasks: Iterable[ConversionTask]) -> list[BodyStep]:
    """Return the steps that apply all tasks to a body, in their order where the order matters."""
    steps: list[BodyStep] = []
    for whole, some in groupby(tasks, lambda task: task.whole):
        if whole:
            steps += map(WholeBody, some)
        else:
            steps.append(EachObject(fuse(some)))
    return steps


def fuse(tasks: Iterable[ConversionTask]) -> Steps[ConversionStep]:
    """Return the fused steps that apply all tasks, in their order where the order matters."""
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
    made = [_step(array, members) for array, _, members in groups]
    # What one change refuses is refused, whatever the changes that are fused with it would keep.
    keeps = all(task.keeps for _, _, members in groups for task in members)
    return Steps(tuple(step for step, _ in made), tuple(origin for _, origin in made), keeps)


def _array(scopes: tuple[Scope, ...]) -> tuple[Scope, ...]:
    """Return the first scope, with the scopes after it that are arrays nested directly in it."""
    end = 1
    while end < len(scopes) and scopes[end] == ():
        end += 1
    return scopes[:end]


def _step(
    array: tuple[Scope, ...], tasks: Sequence[ConversionTask]
) -> tuple[ConversionStep, Origin]:
    if not array:
        return tasks[0].step, tasks[0].origin
    first = array[0]
    inner = fuse(task._replace(scopes=task.scopes[len(array) :]) for task in tasks)
    step: MembersStep | InsideStep | ArrayStep
    if isinstance(first, Members):
        step = MembersStep(first.keys, len(array) - 1, inner)
    elif isinstance(first, Inside):
        step = InsideStep(first.keys, inner)
    else:
        step = ArrayStep(first, len(array) - 1, inner)
    return step, step.origin


def _apart(some: Iterable[Keys], others: Iterable[Keys]) -> bool:
    return not any(one[: len(other)] == other[: len(one)] for one in some for other in others)
