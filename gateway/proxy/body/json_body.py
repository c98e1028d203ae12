"""Conversion of JSON bodies, parsed only as deep as the conversion needs.

Values that no change touches stay slices of the original bytes. So the digits of numbers, the order
of keys and unknown fields are preserved, and converting is fast.
"""

import json
import re
from dataclasses import replace
from decimal import Decimal
from math import isfinite

# msgspec: the JSON library that can leave values unparsed (`Raw`), and the fastest that does.
import msgspec
from msgspec import Raw

from gateway.core.conversion.chain import Conversion
from gateway.core.conversion.document import ConversionError, Document, JsonForm, Number
from gateway.core.cutover.differences import number
from gateway.proxy.body import surrogates

# Python needs minutes to write out 1e9999999; genuine amounts have fewer digits than this.
_MOST_DIGITS = 400


def _bounded(text: str) -> Decimal:
    try:
        found = Decimal(text)
    except ArithmeticError:  # an exponent out of the range of Decimal
        found = None
    if found is None or len(text) > _MOST_DIGITS or abs(found.adjusted()) > _MOST_DIGITS:
        raise ValueError(f"a number of more than {_MOST_DIGITS} digits")
    return found


_decoder = msgspec.json.Decoder(dict[str, Raw] | list[Raw] | str | int | float | bool | None)
_to_the_leaves = msgspec.json.Decoder(float_hook=_bounded)
_compared = msgspec.json.Decoder(float_hook=number)
_encoder = msgspec.json.Encoder(decimal_format="number")
_opened = _decoder.decode
_encoded = _encoder.encode


# Matches -0, which int cannot represent, and whole numbers of too many digits. It may also match
# inside a string, which only costs the slower parser.
_RARE = re.compile(rb"-0(?![.0-9eE])|[0-9]{%d}" % (_MOST_DIGITS + 1))


def convert(body: bytes, conversion: Conversion) -> bytes:
    """Return a converted JSON body.

    Raises:
        ConversionError: the body is not JSON (RFC 8259), is nested too deep, or does not fit the
            declared changes.
    """
    try:
        if not body.isascii():
            body.decode()  # values left unparsed are not checked for UTF-8 later
        try:
            return _encoded(conversion.convert(Raw(body), _FORM))
        except msgspec.MsgspecError:
            replaced = surrogates.replace(body)
            if replaced is None:
                raise
            return surrogates.restore(_encoded(conversion.convert(Raw(replaced), _REPLACED)))
    except UnicodeDecodeError:
        raise ConversionError("not UTF-8, which JSON is (RFC 8259, section 8.1)") from None
    except msgspec.MsgspecError as error:
        raise ConversionError(f"not JSON: {error}") from None
    except RecursionError:
        raise ConversionError("nested too deep") from None


def parse(body: bytes) -> Document:
    """Return a parsed JSON body for comparison, or the bytes themselves if they are not JSON."""
    try:
        try:
            return _compared.decode(body)
        except msgspec.DecodeError:
            replaced = surrogates.replace(body)
            return body if replaced is None else _compared.decode(replaced)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ConversionError):
        return body


def _open(value: Document) -> Document:
    if type(value) is not Raw:
        return value
    try:
        opened = _opened(value)
    except msgspec.ValidationError:  # a number out of the range of float
        return Number(str(value, "ascii"))
    kind = type(opened)
    if kind is str or kind is dict:
        return opened
    if kind is int or kind is float:
        return Number(str(value, "ascii"))
    return opened


def _digits(value: Document) -> str | None:
    if type(value) is not Raw:
        return str(value) if type(value) is int else None
    try:
        opened = _opened(value)
    except msgspec.ValidationError:
        return str(value, "ascii")
    kind = type(opened)
    if kind is int and opened:  # 0 may be -0, and a float may have been rounded
        return str(opened)
    return str(value, "ascii") if kind is int or kind is float else None


def _close(value: Document) -> Document:
    return Raw(_encoded(value))


def _number(digits: str) -> Document:
    # msgspec writes an int of 64 bits with the digits that it was read from.
    return int(digits) if len(digits) < 19 and digits.isdecimal() else Raw(digits.encode())


def _parse(value: Document) -> Document:
    try:
        return _leaves(_encoded(value))
    except ValueError:
        reason = f"a number too large for a Python function, of more than {_MOST_DIGITS} digits"
        raise ConversionError(reason) from None


def _leaves(text: bytes) -> Document:
    """Return completely parsed JSON; raises ValueError for a number of too many digits."""
    if _RARE.search(text):
        return json.loads(text, parse_int=_whole, parse_float=_bounded)
    try:
        return _to_the_leaves.decode(text)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None


def _whole(text: str) -> int | Decimal:
    return int(text) if text != "-0" and len(text) <= _MOST_DIGITS else _bounded(text)


def _parse_characters(value: Document) -> Document:
    if surrogates.is_replaced(_encoded(value)):
        raise ConversionError("half of a surrogate pair, which no Python function is given")
    return _parse(value)


def _take(value: Document) -> Document:
    _check(value)
    try:
        text = _encoded(value)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None
    _leaves(text)
    return Raw(text)


def _check(value: object) -> None:
    # msgspec would write null for infinity and NaN.
    if isinstance(value, float) and not isfinite(value):
        raise ValueError(f"{value} is no JSON number")
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list | tuple):
        for inner in value:
            _check(inner)


_FORM = JsonForm(_open, _close, _digits, _number, _parse, _take)
_REPLACED = replace(_FORM, parse=_parse_characters)
