"""Members of a JSON object that have the same key, for which JSON has no rule.

JSON leaves open which of them counts (RFC 8259, section 4), so a change that names such a key is
refused. All others keep every member at its place.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import Document, JsonObject


class RepeatedKey(str):
    """The key of a member behind another one with the same key; it is equal to itself alone."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


class RepeatedValue(NamedTuple):
    """The value of one of several members with the same key; it cannot be opened.

    Attributes:
        value: The value.
        members: The number of members with the key.
    """

    value: Document
    members: int


def repeated() -> ConversionError:
    """Return the error of an object that has a key more than once."""
    return ConversionError("an object has the same key twice (RFC 8259, section 4)")


def object_of(given: Iterable[tuple[str, Document]]) -> JsonObject:
    """Return the open object of members, some of which may have the same key."""
    members = [*given]
    counts = Counter(key for key, _ in members)
    made: JsonObject = {}
    for key, value in members:
        if counts[key] == 1:
            made[key] = value
        else:
            made[RepeatedKey(key) if key in made else key] = RepeatedValue(value, counts[key])
    return made


def check_repeated(fields: JsonObject) -> None:
    """Raise ConversionError if a change has moved or removed some members with the same key."""
    counts = Counter(str(key) for key in fields)
    for key, value in fields.items():
        if counts[str(key)] != (value.members if isinstance(value, RepeatedValue) else 1):
            raise repeated()


_encoded = msgspec.json.Encoder(decimal_format="number").encode
_string_at = json.JSONDecoder().raw_decode
# Python refuses to read whole numbers of thousands of digits.
_value_at = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode
# What stands between keys and values: white space, with a brace, a colon or a comma.
_SEPARATOR = re.compile(r"[ \t\n\r]*[,:{]?[ \t\n\r]*")
# What may follow a value in an object.
_ENDS = " \t\n\r,}"
# The escapes of a colon begin so.
_ESCAPED = b"\\u003"
# A key that nobody escapes.
_PLAIN_KEY = re.compile(r"[\w.$@ -]*\Z", re.ASCII)


class OddMembers(NamedTuple):
    """The members of an object, of which several may have the same key.

    Attributes:
        members: the members, in their order.
        keys: the texts of those keys that an encoder would write otherwise.
    """

    members: list[tuple[str, Raw]]
    keys: dict[str, bytes]


def odd_members(text: bytes, written: bytes, members: Mapping[str, Any]) -> OddMembers | None:
    """Return the members of an object, or None if a parser finds all of them as they are written.

    Args:
        text: the object, which is valid JSON.
        written: its members, written again with their values as they are in the text.
        members: its members, as a parser found them.
    """
    if b"\\" not in text:
        if text.count(b":") == written.count(b":"):
            return None  # nearly always
    elif _same_colons(text, written) and all(map(_PLAIN_KEY.match, members)):
        return None
    return _scan(text.decode(), members)


def refuse(text: bytes, written: bytes, members: Mapping[str, Any]) -> None:
    """Raise ConversionError if an object has a key more than once.

    Args:
        text: the object, which is valid JSON.
        written: its members, written again with their values as they are in the text.
        members: its members, as a parser found them.
    """
    if not _same_colons(text, written) and len(_scan(text.decode(), members)[0]) > len(members):
        raise repeated()


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


def _scan(text: str, members: Mapping[str, Any]) -> OddMembers:
    found = OddMembers([], {})
    at = _after(text, 0)
    while text[at] != "}":
        key, end = _string_at(text, at)
        name = text[at:end].encode()
        if name != _encoded(key):
            found.keys[key] = name
        at = _after(text, end)
        value = members[key]
        end = at + len(str(value, "utf-8"))
        # The parser kept the last value of a repeated key, so an earlier one may be another.
        if not text.startswith(str(value, "utf-8"), at) or text[end] not in _ENDS:
            _, end = _value_at(text, at)
            value = Raw(text[at:end].encode())
        found.members.append((key, value))
        at = _after(text, end)
    return found


def _after(text: str, at: int) -> int:
    """Return where the next key, value or closing brace begins."""
    separator = _SEPARATOR.match(text, at)
    assert separator is not None  # it may be empty
    return separator.end()


def _refuse_pairs(pairs: list[tuple[str, object]]) -> None:
    if len({key for key, _ in pairs}) < len(pairs):
        raise repeated()
