"""Conversion of JSON bodies, parsed only as deep as the conversion needs.

Values that no change touches stay slices of the original bytes. So the digits of numbers, the order
of keys and unknown fields are preserved, and converting is fast.
"""

import json
import re
from codecs import getincrementaldecoder
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from math import isfinite
from typing import Any

# msgspec: the JSON library that can leave values unparsed (`Raw`), and the fastest that does.
import msgspec
from msgspec import Raw

from gateway.core.conversion.chain import BodyConversion
from gateway.core.conversion.conversion_error import ConversionError
from gateway.core.conversion.document import Document, JsonForm, Number, within
from gateway.core.conversion.message.message import Message
from gateway.core.cutover.differences import number
from gateway.proxy.body import json_encoding, json_pieces, repeated_keys, surrogates
from gateway.proxy.turns.thread_pace import Step, no_step

# For how many bytes other threads wait at a time.
_STEP = 64 * 1024
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
# What most messages of the parser begin with.
_MALFORMED = "JSON is malformed: "
_encoder = msgspec.json.Encoder(decimal_format="number")
# The types of the numbers that changes make, such as a default.
_NUMBERS = frozenset({int, float})
_opened = _decoder.decode
_encoded = _encoder.encode


# The white space of JSON (RFC 8259, section 2).
_BLANKS = b" \t\n\r"
# Matches -0, which int cannot represent, and whole numbers of too many digits. It may also match
# inside a string, which only costs the slower parser. It looks at each run of digits once.
_RARE = re.compile(rb"-0(?![.0-9eE])|(?<![0-9])[0-9]{%d}" % (_MOST_DIGITS + 1))


class NotJsonError(ConversionError):
    """A body is not JSON."""


def convert(
    body: bytes,
    conversion: BodyConversion,
    message: Message | None = None,
    step: Step = no_step,
    *,
    of_places: bool = False,
) -> bytes:
    """Return a converted JSON body.

    Args:
        body: the body.
        conversion: the conversion.
        message: the message that has the body, converted with it as far as the conversion needs
            it; None where nothing of it is known.
        step: is called between the steps.
        of_places: whether a null stands for a place; see `JsonForm`.

    Raises:
        ConversionError: the body is not JSON (RFC 8259), is nested too deep, or does not fit the
            declared changes.
    """
    body = body.strip(_BLANKS)  # a body that is a number would keep them
    try:
        large = len(body) > json_pieces.LARGE
        if large or not body.isascii():
            _check_utf8(body)  # values left unparsed are not checked for it later
        try:
            bare = message is None and step is no_step and not of_places
            form = _FORM if large else _SMALL_FORM
            if not bare:
                form = _form(form, message, step, of_places)
            try:
                if large:
                    return _convert_large(body, conversion, form, step)
                return _encoded(conversion.convert(Raw(body), form))
            except ConversionError as error:
                raise within(error, Raw(body), form) from None
        except msgspec.MsgspecError:
            replaced = surrogates.replace(body)
            if replaced is None:
                raise
            if message is not None:
                message.restore()
            form = _form(_REPLACED, message, step, of_places)
            try:
                return surrogates.restore(_convert_large(replaced, conversion, form, step))
            except ConversionError as error:
                raise within(error, Raw(replaced), form) from None
    except UnicodeDecodeError:
        raise NotJsonError("not UTF-8, which JSON is (RFC 8259, section 8.1)") from None
    except msgspec.MsgspecError as mistake:
        raise NotJsonError(f"not JSON: {str(mistake).removeprefix(_MALFORMED)}") from None
    except RecursionError:
        raise ConversionError("nested too deep") from None


def _convert_large(body: bytes, conversion: BodyConversion, form: JsonForm, step: Step) -> bytes:
    """Return a converted body, which is encoded in steps; see `convert`."""
    whole = form.open(Raw(body))
    if not isinstance(whole, dict | list):
        return _encoded(conversion.convert(Raw(body), form))
    return json_encoding.encode(conversion.convert(whole, form), step)


def _check_utf8(body: bytes) -> None:
    decode = getincrementaldecoder("utf-8")().decode
    for begin in range(0, len(body), _STEP):  # in steps, as above
        decode(body[begin : begin + _STEP])
    decode(b"", True)


def _form(form: JsonForm, message: Message | None, step: Step, of_places: bool) -> JsonForm:
    if message is None and step is no_step and not of_places:
        return form
    opens = form.open if step is no_step else _opener(step)
    # Half of the cost of dataclasses.replace.
    return JsonForm(
        opens,
        form.close,
        form.digits,
        form.number,
        form.parse,
        form.take,
        form.typed,
        message,
        of_places,
    )


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


def _opener(step: Step, *, small: bool = False) -> Callable[[Document], Document]:
    """Return what opens a value; see `JsonForm.open`.

    Args:
        step: is called between the steps.
        small: whether no value is large.
    """

    def opens(value: Document) -> Document:
        if type(value) is not Raw:
            return Number(_made_digits(value)) if type(value) in _NUMBERS else value
        if not small:
            step()
            if len(value) > json_pieces.LARGE:
                large = _open_in_pieces(value, step)
                if large is not None:
                    return large
        try:
            opened = _opened(value)
        except msgspec.ValidationError:  # a number out of the range of float
            return Number(str(value, "ascii"))
        kind = type(opened)
        if kind is str:
            return opened
        if kind is dict:
            # Of a repeated key, the parser has kept one. So an object that is as long as its
            # members written again has each key once; white space and needless escapes only make
            # it longer.
            written = _encoded(opened)
            if len(written) != len(value):
                repeated_keys.refuse(bytes(value), written, opened)
            return opened
        if kind is int or kind is float:
            return Number(str(value, "ascii"))
        return opened

    return opens


_open = _opener(no_step)


def _open_in_pieces(value: Raw, step: Step) -> Document:
    """Return an open array or object; None for any other value."""
    text = json_pieces.stripped(memoryview(value))
    begin, inner, end = bytes(text[:1]), text[1:-1], bytes(text[-1:])
    if begin + end not in (b"[]", b"{}"):
        return None
    if not json_pieces.stripped(inner):  # it is empty, and no element is missing
        return _open(Raw(begin + end))
    if begin == b"[":
        array: list[Document] = []
        for piece in json_pieces.cut(inner, step):
            array += _part(begin + piece + end, step)
        return array
    members: dict[str, Document] = {}
    count = 0
    for piece in json_pieces.cut(inner, step):
        some = _part(begin + piece + end, step)
        members.update(some)
        count += len(some)
    if len(members) < count:
        raise repeated_keys.repeated()
    return members


def _part(text: bytes, step: Step) -> Any:
    step()
    part = _opened(text)
    if not part:
        raise msgspec.DecodeError("an element is missing between two commas")
    if isinstance(part, dict) and not _is_as_written(text, part):
        repeated_keys.refuse(text, _encoded(part), part)
    return part


def _is_as_written(text: bytes, members: dict[str, Raw]) -> bool:
    """Return whether an object is compact and has no repeated keys, as `_open` finds it.

    It may be large, so that its members are not written again to be counted.
    """
    keys = len(_encoded([*members]))
    return len(text) == keys + sum(len(member) + 1 for member in members.values())


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
    """Return the digits of a number that a change has made, as they would be sent."""
    return str(_encoded(number), "ascii")


def _close(value: Document) -> Document:
    return Raw(_encoded(value))


def _number(digits: str) -> Document:
    # msgspec writes an int of 64 bits with the digits that it was read from.
    return int(digits) if len(digits) < 19 and digits.isdecimal() else Raw(digits.encode())


def _parse(value: Document) -> Document:
    text = _encoded(value)
    try:
        parsed = _leaves(text)
    except ValueError:
        reason = f"a number too large for a Python function, of more than {_MOST_DIGITS} digits"
        raise ConversionError(reason) from None
    repeated_keys.refuse_within(text, parsed)
    return parsed


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
_SMALL_FORM = replace(_FORM, open=_opener(no_step, small=True))
_REPLACED = replace(_FORM, parse=_parse_characters)
