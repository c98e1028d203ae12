"""Carry: a value that one version has in the body, and the other beside it in the message."""

from dataclasses import dataclass, replace

from gateway.conversion.change import Change, Inverse, Whole
from gateway.conversion.conversion_error import ConversionError, ErrorPlace, is_within
from gateway.conversion.document import (
    MISSING,
    Document,
    JsonForm,
    JsonObject,
    Missing,
    get,
    put,
    refuse,
    take,
)
from gateway.conversion.field_path import Keys, Scope, Tokens
from gateway.conversion.message.message import message_of
from gateway.conversion.message.places import Place
from gateway.conversion.parameter_change import MovedNames
from gateway.conversion.scalars import BOOLEAN, NUMBER, NUMBER_TEXT, TEXT, WORDS, Type
from gateway.conversion.schema import Flat, SchemaImage, listed, union
from gateway.conversion.steps import BODY

_BOOLEANS = {text: value for value, text in WORDS.items()}


@dataclass(frozen=True, slots=True)
class Carry:
    """The newer version has in the body what the older one has in another place of the message.

    A value that is absent on one side is absent on the other; null is not carried. The change is of
    the whole body, held in the field BODY, since a message has one such place.

    Attributes:
        field: The field, from the root of the body.
        place: The place of the older version.
        kind: The type of the value in the body; the place holds its text.
        default: The value of the body where the place is empty; MISSING for none.
    """

    field: Keys
    place: "Place"
    kind: Type = TEXT
    default: Document | Missing = MISSING

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """No scopes, since there is one body."""
        return ()

    @property
    def touches(self) -> tuple[Keys, ...]:
        """The field."""
        return ((*BODY, *self.field),)

    def up(self, fields: JsonObject, form: JsonForm) -> None:
        """Move the value into the body."""
        message = message_of(form)
        if message is None or not self.place.applies(message):
            return
        text = self.place.take(message)
        if text is None and self.default is MISSING:
            return
        body, keys = form.open(fields[BODY[0]]), self.field
        if not isinstance(body, dict):
            if text is None:
                return
            refuse("an object", body, *BODY)
        try:
            is_there = get(body, keys, form) is not MISSING
            if not is_there:
                value = form.take(self.default) if text is None else self._read(text, form)
                put(body, keys, value, form)
        except ConversionError as error:
            raise error.under(*BODY) from None
        if is_there:
            if text is not None:
                reason = "is there already"
                raise ConversionError(reason, (*BODY, *keys), rival=self.place.beside)
            return
        fields[BODY[0]] = form.close(body)

    def down(self, fields: JsonObject, form: JsonForm) -> None:
        """Move the value out of the body."""
        message = message_of(form)
        if message is None or not self.place.applies(message):
            return
        body = form.open(fields[BODY[0]])
        if not isinstance(body, dict):
            return  # it has no such field
        try:
            value = take(body, self.field, form)
        except ConversionError as error:
            raise error.under(*BODY) from None
        fields[BODY[0]] = form.close(body)
        opened = None if value is MISSING else form.open(value)
        if opened is not None:
            text = self._text(value, opened, form)
            self.place.give(message, text, (*BODY, *self.field))

    def effect(self, flat: Flat, image: SchemaImage, *, upwards: bool) -> object:
        """Return the body with the field, or without it."""

        def moved(body: Flat) -> object:
            if body["type"] != "object":
                return image.refused(body, "expected an object") if upwards else body
            if not upwards:
                return image.take(body, self.field).rest
            image.refusals.append("a text of the message may not fit")
            value: object = {"type": "string" if self.kind is TEXT else str(self.kind)}
            if not isinstance(self.default, Missing):
                value = union((value, listed([self.default])))
            return image.put(body, self.field, value, required=False)

        return image.value(flat, BODY, moved, nulls=True)

    def origin(self, place: ErrorPlace, *, upwards: bool) -> ErrorPlace:
        """Return the place of the message for the field, or the field for that place."""
        field: Tokens = (*BODY, *self.field)
        if upwards:
            return self.place.beside if is_within(place, field) else place
        return field if place == self.place.beside else place

    def for_patch(self) -> "Carry":
        """Return the change without the default, which would overwrite what is there."""
        return replace(self, default=MISSING)

    def _read(self, text: str, form: JsonForm) -> Document:
        if self.kind is TEXT or not form.typed:
            return text
        if self.kind is NUMBER:
            if NUMBER_TEXT.match(text):
                return form.number(text)
        elif text in _BOOLEANS:
            return _BOOLEANS[text]
        raise ConversionError(f"is not a {self.kind}", self.place.beside)

    def _text(self, value: Document, opened: Document, form: JsonForm) -> str:
        if self.kind is NUMBER:
            digits = form.digits(value)
            if digits is not None:
                return digits
        elif self.kind is BOOLEAN and isinstance(opened, bool):
            return WORDS[opened]
        elif isinstance(opened, str) and (self.kind is TEXT or not form.typed):
            return opened
        expected = "a string" if self.kind is TEXT else f"a {self.kind}"
        return refuse(expected, opened, *BODY, *self.field)


def is_carry(change: Change) -> bool:
    """Return whether a change of a whole body is Carry, in one direction or the other."""
    return isinstance(_inner(change)[0], Carry)


def carried_names(change: Change) -> tuple[MovedNames, ...]:
    """Return the header field that one version has in the place of a field of the body."""
    inner, inverse = _inner(change)
    name = inner.place.field_name if isinstance(inner, Carry) else None
    if name is None:
        return ()
    return (MovedNames((name,), ()) if inverse else MovedNames((), (name,)),)


def _inner(change: Change) -> tuple[Change, bool]:
    """Return the change that a change of a whole body makes, and whether it makes its inverse."""
    inner = change.change if isinstance(change, Whole) else change
    return (inner.change, True) if isinstance(inner, Inverse) else (inner, False)
