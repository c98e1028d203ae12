"""Scalars: the conversion of a string, number or boolean in a field of a document."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum

from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import (
    Document,
    JsonForm,
    JsonObject,
    Number,
    holder_of,
    reach,
    refuse,
)
from gateway.conversion.field_path import Keys

Scalar = str | bool | Number | None
NUMBER_TEXT = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\Z", re.ASCII)


class Type(StrEnum):
    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"


TEXT, NUMBER, BOOLEAN = Type
"""The members of Type. Reading a member from the class takes ten times as long."""


def replace_scalar(
    fields: JsonObject,
    keys: Keys,
    form: JsonForm,
    source: Type,
    target: Type,
    convert: Callable[[str], str | bool],
) -> None:
    """Replace the scalar in a field by the result of `convert`.

    An absent field stays absent, and null stays null.

    Args:
        convert: Converts the scalar, given as a string (for a number, its digits). May raise
            ValueError.

    Raises:
        ConversionError: The scalar does not have the type `source`, or `convert` refused it.
    """
    holder = fields if len(keys) == 1 else reach(fields, keys, form)
    key = keys[-1]
    if holder is None or key not in holder:
        return
    text = form.digits(holder[key]) if source is NUMBER else None
    if text is None:
        value = form.open(holder[key])
        if value is None:
            return
        if type(value) is str and (source is TEXT or _is_boolean(value, source, form)):
            text = value
        else:
            text = _text(value, source, keys)
    try:
        made = convert(text)
    except ValueError as error:
        raise ConversionError(str(error), keys) from None
    if made != text or target is not source:
        holder[key] = form.number(str(made)) if target is NUMBER else made


def replace_number(
    fields: JsonObject, keys: Keys, form: JsonForm, convert: Callable[[str], str]
) -> None:
    """Replace the number in a field. If the number is written as a string, it stays a string.

    An absent field stays absent, and null stays null.

    Args:
        convert: Returns the digits of the new number, given the digits of the old number. May raise
            ValueError.

    Raises:
        ConversionError: The value is neither a number nor a string, or `convert` refused it.
    """
    holder = holder_of(fields, keys, form)
    if holder is None:
        return
    key = keys[-1]
    digits = form.digits(holder[key])
    text = form.open(holder[key]) if digits is None else digits
    if text is None:
        return
    if not isinstance(text, str):
        refuse("a number", text, *keys)
    try:
        made = convert(text)
    except ValueError as error:
        raise ConversionError(str(error), keys) from None
    if made != text:
        holder[key] = made if digits is None else form.number(made)


def exact(digits: str) -> Decimal | None:
    try:
        return Decimal(digits)
    except ArithmeticError:  # the exponent is out of range
        return None


def is_same_number(one: str, other: str) -> bool:
    return one == other or ((number := exact(one)) is not None and number == exact(other))


def _is_boolean(text: str, source: Type, form: JsonForm) -> bool:
    return source is BOOLEAN and not form.typed and text in WORDS.values()


def _text(value: Document, source: Type, keys: Keys) -> str:
    if source is BOOLEAN and isinstance(value, bool):
        return WORDS[value]
    return refuse(_EXPECTED[source], value, *keys)


_EXPECTED: Mapping[Type, str] = {
    TEXT: "a string",
    NUMBER: "a number",
    BOOLEAN: "a boolean",
}


WORDS: Mapping[bool, str] = {False: "false", True: "true"}


def spelt(word: Scalar) -> str:
    """Return a scalar as JSON would show it; a string is returned without quotes."""
    if word is None:
        return "null"
    if isinstance(word, bool):
        return "true" if word else "false"
    return word.digits if isinstance(word, Number) else word


def number(text: str) -> Document:
    try:
        return Decimal(text) if set(text) & {".", "e", "E"} else int(text)
    except (InvalidOperation, ValueError):
        return Huge(text)  # too many digits or too large an exponent for Python


@dataclass(frozen=True, slots=True)
class Huge:
    """A JSON number that is too large for Python. Two such numbers are compared as strings."""

    text: str
