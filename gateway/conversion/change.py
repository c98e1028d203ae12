"""Changes: the interface of all declared operations of a conversion, and their combinations.

A declaration reads from the newer version to the older one. Each operation is one module of
`gateway.conversion.changes`. `Inverse` makes the opposite of an operation, such as `split` from
`join`. `ChangeSequence` combines several into one. `Elements` applies one to every element of an
array, or member of an object.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, Self, cast

from gateway.conversion.conversion_error import Beside, ConversionError, ErrorPlace, inside
from gateway.conversion.document import (
    PLAIN,
    Document,
    JsonForm,
    JsonObject,
    change_elements,
    change_members,
    change_value,
)
from gateway.conversion.field_path import Keys, Members, Scope
from gateway.conversion.schema import (
    ANYTHING,
    Flat,
    SchemaImage,
    an_object,
    field_of,
    listed,
    union,
    words_of,
)
from gateway.conversion.steps import BODY, ConversionStep, ConversionTask

_VALUE: Keys = ("value",)


class Change(Protocol):
    """One declared change between two adjacent versions."""

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The scopes that lead to the objects to change, each relative to the one before."""
        ...

    @property
    def touches(self) -> tuple[Keys, ...]:
        """The fields that the change reads or writes, everything inside them included."""
        ...

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Convert an object to the newer version in place; may raise ConversionError."""
        ...

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Convert an object to the older version in place; may raise ConversionError."""
        ...

    def effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        """Return the schema of what the change leaves of an object with the schema `flat`."""
        ...

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:
        """Return where a place was before the change, or what the value there was made of."""
        ...

    def for_patch(self) -> "Change":
        """Return the change for bodies of PATCH requests, which hold only the fields to change."""
        ...


@dataclass(frozen=True, slots=True)
class FieldChange:
    """The base of changes of the value of one field, which stays where it is."""

    scopes: tuple[Scope, ...]
    field: Keys

    @property
    def touches(self) -> tuple[Keys, ...]:
        return (self.field,)

    def effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        """Return the object with another schema for the field."""
        return image.value(flat, self.field, partial(self._converted, image, upwards))

    def value_effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        """Return the schema of what the change makes of a value that is not null."""
        return image.refused(flat, "a value may not fit", ANYTHING)

    def _converted(self, image: SchemaImage, upwards: bool, flat: Flat) -> object:
        """Return the schema of converted values; listed ones are converted one by one."""
        words = words_of(flat)
        if words is None or flat["type"] in ("object", "array"):
            return self.value_effect(flat, image, upwards=upwards)
        change = cast("Change", replace(self, scopes=(), field=_VALUE))
        made: list[object] = []
        reason = ""
        for word in words:
            fields: JsonObject = {_VALUE[0]: word}
            try:
                (change.up if upwards else change.down)(fields, PLAIN)
            except ConversionError as error:
                reason = error.reason
            else:
                made.append(fields[_VALUE[0]])
        return image.refused(flat, reason, listed(made)) if reason else listed(made)

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:  # as others ask it
        return place

    def for_patch(self) -> Self:
        """A field that a PATCH request leaves out stays absent."""
        return self


@dataclass(frozen=True, slots=True)
class ChangeVariant:
    """The base of variants of a change, which have its scopes and fields."""

    change: Change

    @property
    def scopes(self) -> tuple[Scope, ...]:
        return self.change.scopes

    @property
    def touches(self) -> tuple[Keys, ...]:
        return self.change.touches


@dataclass(frozen=True, slots=True)
class Inverse(ChangeVariant):
    """The inverse of a change: its `up` is the `down` of the change, and the reverse."""

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        self.change.down(fields, form)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        self.change.up(fields, form)

    def effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        return self.change.effect(flat, image, upwards=not upwards)

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:
        return self.change.origin(place, upwards=not upwards)

    def for_patch(self) -> "Inverse":
        return Inverse(self.change.for_patch())


@dataclass(frozen=True, slots=True)
class ChangeSequence:
    """A sequence of changes with the same scopes, applied one after the other as one change."""

    changes: tuple[Change, ...]

    @property
    def scopes(self) -> tuple[Scope, ...]:
        return self.changes[0].scopes

    @property
    def touches(self) -> tuple[Keys, ...]:
        return tuple(keys for change in self.changes for keys in change.touches)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        try:
            for change in self.changes:
                change.up(fields, form)
        except ConversionError as error:
            before = self.changes[: self.changes.index(change)]
            raise error.moved(partial(_origin, before, upwards=True)) from None

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        try:
            for change in reversed(self.changes):
                change.down(fields, form)
        except ConversionError as error:
            before = self.changes[: self.changes.index(change) : -1]
            raise error.moved(partial(_origin, before, upwards=False)) from None

    def effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        made: object = flat
        for change in self.changes if upwards else reversed(self.changes):
            made = image.each(made, partial(change.effect, image=image, upwards=upwards))
        return made

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:
        return _origin(self.changes if upwards else self.changes[::-1], place, upwards=upwards)

    def for_patch(self) -> "ChangeSequence":
        return ChangeSequence(tuple(change.for_patch() for change in self.changes))


@dataclass(frozen=True, slots=True)
class Whole:
    """A change of the whole body, any JSON value, which is held in the field BODY of an object."""

    change: Change

    @property
    def scopes(self) -> tuple[Scope, ...]:
        return ()

    @property
    def touches(self) -> tuple[Keys, ...]:
        return ((),)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        self.change.up(fields, form)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        self.change.down(fields, form)

    def effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        return held_effect(self.change, BODY[0], flat, image, upwards=upwards)

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:
        return self.change.origin(place, upwards=upwards)

    def for_patch(self) -> "Whole":
        return Whole(self.change.for_patch())


def held_effect(
    change: Change, key: str, schema: object, image: SchemaImage, *, upwards: bool
) -> object:
    """Return the effect of a change on a value that an object holds for it, as in `Whole`."""
    made = image.inside(
        an_object({key: schema}),
        change.scopes,
        partial(change.effect, image=image, upwards=upwards),
    )
    return union(field_of(one, key) for one in image.alternatives(made))


def task_of(
    change: Change, scopes: tuple[Scope, ...] = (), *, upwards: bool, keeps: bool
) -> ConversionTask:
    """Return a change in one direction, as a task. `scopes` lead to the objects that it is for."""
    return ConversionTask(
        (*scopes, *change.scopes),
        change.touches,
        change.up if upwards else change.down,
        isinstance(change, Whole),
        partial(change.origin, upwards=upwards),
        keeps,
    )


def _origin(changes: Sequence[Change], place: ErrorPlace, *, upwards: bool) -> ErrorPlace:
    """Return where a place was before changes, which are in the order of their application."""
    for change in reversed(changes):
        place = change.origin(place, upwards=upwards)
    return place


_KEY = "element"
ELEMENT: Keys = (_KEY,)
"""The keys of the field that holds an element, in an object made for the change of that element."""


@dataclass(frozen=True, slots=True)
class Elements:
    """A change of every element of an array, or of every member of an object with free keys.

    An array or object that is absent or null has none.

    Attributes:
        array: The keys that lead from that object to the array, or to the object with free keys;
            without any, that is the object itself.
        depth: The number of nested arrays around the elements; 1 is an array of them, 0 an object
            of members.
    """

    scopes: tuple[Scope, ...]
    array: Keys
    depth: int
    change: Change
    keeps: bool = False

    @property
    def touches(self) -> tuple[Keys, ...]:
        return (self.array,)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        self._change(fields, self.change.up, form)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        self._change(fields, self.change.down, form)

    def effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        def one(schema: object) -> object:
            return held_effect(self.change, _KEY, schema, image, upwards=upwards)

        def every(value: Flat) -> object:
            return (
                image.members(value, one)
                if value["type"] == "object"
                else image.refused(value, "expected an object")
            )

        def nested(value: Flat, depth: int) -> object:
            if value["type"] == "null":
                return value
            if value["type"] != "array":
                return image.refused(value, "expected an array")
            if depth == 1:
                return image.elements(value, one)
            return image.elements(
                value, lambda inner: image.each(inner, lambda each: nested(each, depth - 1))
            )

        with image.keeping(values=True) if self.keeps else nullcontext():
            if not self.array:
                return every(flat)
            change = partial(nested, depth=self.depth) if self.depth else every
            return image.value(flat, self.array, change)

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:
        def of_element(inner: ErrorPlace) -> ErrorPlace:
            held = inner if isinstance(inner, Beside) else (*ELEMENT, *inner)
            return _in_element(self.change.origin(held, upwards=upwards))

        if not self.depth:
            return inside((Members(self.array),), place, of_element)
        return inside((self.array, *((),) * (self.depth - 1)), place, of_element)

    def for_patch(self) -> "Elements":
        """Return the same change: a PATCH request holds an array as a whole (RFC 7396).

        Of an object, it holds the members to change, and null removes one, which stays null.
        """
        return self

    def _change(self, fields: JsonObject, step: ConversionStep, form: JsonForm) -> None:
        def changed(element: Document) -> Document:
            holder: JsonObject = {_KEY: element}
            try:
                step(holder, form)
            except ConversionError as error:
                # The holder of the element is no part of the place.
                raise error.moved(_in_element) from None
            return holder[_KEY]

        def all_changed(value: Document) -> Document:
            if self.depth:
                return change_elements(value, self.depth - 1, form, changed, keeps=self.keeps)
            return change_members(value, changed, keeps=self.keeps)

        if self.array:
            change_value(fields, self.array, form, all_changed, keeps=self.keeps)
        else:
            change_members(fields, changed)


def _in_element(place: ErrorPlace) -> ErrorPlace:
    return place if isinstance(place, Beside) else place[1:]
