"""Steps: changes of a document in one direction, fused so that the document is traversed once.

All changes of the elements of an array are fused into one step, which opens each element once.
Changes of the members of an object, and inside a nested object, are fused in the same way.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, takewhile
from typing import Generic, NamedTuple, TypeVar

from gateway.conversion.conversion_error import (
    Beside,
    ConversionError,
    ErrorPlace,
    Origin,
    in_value,
    inside,
    same_place,
)
from gateway.conversion.document import (
    Document,
    JsonForm,
    JsonObject,
    SentEmpty,
    change_elements,
    holder_of,
    is_id,
    reach,
    refuse,
)
from gateway.conversion.field_path import Inside, Keys, Members, Scope, keys_of

T = TypeVar("T")
ConversionStep = Callable[[JsonObject, JsonForm], None]
"""A function that alters an open object in place; it may raise ConversionError."""
BodyConverting = Callable[[Document, JsonForm], Document]
"""A function that converts a whole body; it may raise ConversionError."""
BODY: Keys = ("",)
"""The path of the body in the temporary object to which changes of a whole body are applied."""


class ConversionTask(NamedTuple):
    """One declared change in one direction.

    Attributes:
        whole: Whether the change applies to the whole body, held in the field BODY, and not to
            objects in the body.
        keeps: Whether a value of another type is left unchanged where the scopes lead to an object
            or array. If false, such a value raises ConversionError.
    """

    scopes: tuple[Scope, ...]
    touches: tuple[Keys, ...]
    step: ConversionStep
    whole: bool = False
    origin: Origin = same_place
    keeps: bool = False


class BodyStep(NamedTuple):
    convert: BodyConverting
    origin: Origin


@dataclass(frozen=True, slots=True)
class Steps(Generic[T]):
    """Steps that are applied one after the other. For `keeps`, see ConversionTask."""

    calls: tuple[T, ...] = ()
    origins: tuple[Origin, ...] = ()
    keeps: bool = False

    def origin(self, place: ErrorPlace) -> ErrorPlace:
        for origin in reversed(self.origins):
            place = origin(place)
        return place

    def refused(self, error: ConversionError, step: T) -> ConversionError:
        index = next(index for index, each in enumerate(self.calls) if each is step)
        return error.moved(Steps((), self.origins[:index]).origin)


def composed(steps: Steps[BodyConverting]) -> BodyConverting:
    calls = steps.calls
    if len(calls) == 1:
        return calls[0]

    def convert(document: Document, form: JsonForm) -> Document:
        try:
            for step in calls:
                document = step(document, form)
        except ConversionError as error:
            raise steps.refused(error, step) from None
        return document

    return convert


def _of_array(keys: Keys, depth: int, steps: Steps[ConversionStep]) -> ConversionStep:
    """Return a step for every object in an array, or in arrays that are nested in it.

    An absent array, a null array and null elements are unchanged.
    """
    keeps, key = steps.keeps, keys[-1]

    def change(fields: JsonObject, form: JsonForm) -> None:
        holder = holder_of(fields, keys, form, keeps=keeps)
        if holder is not None:
            try:
                each = partial(change_object, steps, form)
                holder[key] = change_elements(holder[key], depth, form, each, keeps=keeps)
            except ConversionError as error:
                raise error.under(*keys) from None

    return change


def _of_members(keys: Keys, depth: int, steps: Steps[ConversionStep]) -> ConversionStep:
    """Return a step for every member of an object.

    An absent or null object is unchanged. If `depth` is not 0, the members are arrays, and the step
    applies to the elements of these arrays.
    """
    keeps, to_member = steps.keeps, (*keys, "")

    def change(fields: JsonObject, form: JsonForm) -> None:
        holder = reach(fields, to_member, form, keeps=keeps)
        if holder is None:
            return
        each = partial(change_object, steps, form)
        key = ""
        try:
            for key, value in holder.items():
                if depth:
                    holder[key] = change_elements(value, depth - 1, form, each, keeps=keeps)
                else:
                    holder[key] = each(value)
        except ConversionError as error:
            raise error.under(*keys, key) from None

    return change


def _inside(keys: Keys, steps: Steps[ConversionStep]) -> ConversionStep:
    to_field = (*keys, "")

    def change(fields: JsonObject, form: JsonForm) -> None:
        holder = reach(fields, to_field, form, keeps=steps.keeps)
        if holder is None:
            return
        is_empty = not holder
        try:
            for step in steps.calls:
                step(holder, form)
        except ConversionError as error:
            raise steps.refused(error, step).under(*keys) from None
        if is_empty and holder and (outer := reach(fields, keys, form)) is not None:
            outer[keys[-1]] = SentEmpty(holder)

    return change


def change_object(steps: Steps[ConversionStep], form: JsonForm, value: Document) -> Document:
    """Open an object, apply steps to it, and close it; null is unchanged."""
    fields = form.open(value)
    if fields is None:
        return None
    if not isinstance(fields, dict):
        return value if steps.keeps or is_id(fields) else refuse("an object", fields)
    try:
        for step in steps.calls:
            step(fields, form)
    except ConversionError as error:
        raise steps.refused(error, step) from None
    return form.close(fields)


def _each_object(steps: Steps[ConversionStep]) -> BodyStep:
    """Return a step for a body that is an object, or for each object in a body that is an array.

    Other bodies and other elements are unchanged, since they have no fields.
    """
    calls = steps.calls

    def convert(document: Document, form: JsonForm) -> Document:
        value = form.open(document)
        if isinstance(value, dict):
            try:
                for step in calls:
                    step(value, form)
            except ConversionError as error:
                raise steps.refused(error, step) from None
            return value
        if isinstance(value, list):
            index = 0
            try:
                for index, element in enumerate(value):
                    fields = form.open(element)
                    if isinstance(fields, dict):
                        try:
                            for step in calls:
                                step(fields, form)
                        except ConversionError as error:
                            raise steps.refused(error, step) from None
                        value[index] = form.close(fields)
                    elif isinstance(fields, list):
                        value[index] = convert(element, form)
            except ConversionError as error:
                raise error.under(index) from None
            return value
        return document

    return BodyStep(convert, partial(_origin_in_arrays, steps.origin))


def _origin_in_arrays(origin: Origin, place: ErrorPlace) -> ErrorPlace:
    tokens = () if isinstance(place, Beside) else place
    arrays = [*takewhile(lambda token: isinstance(token, int), tokens)]
    return inside(((),) * len(arrays), place, origin)


def _whole_body(task: ConversionTask) -> BodyStep:
    def origin(place: ErrorPlace) -> ErrorPlace:
        return in_value(task.origin(place if isinstance(place, Beside) else (*BODY, *place)))

    def convert(document: Document, form: JsonForm) -> Document:
        held: JsonObject = {BODY[0]: document}
        try:
            task.step(held, form)
        except ConversionError as error:
            raise error.moved(in_value) from None
        return held[BODY[0]]

    return BodyStep(convert, origin)


def body_steps(tasks: Iterable[ConversionTask]) -> list[BodyStep]:
    """Return steps that apply all tasks to a body, in order if they touch the same fields."""
    steps: list[BodyStep] = []
    for whole, some in groupby(tasks, lambda task: task.whole):
        if whole:
            steps += map(_whole_body, some)
        else:
            steps.append(_each_object(fuse(some)))
    return steps


def fuse(tasks: Iterable[ConversionTask]) -> Steps[ConversionStep]:
    """Return steps that together apply all tasks to an object, with tasks of one array fused.

    Tasks that touch the same fields are applied in the given order.
    """
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
    # If one of the fused changes refuses a value of another type, all of them do.
    keeps = all(task.keeps for _, _, members in groups for task in members)
    return Steps(tuple(step for step, _ in made), tuple(origin for _, origin in made), keeps)


def _array(scopes: tuple[Scope, ...]) -> tuple[Scope, ...]:
    end = 1
    while end < len(scopes) and scopes[end] == ():
        end += 1
    return scopes[:end]


def _step(
    array: tuple[Scope, ...], tasks: Sequence[ConversionTask]
) -> tuple[ConversionStep, Origin]:
    if not array:
        return tasks[0].step, tasks[0].origin
    first, depth = array[0], len(array) - 1
    inner = fuse(task._replace(scopes=task.scopes[len(array) :]) for task in tasks)
    if isinstance(first, Members):
        step = _of_members(first.keys, depth, inner)
    elif isinstance(first, Inside):
        step = _inside(first.keys, inner)
    else:
        step = _of_array(first, depth, inner)
    return step, lambda place: inside(array, place, inner.origin)


def _apart(some: Iterable[Keys], others: Iterable[Keys]) -> bool:
    return not any(one[: len(other)] == other[: len(one)] for one in some for other in others)
