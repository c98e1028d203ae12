"""Original text: JSON values that no change alters keep their exact bytes.

A parser drops white space, the escapes in keys, and all but one of several members with the same
key. `OriginalText` therefore stores the text of each array or object that it opens, unless the
encoder would write the same text.

JSON does not define which of several members with the same key is valid (RFC 8259, section 4). A
change that names such a key is therefore refused. Other changes keep all these members.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import starmap
from operator import eq
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import Document, JsonForm, JsonObject, Number
from gateway.conversion.formats import large_json
from gateway.http.cooperative import Step


class RepeatedKey(str):
    """The repeated key of a second or later member of an object, compared by identity."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


class RepeatedValue(NamedTuple):
    """The value of one of several members with the same key. It cannot be opened.

    Attributes:
        key: The key in the sender's message.
    """

    value: Document
    members: int
    key: str


# The maximum length of a key in an error, in characters.
_LONGEST_KEY = 100


def repeated(key: str) -> ConversionError:
    shown = key if len(key) <= _LONGEST_KEY else f"{key[:_LONGEST_KEY]}..."
    return ConversionError(f"an object has the key '{shown}' twice (RFC 8259, section 4)")


def _first_repeated(keys: Iterable[str]) -> str | None:
    known = set[str]()
    for key in keys:
        if key in known:
            return key
        known.add(key)
    return None


def object_of(given: Iterable[tuple[str, Document]]) -> JsonObject:
    members = [*given]
    counts = Counter(key for key, _ in members)
    made: JsonObject = {}
    for key, value in members:
        if counts[key] == 1:
            made[key] = value
        else:
            made[RepeatedKey(key) if key in made else key] = RepeatedValue(value, counts[key], key)
    return made


def check_repeated(fields: JsonObject) -> None:
    """Raise ConversionError if a change moved or removed only some members with the same key."""
    counts = Counter(str(key) for key in fields)
    for key, value in fields.items():
        if counts[str(key)] != (value.members if isinstance(value, RepeatedValue) else 1):
            raise repeated(value.key if isinstance(value, RepeatedValue) else str(key))


_encoded = msgspec.json.Encoder(decimal_format="number").encode
_string_at = json.JSONDecoder().raw_decode
# Numbers are parsed to strings, because Python refuses integers with thousands of digits.
_value_at = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode
# The separators of keys and values: white space, with a brace, a colon or a comma.
_SEPARATOR = re.compile(r"[ \t\n\r]*[,:{]?[ \t\n\r]*")
_ENDS = " \t\n\r,}"
_ESCAPED = b"\\u003"
# A key without characters that are escaped by necessity or by custom.
_PLAIN_KEY = re.compile(r"[\w.$@ -]*\Z", re.ASCII)


class _OddMembers(NamedTuple):
    """The members of an object whose keys may be repeated or contain needless escapes."""

    members: list[tuple[str, Raw]]
    keys: dict[str, bytes]


def _odd_members(text: bytes, written: bytes, members: Mapping[str, Any]) -> _OddMembers | None:
    if b"\\" not in text:
        if text.count(b":") == written.count(b":"):
            return None  # the usual case
    elif _same_colons(text, written) and all(map(_PLAIN_KEY.match, members)):
        return None
    return _scan(text.decode(), members)


def refuse_repeated(text: bytes, written: bytes, members: Mapping[str, Any]) -> None:
    if not _same_colons(text, written):
        key = _first_repeated(key for key, _ in _scan(text.decode(), members).members)
        if key is not None:
            raise repeated(key)


def refuse_repeated_within(text: bytes, parsed: Document) -> None:
    if not isinstance(parsed, dict | list):
        return
    try:
        if _same_colons(text, _encoded(parsed)):
            return
    except (msgspec.MsgspecError, OverflowError):  # a whole number of more than 64 bits
        pass
    json.loads(text, object_pairs_hook=_refuse_pairs, parse_int=str, parse_float=str)


def _same_colons(text: bytes, written: bytes) -> bool:
    # Every member has one colon. All other colons are part of keys and values, where only the
    # original text may escape them.
    return text.count(b":") == written.count(b":") and _ESCAPED not in text


def _scan(text: str, members: Mapping[str, Any]) -> _OddMembers:
    found = _OddMembers([], {})
    at = _after(text, 0)
    while text[at] != "}":
        key, end = _string_at(text, at)
        name = text[at:end].encode()
        if name != _encoded(key):
            found.keys[key] = name
        at = _after(text, end)
        value = members[key]
        end = at + len(str(value, "utf-8"))
        # The parser keeps only the last value of a repeated key, so earlier values may differ.
        if not text.startswith(str(value, "utf-8"), at) or text[end] not in _ENDS:
            _, end = _value_at(text, at)
            value = Raw(text[at:end].encode())
        found.members.append((key, value))
        at = _after(text, end)
    return found


def _after(text: str, at: int) -> int:
    separator = _SEPARATOR.match(text, at)
    assert separator is not None  # the pattern also matches an empty string
    return separator.end()


def _refuse_pairs(pairs: list[tuple[str, object]]) -> None:
    key = _first_repeated(key for key, _ in pairs)
    if key is not None:
        raise repeated(key)


_decoder = msgspec.json.Decoder(dict[str, Raw] | list[Raw] | str | int | float | bool | None)
_opened = _decoder.decode
_NUMBERS = frozenset({int, float})
_CLOSED = frozenset({Raw, str, int, float, bool, type(None)})
_TOGETHER = 64
_NO_KEYS: Mapping[str, bytes] = {}


_Container = JsonObject | list[Document]


class _Opened(NamedTuple):
    """An array or object that has been opened.

    Attributes:
        value: The open value, which changes alter in place. The reference keeps its id unique.
        given: The original members or elements. None if it is faster to parse the text again than
            to copy them.
    """

    value: _Container
    text: Raw
    given: _Container | None = None
    keys: Mapping[str, bytes] = _NO_KEYS


class OriginalText:
    def __init__(self, step: Step, *, small: bool) -> None:
        self._step = step
        self._small = small
        self._known: dict[int, _Opened] = {}

    def forget(self) -> None:
        self._known.clear()

    def form(
        self, leaves: JsonForm, parse: Callable[[Document], Document], message: Any, of_places: bool
    ) -> JsonForm:
        def parse_open(value: Document) -> Document:
            return parse(_plain(value))

        given = leaves.digits, leaves.number, parse_open, leaves.take, True, message, of_places
        return JsonForm(self.open, self.close, *given)

    def open(self, value: Document) -> Document:
        if type(value) is not Raw:
            if isinstance(value, RepeatedValue):
                raise repeated(value.key)
            return Number(str(_encoded(value), "ascii")) if type(value) in _NUMBERS else value
        self._step()
        if len(value) > large_json.LARGE:
            large = self._open_in_pieces(value)
            if large is not None:
                return large
        try:
            opened = _opened(value)
        except msgspec.ValidationError:  # a number out of the range of float
            return Number(str(value, "ascii"))
        kind = type(opened)
        if kind is dict:
            written = _encoded(opened)
            if len(written) == len(value):
                return opened
            return self._remember_object(value, opened, written)
        if kind is list:
            if not is_as_written(value, opened):
                self._known[id(opened)] = _Opened(opened, value)
            return opened
        return Number(str(value, "ascii")) if kind is int or kind is float else opened

    def close(self, value: Document) -> Document:
        made = self.text(value)
        return Raw(made) if type(made) is bytes else made

    def text(self, value: Document) -> Document:
        """Return a value as JSON (bytes or Raw): the original text if no change altered it."""
        if isinstance(value, Raw):
            return value
        if not isinstance(value, dict | list):
            return _encoded(value)
        known = self._known.pop(id(value), None) if self._known else None
        is_flat = _CLOSED.issuperset(
            map(type, value.values() if isinstance(value, dict) else value)
        )
        if not is_flat:
            for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
                value[key] = self._closed(inner)
        if known is not None:
            if self._is_as_given(value, known):
                return known.text
            is_flat = is_flat and not known.keys
        if isinstance(value, dict) and not is_flat:
            return self._object(value, _NO_KEYS if known is None else known.keys)
        return _encoded(value) if self._small else large_json.encode(value, self._step)

    def _closed(self, value: Document) -> Document:
        if isinstance(value, RepeatedValue):
            return value._replace(value=self._closed(value.value))
        return self.close(value) if isinstance(value, dict | list) else value

    def _object(self, fields: JsonObject, keys: Mapping[str, bytes]) -> bytes:
        check_repeated(fields)
        parts: list[bytes] = []
        for key, value in fields.items():
            plain = str(key)
            member = value.value if isinstance(value, RepeatedValue) else value
            parts.append((keys.get(plain) or _encoded(plain)) + b":" + _encoded(member))
            self._step()
        return b"{%b}" % b",".join(parts)

    def _is_as_given(self, value: _Container, known: _Opened) -> bool:
        given = _opened(known.text) if known.given is None else known.given
        if len(value) != len(given):
            return False
        if isinstance(value, dict) and isinstance(given, dict):
            members = zip(value.values(), given.values(), strict=True)
            return self._all(eq, zip(value, given, strict=True)) and self._all(_same, members)
        return self._all(_same, zip(value, given, strict=True))

    def _all(self, alike: Callable[[Any, Any], bool], pairs: Iterable[tuple[Any, Any]]) -> bool:
        if self._small:
            return all(starmap(alike, pairs))
        for number, (one, other) in enumerate(pairs):
            if not number % _TOGETHER:
                self._step()
            if not alike(one, other):
                return False
        return True

    def _remember_object(self, text: Raw, fields: JsonObject, written: bytes) -> JsonObject:
        odd = _odd_members(bytes(text), written, fields)
        if odd is None:
            self._known[id(fields)] = _Opened(fields, text)
            return fields
        members = object_of(odd.members)
        self._known[id(members)] = _Opened(members, text, {**members}, odd.keys)
        return members

    def _open_in_pieces(self, value: Raw) -> JsonObject | list[Document] | None:
        text = large_json.stripped(memoryview(value))
        begin, inner, end = bytes(text[:1]), text[1:-1], bytes(text[-1:])
        if begin + end not in (b"[]", b"{}"):
            return None
        if not large_json.stripped(inner):  # an empty array or object, not a missing element
            empty: _Container = {} if begin == b"{" else []
            self._known[id(empty)] = _Opened(empty, value, empty.copy())
            return empty
        same = True
        if begin == b"[":
            array: list[Document] = []
            given: list[Document] = []
            for piece in large_json.cut(inner, self._step):
                written = begin + piece + end
                some = self._part(written)
                same = same and is_as_written(written, some)
                array += some
                given += some
            if not same:
                self._known[id(array)] = _Opened(array, value, given)
            return array
        members: list[tuple[str, Document]] = []
        keys: dict[str, bytes] = {}
        for piece in large_json.cut(inner, self._step):
            written = begin + piece + end
            part = self._part(written)
            found = None
            if not is_as_written(written, part):
                same, found = False, _odd_members(written, _encoded(part), part)
            if found is None:
                members += part.items()
            else:
                members += found.members
                keys |= found.keys
        fields: JsonObject = {}
        before: JsonObject = {}
        for first in range(0, len(members), _TOGETHER):
            self._step()
            some = members[first : first + _TOGETHER]
            fields.update(some)
            before.update(some)
        if len(fields) < len(members):
            same, fields = False, object_of(members)
            before = {**fields}
        if not same:
            self._known[id(fields)] = _Opened(fields, value, before, keys)
        return fields

    def _part(self, text: bytes) -> Any:
        self._step()
        part = _opened(text)
        if not part:
            raise msgspec.DecodeError("an element is missing between two commas")
        return part


def is_as_written(text: bytes | Raw, value: dict[str, Raw] | list[Raw]) -> bool:
    """Return whether the encoder would write an open array or object exactly as in its text.

    Only lengths are compared: white space, needless escapes and repeated keys make the original
    text longer. Elements are not encoded again, because they may be large.
    """
    if isinstance(value, dict):
        keys = len(_encoded([*value])) + len(value) if value else 2
        return len(text) == keys + sum(map(len, value.values()))
    return len(text) == sum(map(len, value)) + max(len(value), 1) + 1


def _same(one: Document, other: Document) -> bool:
    if one is other or one == other:
        return True
    if isinstance(one, RepeatedValue):
        return isinstance(other, RepeatedValue) and _same(one.value, other.value)
    return type(one) is not Raw and _encoded(one) == _encoded(other)


def _plain(value: Document) -> Document:
    """Return a value as plain dicts and lists; raise ConversionError for a repeated key."""
    if isinstance(value, RepeatedValue):
        raise repeated(value.key)
    if isinstance(value, dict):
        return {key: _plain(member) for key, member in value.items()}
    return [*map(_plain, value)] if isinstance(value, list) else value
