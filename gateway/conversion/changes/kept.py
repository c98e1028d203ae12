"""Kept: what does not fit a change of one value stays as it is, for the service to judge.

The value still comes to the place that the other version has for it, by the changes around. So a
service refuses it in its own words, and names the field that the client has sent.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from gateway.conversion.change import (
    Change,
    ChangeSequence,
    ChangeVariant,
    Elements,
    FieldChange,
    Inverse,
    Whole,
)
from gateway.conversion.changes.envelope import Envelope
from gateway.conversion.changes.money import Money, MoneyByCurrency
from gateway.conversion.changes.recombined import ParameterValues, Recombined, Unfit
from gateway.conversion.changes.rename import Rename
from gateway.conversion.changes.spread import Spread
from gateway.conversion.changes.use import GroupUse
from gateway.conversion.changes.wrap import Wrap
from gateway.conversion.conversion_error import ConversionError, ErrorPlace
from gateway.conversion.document import Document, JsonForm, JsonObject
from gateway.conversion.parameter_change import (
    MovedNames,
    ParameterChange,
    ParameterLines,
    ParameterSequence,
    Reversed,
    Rewritten,
    Spelling,
)
from gateway.conversion.schema import Flat, SchemaImage, union


@dataclass(frozen=True, slots=True)
class Kept(ChangeVariant):
    """A change of an object that leaves all of it as it is where it does not fit.

    Attributes:
        of_value: Whether it leaves a value that does not fit, beside what is no object on the way
            to a field.
        instead: The change that applies where that is no object; None without one.
    """

    of_value: bool = True
    instead: Change | None = None

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        self._try(fields, form, upwards=True)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        self._try(fields, form, upwards=False)

    def effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        before = len(image.refusals)
        with image.keeping(values=False):
            made = self.change.effect(flat, image, upwards=upwards)
        if self.of_value and len(image.refusals) > before:
            del image.refusals[before:]
            made = union((made, flat))
        if self.instead is None:
            return made
        return union((made, self.instead.effect(flat, image, upwards=upwards)))

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:
        found = self.change.origin(place, upwards=upwards)
        if found != place or self.instead is None:
            return found
        return self.instead.origin(place, upwards=upwards)

    def for_patch(self) -> "Kept":
        return replace(self, change=self.change.for_patch())

    def _try(self, fields: JsonObject, form: JsonForm, *, upwards: bool) -> None:
        before = _saved(fields)
        try:
            _apply(self.change, fields, form, upwards=upwards)
        except ConversionError as error:
            if not (self.of_value or error.is_on_way):
                raise
            _restore(before)
            if self.instead is not None and error.is_on_way:
                _apply(self.instead, fields, form, upwards=upwards)


@dataclass(frozen=True, slots=True)
class KeptParameter:
    """A change of a parameter that leaves it as it is where it does not fit."""

    change: ParameterChange

    @property
    def names(self) -> tuple[MovedNames, ...]:
        return self.change.names

    def up(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        try:
            return self.change.up(lines, spelling)
        except ConversionError:
            return lines

    def down(self, lines: ParameterLines, spelling: Spelling) -> ParameterLines:
        try:
            return self.change.down(lines, spelling)
        except ConversionError:
            return lines


def kept(change: Change) -> Change:
    """Return a change that leaves what is no object on the way to a field, as is said in `Kept`.

    One of a value leaves what does not fit, too. One of the whole body is returned as it is.
    """
    match change:
        case Whole():
            return change
        case Rename() if len(change.newer) == len(change.older) == 1:
            return change  # there is nothing on the way, and so no copy is needed
        case Rename():
            return Kept(change, of_value=False, instead=_of_holders(change))
        case GroupUse():
            return replace(change, keep=kept)
        case ChangeSequence():
            return ChangeSequence(tuple(map(kept, change.changes)))
        case Inverse():
            return Inverse(kept(change.change))
        case Elements():
            return replace(change, change=kept(change.change), keeps=True)
        case Money() | MoneyByCurrency():
            return replace(change, keeps=True)
        case Spread():
            return Kept(replace(change, keeps=True), of_value=False)
        case _:
            return Kept(change, of_value=isinstance(change, FieldChange))


def fitting_whole(change: Change) -> Change:
    """Return a change of a whole body that leaves a body of another shape; others as they are."""
    match change:
        case Whole(Elements() as elements):
            return Whole(replace(elements, keeps=True))
        case Whole(Envelope() | Wrap() | Inverse(Envelope() | Wrap())):
            return Whole(Kept(change.change))
        case _:
            return change


def _of_holders(change: Rename) -> Change | None:
    """Return the rename of the objects that have a field, None where they have the same name.

    What is there in place of such an object comes to its place, so that the service names it.
    """
    newer, older = change.newer[:-1], change.older[:-1]
    if not newer or not older or newer == older:
        return None
    holders = Rename(change.scopes, newer, older)
    return Kept(holders, instead=_of_holders(holders))


def kept_parameter(change: ParameterChange) -> ParameterChange:
    """Return a change of a value that leaves what does not fit; any other change as it is."""
    match change:
        case ParameterSequence():
            return ParameterSequence(tuple(map(kept_parameter, change.changes)))
        case Reversed():
            return Reversed(kept_parameter(change.change))
        case Rewritten():
            return KeptParameter(change)
        case Recombined() if change.newer_unfit is not None and change.older_unfit is not None:
            to_newer = _otherwise(change.to_newer, change.newer_unfit)
            to_older = _otherwise(change.to_older, change.older_unfit)
            return replace(change, to_newer=to_newer, to_older=to_older)
        case Recombined() if {*change.newer} == {*change.older}:  # an amount beside its currency
            return KeptParameter(change)
        case _:
            return change


def _otherwise(
    convert: Callable[[ParameterValues], ParameterValues], unfit: Unfit
) -> Callable[[ParameterValues], ParameterValues]:
    def converted(values: ParameterValues) -> ParameterValues:
        try:
            return convert(values)
        except ValueError:
            made = unfit(values)
            if made is None:
                raise
            return made

    return converted


def _apply(change: Change, fields: JsonObject, form: JsonForm, *, upwards: bool) -> None:
    (change.up if upwards else change.down)(fields, form)


def _saved(value: Document) -> list[tuple[Any, Any]]:
    """Return an open object, and all that is open in it, each with a copy of what it holds."""
    if not isinstance(value, dict | list):
        return []
    held = value.values() if isinstance(value, dict) else value
    return [(value, value.copy()), *(one for inner in held for one in _saved(inner))]


def _restore(saved: list[tuple[Any, Any]]) -> None:
    for value, held in saved:
        value.clear()
        (value.update if isinstance(value, dict) else value.extend)(held)
