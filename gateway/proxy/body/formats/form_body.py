"""Conversion of forms: `application/x-www-form-urlencoded` (WHATWG URL, section 5).

A form is converted as an object of texts: each name is a field, and a name that occurs several
times is an array. A form has no types, so where a change expects a number or a boolean, its text
is taken for one.
"""

from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import parse_qsl, urlencode

from gateway.core.conversion.chain import BodyConversion
from gateway.core.conversion.document import (
    PLAIN,
    ConversionError,
    Document,
    JsonObject,
    kind,
)
from gateway.core.conversion.field_path import pointer
from gateway.core.conversion.message.message import Message
from gateway.core.conversion.scalars import NUMBER_TEXT, WORDS


def convert_form(body: bytes, conversion: BodyConversion, message: Message | None = None) -> bytes:
    """Return a converted form.

    Args:
        body: the form.
        conversion: the conversion.
        message: the message that has the form; None where nothing of it is known.

    Raises:
        ConversionError: the body is not a form in UTF-8, does not fit the declared changes, or
            would need a value that a form cannot hold: null, or an object.
    """
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict")
    except UnicodeDecodeError:
        raise ConversionError("not a form in UTF-8 (WHATWG URL, section 5.1)") from None
    fields: JsonObject = {}
    for name, value in pairs:
        if name in fields:
            before = fields[name]
            fields[name] = [*before, value] if isinstance(before, list) else [before, value]
        else:
            fields[name] = value
    converted = conversion.convert(fields, replace(_FORM, message=message))
    if not isinstance(converted, dict):
        raise ConversionError(f"{kind(converted)}, which a form cannot hold")
    return urlencode([*_pairs(converted)]).encode()


def _pairs(fields: JsonObject) -> Iterator[tuple[str, str]]:
    for name, value in fields.items():
        for one in value if isinstance(value, list) else (value,):
            if isinstance(one, bool):
                yield name, WORDS[one]
            elif isinstance(one, str):
                yield name, one
            elif (digits := _digits(one)) is not None:
                yield name, digits
            else:
                raise ConversionError(f"{kind(one)}, which a form cannot hold", pointer(name))


def _digits(value: Document) -> str | None:
    """Return the digits of a text that is one of a number, or of a number that a change adds."""
    if isinstance(value, str):
        return value if NUMBER_TEXT.match(value) else None
    return PLAIN.digits(value)


_FORM = replace(PLAIN, digits=_digits, number=str, typed=False)
