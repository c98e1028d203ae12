"""Conversion of JSON bodies, parsed only as deeply as the conversion needs.

Values that no change alters remain slices of the original bytes. Conversions are therefore fast,
and preserve the digits of numbers, the order of keys and unknown fields.
"""

import json
import re
from codecs import getincrementaldecoder
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from math import isfinite

# msgspec: the JSON library that can leave values unparsed (`Raw`), and the fastest that does.
import msgspec
from msgspec import Raw

from gateway.conversion.chain import BodyConversion
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import Document, JsonForm, Number, within
from gateway.conversion.formats import large_json, placeholders, text_encoding
from gateway.conversion.formats.original_text import (
    OriginalText,
    is_as_written,
    refuse_repeated_within,
)
from gateway.conversion.formats.text_encoding import TextEncoding
from gateway.conversion.message import Message
from gateway.conversion.scalars import number
from gateway.http.cooperative import Step, no_step

# Maximum bytes of one step. Other threads wait during a step.
_STEP = 64 * 1024
# Python needs minutes to write all digits of 1e9999999. Real amounts have fewer digits than this.
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
_MALFORMED = "JSON is malformed: "
_encoder = msgspec.json.Encoder(decimal_format="number")
_NUMBERS = frozenset({int, float})
_opened = _decoder.decode
_encoded = _encoder.encode


# The white space of JSON (RFC 8259, section 2).
_BLANKS = b" \t\n\r"
# Matches -0, which int cannot represent, and integers with too many digits. After a match, even a
# match inside a string, the slower parser is used. Each run of digits is scanned only once.
_RARE = re.compile(rb"-0(?![.0-9eE])|(?<![0-9])[0-9]{%d}" % (_MOST_DIGITS + 1))


class NotJsonError(ConversionError):
    pass


class _NotCompactError(Exception):
    """A value is not written as the encoder would write it, for example with white space."""


def convert(  # noqa: C901  # one walk in one frame, for speed
    body: bytes,
    conversion: BodyConversion,
    message: Message | None = None,
    step: Step = no_step,
    *,
    of_places: bool = False,
) -> bytes:
    """Convert a JSON body; return the same object if no change alters it.

    Args:
        message: The message with the body. Its query and header fields are converted too if the
            conversion needs them. None if the message is unknown.

    Raises:
        ConversionError: The body is not JSON (RFC 8259), is nested too deeply, or does not fit the
            declared changes.
    """
    text = body.strip(_BLANKS)  # msgspec would keep the white space around a number
    try:
        large = len(text) > large_json.LARGE
        if large or not text.isascii():
            _check_utf8(text)  # unparsed values are not checked later
        try:
            converted: bytes | None = None
            # The first attempt may fail after it has converted some links. A second attempt would
            # then count these links again.
            if not (large or step is not no_step or of_places or conversion.maps_links):
                try:
                    form = _COMPACT if message is None else _compact(message)
                    converted = _encoded(conversion.convert(Raw(text), form))
                except ConversionError as error:
                    raise within(error, Raw(text), _PLACES) from None
                except _NotCompactError:
                    if message is not None:
                        message.restore()
            if converted is None:
                converted = _converted(text, conversion, _parse, message, step, of_places)
        except msgspec.MsgspecError:
            restore, parse = placeholders.restore_surrogates, _parse_characters
            replaced = placeholders.replace_surrogates(text)
            if replaced is None and message is None:
                restore, parse = placeholders.restore_literals, _parse_literals
                replaced = placeholders.replace_literals(text)
            if replaced is None:
                raise
            if message is not None:
                message.restore()
            converted = restore(_converted(replaced, conversion, parse, message, step, of_places))
    except (UnicodeDecodeError, msgspec.MsgspecError) as mistake:
        encoding = text_encoding.detected(body)
        if encoding is None:
            raise _not_json(mistake) from None
        if message is not None:
            message.restore()
        return _in_encoding(encoding, body, conversion, message, step, of_places)
    except RecursionError:
        raise ConversionError("nested too deep") from None
    return body if converted == text else converted


def _not_json(mistake: Exception) -> NotJsonError:
    if isinstance(mistake, UnicodeDecodeError):
        return NotJsonError("not UTF-8, which JSON requires (RFC 8259, section 8.1)")
    return NotJsonError(f"not JSON: {str(mistake).removeprefix(_MALFORMED)}")


def _in_encoding(
    encoding: TextEncoding,
    body: bytes,
    conversion: BodyConversion,
    message: Message | None,
    step: Step,
    of_places: bool,
) -> bytes:
    def convert_text(text: bytes) -> bytes:
        if text_encoding.detected(text) is not None:
            raise NotJsonError("not JSON: it has two byte order marks")
        return convert(text, conversion, message, step, of_places=of_places)

    try:
        return text_encoding.converted(encoding, body, convert_text, step)
    except UnicodeDecodeError:
        raise NotJsonError(f"not {encoding.codec.upper()}, as its first bytes show") from None


def _compact(message: Message) -> JsonForm:
    form = _COMPACT
    # Twice as fast as dataclasses.replace.
    return JsonForm(
        form.open, form.close, form.digits, form.number, form.parse, form.take, True, message
    )


def _converted(
    text: bytes,
    conversion: BodyConversion,
    parse: Callable[[Document], Document],
    message: Message | None,
    step: Step,
    of_places: bool,
) -> bytes:
    small = len(text) <= large_json.LARGE
    ordinary = small and step is no_step and message is None and not of_places and parse is _parse
    if ordinary and _idle:
        original, form = _idle.pop()
    else:
        original = OriginalText(step, small=small)
        form = original.form(_PLACES, parse, message, of_places)
    try:
        made = original.text(conversion.convert(Raw(text), form))
    except ConversionError as error:
        placed = error
        with suppress(ConversionError):  # a repeated key on the path to the location
            placed = within(error, Raw(text), form)
        raise placed from None
    finally:
        original.forget()
    if ordinary and len(_idle) < _MOST_IDLE:
        _idle.append((original, form))
    return made if type(made) is bytes else large_json.encode(made, step)


def _check_utf8(body: bytes) -> None:
    decode = getincrementaldecoder("utf-8")().decode
    for begin in range(0, len(body), _STEP):
        decode(body[begin : begin + _STEP])
    decode(b"", True)


def parse(body: bytes) -> Document:
    """Parse a JSON body for comparison; return the body itself if it is not JSON."""
    try:
        try:
            return _compared.decode(body)
        except msgspec.DecodeError:
            replaced = placeholders.replace_surrogates(body)
            return body if replaced is None else _compared.decode(replaced)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ConversionError):
        return body


def parse_exactly(body: bytes) -> Document:
    """Parse a JSON body completely, with the digits of fractions as Decimal.

    Raises ConversionError for malformed JSON, repeated keys and numbers of too many digits.
    """
    try:
        _check_utf8(body)
        return _parse(Raw(body.strip(_BLANKS)))
    except (msgspec.MsgspecError, UnicodeDecodeError) as mistake:
        raise _not_json(mistake) from None
    except RecursionError:
        raise ConversionError("nested too deep") from None


def _open(value: Document) -> Document:
    """Open a value, without regard to how it is written; used to locate errors."""
    if type(value) is not Raw:
        return Number(_made_digits(value)) if type(value) in _NUMBERS else value
    try:
        opened = _opened(value)
    except msgspec.ValidationError:  # a number out of the range of float
        return Number(str(value, "ascii"))
    kind = type(opened)
    return Number(str(value, "ascii")) if kind is int or kind is float else opened


def _open_compact(value: Document) -> Document:
    """Open a value; raise _NotCompactError if the encoder would write it differently."""
    if type(value) is not Raw:
        return Number(_made_digits(value)) if type(value) in _NUMBERS else value
    try:
        opened = _opened(value)
    except msgspec.ValidationError:  # a number out of the range of float
        return Number(str(value, "ascii"))
    kind = type(opened)
    if kind is str:
        return opened
    if kind is dict:
        # The same check as `is_as_written`, but faster for small objects.
        if len(_encoded(opened)) != len(value):
            raise _NotCompactError
    elif kind is int or kind is float:
        return Number(str(value, "ascii"))
    elif kind is list and not is_as_written(value, opened):
        raise _NotCompactError
    return opened


def _digits(value: Document) -> str | None:
    if type(value) is not Raw:
        return _made_digits(value) if type(value) in _NUMBERS else None
    try:
        opened = _opened(value)
    except msgspec.ValidationError:
        return str(value, "ascii")
    kind = type(opened)
    if kind is int and opened:  # 0 may be -0, and a float may have been rounded
        return str(opened)
    return str(value, "ascii") if kind is int or kind is float else None


def _made_digits(number: Document) -> str:
    return str(_encoded(number), "ascii")


def _close(value: Document) -> Document:
    return Raw(_encoded(value))


def _number(digits: str) -> Document:
    # msgspec writes a 64-bit int with its original digits.
    return int(digits) if len(digits) < 19 and digits.isdecimal() else Raw(digits.encode())


def _parse(value: Document) -> Document:
    text = _encoded(value)
    try:
        parsed = _leaves(text)
    except json.JSONDecodeError as error:
        raise msgspec.DecodeError(str(error)) from None
    except msgspec.DecodeError:
        raise
    except ValueError:
        reason = f"a number too large for a Python function, of more than {_MOST_DIGITS} digits"
        raise ConversionError(reason) from None
    refuse_repeated_within(text, parsed)
    return parsed


def _leaves(text: bytes) -> Document:
    """Parse JSON completely; raises ValueError for a number with too many digits."""
    if _RARE.search(text):
        return json.loads(text, parse_int=_whole, parse_float=_bounded)
    try:
        return _to_the_leaves.decode(text)
    except msgspec.ValidationError as error:  # wraps the ValueError of `_bounded`
        raise ValueError(str(error)) from None


def _whole(text: str) -> int | Decimal:
    return int(text) if text != "-0" and len(text) <= _MOST_DIGITS else _bounded(text)


def _parse_characters(value: Document) -> Document:
    if placeholders.has_surrogates(_encoded(value)):
        raise ConversionError(
            "half of a surrogate pair, which cannot be passed to a Python function"
        )
    return _parse(value)


def _parse_literals(value: Document) -> Document:
    if placeholders.MARK in _encoded(value):
        raise ConversionError("NaN or Infinity, which cannot be passed to a Python function")
    return _parse(value)


def _take(value: Document) -> Document:
    _check(value)
    try:
        text = _encoded(value)
        _leaves(text)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None
    return Raw(text)


def _check(value: object) -> None:
    # msgspec would write null for infinity and NaN.
    if isinstance(value, float) and not isfinite(value):
        raise ValueError(f"{value} is not a JSON number")
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list | tuple):
        for inner in value:
            _check(inner)


# Forms to be reused for small bodies. To create a form takes as long as a conversion.
_idle: list[tuple[OriginalText, JsonForm]] = []
_MOST_IDLE = 4
_PLACES = JsonForm(_open, _close, _digits, _number, _parse, _take)
_COMPACT = replace(_PLACES, open=_open_compact)
