"""Original text: what no change alters keeps the text that it has in a JSON body.

A parser drops the white space between the members of an object that it opens, the escapes in their
keys, and all but one of several members with the same key. So this form remembers the text of each
array or object that it opens, unless the encoder would write the same, and gives it back for what
is closed as it was opened.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import starmap
from operator import eq
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from gateway.conversion.document import Document, JsonForm, JsonObject, Number
from gateway.conversion.formats import json_encoding, json_pieces, repeated_keys
from gateway.conversion.formats.repeated_keys import (
    RepeatedValue,
    check_repeated,
    object_of,
    repeated,
)
from gateway.http.turns.thread_pace import Step

_decoder = msgspec.json.Decoder(dict[str, Raw] | list[Raw] | str | int | float | bool | None)
_opened = _decoder.decode
_encoded = msgspec.json.Encoder(decimal_format="number").encode
# The types of the numbers that changes make, such as a default.
_NUMBERS = frozenset({int, float})
# The types of the values that one call encodes as they are.
_CLOSED = frozenset({Raw, str, int, float, bool, type(None)})
# Elements that are compared at a time.
_TOGETHER = 64
_NO_KEYS: Mapping[str, bytes] = {}


_Container = JsonObject | list[Document]


class _Opened(NamedTuple):
    """An array or object that has been opened.

    Attributes:
        value: the open value, which changes alter in place; held so that its id stays unique.
        text: its text.
        given: its members as they were opened, or its elements; None where opening the text once
            more costs less than to keep them.
        keys: the texts of those of its keys that the encoder would write otherwise.
    """

    value: _Container
    text: Raw
    given: _Container | None = None
    keys: Mapping[str, bytes] = _NO_KEYS


class OriginalText:
    """Opens and closes the values of one body.

    Args:
        step: is called between the steps.
        small: whether the body is so small that one step encodes it.
    """

    def __init__(self, step: Step, *, small: bool) -> None:
        self._step = step
        self._small = small
        self._known: dict[int, _Opened] = {}

    def forget(self) -> None:
        """Forget what was opened, before another body."""
        self._known.clear()

    def form(
        self, leaves: JsonForm, parse: Callable[[Document], Document], message: Any, of_places: bool
    ) -> JsonForm:
        """Return the form of the body.

        Args:
            leaves: reads and makes the scalars of the form.
            parse: see `JsonForm`.
            message: see `JsonForm`.
            of_places: see `JsonForm`.
        """

        def parse_open(value: Document) -> Document:
            return parse(_plain(value))

        given = leaves.digits, leaves.number, parse_open, leaves.take, True, message, of_places
        return JsonForm(self.open, self.close, *given)

    def open(self, value: Document) -> Document:
        """Return an open value; see `JsonForm.open`."""
        if type(value) is not Raw:
            if isinstance(value, RepeatedValue):
                raise repeated()
            return Number(str(_encoded(value), "ascii")) if type(value) in _NUMBERS else value
        self._step()
        if len(value) > json_pieces.LARGE:
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
        """Return a closed value; see `JsonForm.close`."""
        made = self.text(value)
        return Raw(made) if type(made) is bytes else made

    def text(self, value: Document) -> Document:
        """Return the text of a value, bytes or Raw: as in the body, if it is as it was opened."""
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
        return _encoded(value) if self._small else json_encoding.encode(value, self._step)

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
        odd = repeated_keys.odd_members(bytes(text), written, fields)
        if odd is None:
            self._known[id(fields)] = _Opened(fields, text)
            return fields
        members = object_of(odd.members)
        self._known[id(members)] = _Opened(members, text, {**members}, odd.keys)
        return members

    def _open_in_pieces(self, value: Raw) -> JsonObject | list[Document] | None:
        """Return an open array or object; None for any other value."""
        text = json_pieces.stripped(memoryview(value))
        begin, inner, end = bytes(text[:1]), text[1:-1], bytes(text[-1:])
        if begin + end not in (b"[]", b"{}"):
            return None
        if not json_pieces.stripped(inner):  # it is empty, and no element is missing
            empty: _Container = {} if begin == b"{" else []
            self._known[id(empty)] = _Opened(empty, value, empty.copy())
            return empty
        same = True
        if begin == b"[":
            array: list[Document] = []
            given: list[Document] = []
            for piece in json_pieces.cut(inner, self._step):
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
        for piece in json_pieces.cut(inner, self._step):
            written = begin + piece + end
            part = self._part(written)
            found = None
            if not is_as_written(written, part):
                same, found = False, repeated_keys.odd_members(written, _encoded(part), part)
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
    """Return whether the encoder would write an open array or object as its text.

    White space and needless escapes only make the text longer, and members that have the same key
    make it shorter than what it was. The elements may be large, so they are not written again.
    """
    if isinstance(value, dict):
        keys = len(_encoded([*value])) + len(value) if value else 2
        return len(text) == keys + sum(map(len, value.values()))
    return len(text) == sum(map(len, value)) + max(len(value), 1) + 1


def _same(one: Document, other: Document) -> bool:
    """Return whether two closed values have the same text, as null has and what is parsed of it."""
    if one is other or one == other:
        return True
    if isinstance(one, RepeatedValue):
        return isinstance(other, RepeatedValue) and _same(one.value, other.value)
    return type(one) is not Raw and _encoded(one) == _encoded(other)


def _plain(value: Document) -> Document:
    """Return a value that can be encoded; raises ConversionError for a repeated key."""
    if isinstance(value, RepeatedValue):
        raise repeated()
    if isinstance(value, dict):
        return {key: _plain(member) for key, member in value.items()}
    return [*map(_plain, value)] if isinstance(value, list) else value
