"""Documents: JSON values, held in one form or another, and how changes get about in them."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, NamedTuple, NoReturn

from gateway.core.conversion.field_path import Keys, pointer

Document = object
JsonObject = dict[str, Document]
"""An object that is open: it may be changed in place."""


class Number(NamedTuple):
    """A JSON number that is looked at: its digits as they are written (RFC 8259, section 6)."""

    digits: str


@dataclass(frozen=True, slots=True)
class JsonForm:
    """How the values of a document are held, whether parsed to the leaves or *sealed*.

    Attributes:
        open: returns a value to look into: an object or array is the caller's to change in place
            and its values may be sealed still; a number is a Number.
        close: returns what an open object or array becomes when nobody will look into it again.
        digits: returns the digits of a value that is a number, else None.
        number: returns the number of exactly these digits.
        parse: returns a value parsed to the leaves, fractions as Decimal, that the caller owns;
            raises ConversionError where Python cannot hold a number.
        take: returns what is made of Python values as a value of this form; raises ValueError,
            TypeError or RecursionError for what is no JSON value.
    """

    open: Callable[[Document], Document]
    close: Callable[[Document], Document]
    digits: Callable[[Document], str | None]
    number: Callable[[str], Document]
    parse: Callable[[Document], Document]
    take: Callable[[Document], Document]


class Missing:
    """The type of MISSING, which no JSON value is."""


MISSING: Final = Missing()


class ConversionError(Exception):
    """A document does not fit the declared changes.

    Attributes:
        pointer: the place in the document, as a JSON Pointer.
        reason: what is wrong there; it quotes no value, since bodies may hold secrets.
        cause: what the log is told beyond that; empty where there is nothing to add.
    """

    def __init__(self, reason: str, pointer: str = "", cause: str = "") -> None:
        super().__init__(f"{pointer or 'the body'}: {reason}")
        self.reason = reason
        self.pointer = pointer
        self.cause = cause

    def under(self, *keys: str | int) -> "ConversionError":
        """Return the same error as seen from a container further out."""
        return ConversionError(self.reason, pointer(*keys) + self.pointer, self.cause)


def _open(value: Document) -> Document:
    match value:
        case dict():
            return dict(value)
        case list():
            return list(value)
        case bool():
            return value
        case int() | Decimal():
            return Number(str(value))
        case float():
            return Number(repr(value))
        case _:
            return value


def _number(digits: str) -> Document:
    return int(digits) if digits.lstrip("-").isdigit() and digits != "-0" else Decimal(digits)


def _digits(value: Document) -> str | None:
    opened = _open(value)
    return opened.digits if isinstance(opened, Number) else None


PLAIN: Final = JsonForm(_open, lambda value: value, _digits, _number, deepcopy, lambda value: value)
"""Python values, parsed to the leaves; what is given is never changed."""


def reach(fields: JsonObject, keys: Keys, form: JsonForm) -> JsonObject | None:
    """Return the object that holds the last of `keys`, opened in its place.

    None if it, or a container on the way, is not there or is null, which holds nothing.

    Raises:
        ConversionError: a container on the way is not an object.
    """
    if len(keys) == 1:
        return fields
    for depth in range(len(keys) - 1):
        key = keys[depth]
        if key not in fields:
            return None
        inner = form.open(fields[key])
        if inner is None:
            return None
        if not isinstance(inner, dict):
            refuse("an object", inner, *keys[: depth + 1])
        fields[key] = inner
        fields = inner
    return fields


def get(fields: JsonObject, keys: Keys, form: JsonForm) -> Document:
    """Return the opened value at `keys`; MISSING if it, or a container on the way, is not there.

    Raises:
        ConversionError: a container on the way is not an object.
    """
    holder = reach(fields, keys, form)
    if holder is None or keys[-1] not in holder:
        return MISSING
    return form.open(holder[keys[-1]])


def put(fields: JsonObject, keys: Keys, value: Document, form: JsonForm) -> None:
    """Set `value` at `keys`; a container that is not there is made.

    A key that stands already keeps its place among the others; a new one goes last.

    Raises:
        ConversionError: a container on the way is not an object.
    """
    for depth in range(len(keys) - 1):
        key = keys[depth]
        inner = form.open(fields[key]) if key in fields else {}
        if not isinstance(inner, dict):
            refuse("an object", inner, *keys[: depth + 1])
        fields[key] = inner
        fields = inner
    fields[keys[-1]] = value


def take(fields: JsonObject, keys: Keys, form: JsonForm) -> Document:
    """Remove and return the value at `keys`, with the containers that this empties, or MISSING.

    Raises:
        ConversionError: a container on the way is not an object.
    """
    if len(keys) == 1:
        return fields.pop(keys[0], MISSING)
    inner = reach(fields, keys[:2], form)
    if inner is None:
        return MISSING
    try:
        value = take(inner, keys[1:], form)
    except ConversionError as error:
        raise error.under(keys[0]) from None
    if value is not MISSING and not inner:
        del fields[keys[0]]
    return value


def refuse(expected: str, found: Document, *keys: str | int) -> NoReturn:
    """Raise ConversionError: at `keys`, something else was found than expected."""
    raise ConversionError(f"expected {expected}, found {kind(found)}", pointer(*keys))


def kind(value: Document) -> str:
    """Return what JSON calls the type of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case dict():
            return "an object"
        case list():
            return "an array"
        case _:
            return "a number"
