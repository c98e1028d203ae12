"""Refuses repeated keys in the JSON objects that a conversion opens.

JSON leaves open which value of a repeated key counts (RFC 8259, section 4). A parser keeps one and
drops the others, so a converted body would lose data, and its receiver could read another value
than the sender meant.
"""

import json
import re

import msgspec

from gateway.core.conversion.conversion_error import ConversionError
from gateway.core.conversion.document import Document

_encoded = msgspec.json.Encoder(decimal_format="number").encode
_string_at = json.JSONDecoder().raw_decode
# What stands between keys and values: white space, with a brace, a colon or a comma.
_SEPARATOR = re.compile(r"[ \t\n\r]*[,:{]?[ \t\n\r]*")
# The escapes of a colon begin so.
_ESCAPED = b"\\u003"


def refuse(text: bytes, written: bytes, members: dict[str, msgspec.Raw]) -> None:
    """Raise ConversionError if an object has a key more than once.

    Args:
        text: the object, which is valid JSON.
        written: its members, written again with their values as they are in the text.
        members: its members, as a parser found them.
    """
    if not _same_colons(text, written):
        _scan(text.decode(), members)


def refuse_within(text: bytes, parsed: Document) -> None:
    """Raise ConversionError if an object has a key more than once, at any depth.

    Args:
        text: a value, which is valid JSON.
        parsed: the value, completely parsed.
    """
    if not isinstance(parsed, dict | list):
        return
    try:
        if _same_colons(text, _encoded(parsed)):
            return
    except (msgspec.MsgspecError, OverflowError):  # a whole number of more than 64 bits
        pass
    json.loads(text, object_pairs_hook=_refuse_pairs, parse_int=str, parse_float=str)


def _same_colons(text: bytes, written: bytes) -> bool:
    # Every member has a colon of its own. The others are in keys and values, and in `written` they
    # are all there, while the text may have some as escapes.
    return text.count(b":") == written.count(b":") and _ESCAPED not in text


def _scan(text: str, members: dict[str, msgspec.Raw]) -> None:
    found: set[str] = set()
    at = _after(text, 0)
    while text[at] != "}":
        key, at = _string_at(text, at)
        at = _after(text, at)
        value = str(members[key], "utf-8")
        # The parser kept the last value of a repeated key, so an earlier one may be another.
        if key in found or not text.startswith(value, at):
            raise repeated()
        found.add(key)
        at = _after(text, at + len(value))


def _after(text: str, at: int) -> int:
    """Return where the next key, value or closing brace begins."""
    separator = _SEPARATOR.match(text, at)
    assert separator is not None  # it may be empty
    return separator.end()


def _refuse_pairs(pairs: list[tuple[str, object]]) -> None:
    if len({key for key, _ in pairs}) < len(pairs):
        raise repeated()


def repeated() -> ConversionError:
    """Return the error of an object that has a key more than once."""
    return ConversionError("an object has the same key twice (RFC 8259, section 4)")
