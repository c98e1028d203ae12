"""Conversion of JSON Patch: `application/json-patch+json` (RFC 6902).

To convert the path of an operation, a temporary document is converted that contains only this path,
with null as its value. Changes keep null, and Python functions are not called for null. If the path
becomes several paths, as for a string joined from parts, the result has one operation for each
path.
"""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import NoReturn, Protocol

# msgspec can leave the values of operations unparsed, which keeps numbers exact (see `json_body`).
import msgspec
from msgspec import Raw

from gateway.conversion.chain import BodyConversion
from gateway.conversion.conversion_error import Beside, ConversionError, ErrorPlace
from gateway.conversion.field_path import pointer, tokens_of
from gateway.conversion.formats import json_body
from gateway.conversion.formats.original_text import refuse_repeated
from gateway.conversion.message import Message
from gateway.http.cooperative import Step, no_step

_Place = tuple[str, ...]
_Operation = dict[str, Raw]
_NULL = Raw(b"null")
_NO_EQUAL = "a location that the other version does not have"
_WITH_VALUE = ("add", "replace", "test")
_WITH_SOURCE = ("move", "copy")

# The maximum number of names and indexes in a path. Each of them needs a pass over the value at the
# path, so that thousands would take seconds. Real documents are less deeply nested.
_DEEPEST = 64

_operations = msgspec.json.Decoder(list[Raw])
_members = msgspec.json.Decoder(dict[str, Raw])
_level = msgspec.json.Decoder(dict[str, Raw] | list[Raw] | str | int | float | bool | None)
_text = msgspec.json.Decoder(str)


class _JsonConversion(Protocol):
    def __call__(self, document: bytes, *, of_places: bool = False) -> bytes: ...


class _Dropped(Exception):  # noqa: N818  # the operation is left out, which is no error
    """An operation on a field that `additional` drops."""


def convert_patch(
    body: bytes,
    conversion: BodyConversion,
    message: Message | None = None,
    step: Step = no_step,
) -> bytes:
    """Convert a JSON Patch; return the same object if no change alters it.

    Raises:
        ConversionError: The body is not a JSON Patch, or an operation has no equivalent in the
            other version, for example because its path is only a part of a field there.
    """
    drops = any(one.drops for one in conversion.filters)

    def convert(document: bytes, *, of_places: bool = False) -> bytes:
        copy = None if message is None else message.copied()
        made = json_body.convert(document, conversion, copy, step, of_places=of_places)
        if drops and of_places and b"null" not in made:
            raise _Dropped
        return made

    try:
        operations = _operations.decode(body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _no_patch(error) from None
    index = 0
    given: list[_Operation] = []
    converted: list[_Operation] = []
    try:
        for index in range(len(operations)):
            given.append(_opened(operations[index]))
            with suppress(_Dropped):
                converted.extend(_converted(given[-1], convert))
    except ConversionError as error:
        raise error.under(index) from None
    return body if converted == given else msgspec.json.encode(converted)


def _opened(text: Raw) -> _Operation:
    try:
        operation = _members.decode(text)
    except msgspec.MsgspecError as error:
        raise _no_patch(error) from None
    refuse_repeated(bytes(text), msgspec.json.encode(operation), operation)
    return operation


def _no_patch(error: Exception) -> ConversionError:
    return ConversionError(f"not a JSON Patch (RFC 6902): {error}")


def _converted(operation: _Operation, convert: _JsonConversion) -> Iterator[_Operation]:
    kind, place = _member(operation, "op"), _place(operation, "path")
    if kind in _WITH_SOURCE:
        source = _place(operation, "from")
        if source[:-1] != place[:-1] or not (_is_index(source[-1:]) and _is_index(place[-1:])):
            _refuse(f"{kind} from a place other than an element of the same array", "from")
        ((begin,), (end,)) = _moved(source, convert, "from"), _moved(place, convert, "path")
        if (begin, end) != (source, place):
            operation = {**operation, "from": _written(begin), "path": _written(end)}
        yield operation
        return
    if kind not in (*_WITH_VALUE, "remove"):
        _refuse("an operation that JSON Patch does not have (RFC 6902, section 4)", "op")
    valued = kind in _WITH_VALUE
    if valued and "value" not in operation:
        _refuse("is missing", "value")
    for target in _moved(place, convert, "path"):
        converted = {**operation} if target == place else {**operation, "path": _written(target)}
        if valued:
            converted["value"] = _value(place, target, operation["value"], convert)
        yield converted


def _member(operation: _Operation, name: str) -> str:
    try:
        return _text.decode(operation[name])
    except KeyError:
        _refuse("is missing", name)
    except msgspec.MsgspecError:
        _refuse("expected a string", name)


def _place(operation: _Operation, name: str) -> _Place:
    text = _member(operation, name)
    if text and not text.startswith("/"):
        _refuse("not a JSON Pointer (RFC 6901)", name)
    if text.count("/") > _DEEPEST:
        _refuse(f"a location of more than {_DEEPEST} names and indexes", name)
    return tokens_of(text)


def _written(place: _Place) -> Raw:
    return Raw(msgspec.json.encode(pointer(*place)))


def _is_index(parts: _Place) -> bool:
    return any(part == "-" or part.isdecimal() for part in parts)


def _moved(place: _Place, convert: _JsonConversion, name: str) -> list[_Place]:
    if not place:
        return [place]
    try:
        document = convert(_holder(place, _NULL), of_places=True)
    except ConversionError as error:
        # The error describes the temporary document, which would not help the sender.
        raise ConversionError(_NO_EQUAL, (name,), error.cause or str(error)) from None
    # Each array in the converted document has a single element, without regard to its real index.
    indexes = [part for part in place if _is_index((part,))]
    made: list[_Place] = []
    for found in nulls(msgspec.json.decode(document)):
        rest = iter(indexes)
        if sum(type(part) is int for part in found) != len(indexes):
            _refuse(_NO_EQUAL, name)
        made.append(tuple(part if isinstance(part, str) else next(rest) for part in found))
    if not made or (len(made) > 1 and indexes[-1:] == [place[-1]]):
        _refuse(_NO_EQUAL, name)
    # "-" stands for a new element. It must not become a field of a new element.
    if place[-1] == "-" != made[0][-1]:
        _refuse("a new element that is more than this value in the other version", name)
    return made


def _value(place: _Place, target: _Place, value: Raw, convert: _JsonConversion) -> Raw:
    try:
        found = Raw(convert(_holder(place, value)))
    except ConversionError as error:
        raise error.moved(partial(_in_operation, place)) from None
    for depth, part in enumerate(target):
        level = _level.decode(found)
        if isinstance(level, list) and len(level) > 1:  # `add_value` has added the other elements
            added = _elements(convert(_holder(place, _NULL)), target[:depth])
            level = [one for one in level if bytes(one) not in added]
        if isinstance(level, dict) and part in level:
            found = level[part]
        elif isinstance(level, list) and len(level) == 1:
            found = level[0]
        else:
            _refuse("a value that the other version cannot hold", "value")
    return found


def _elements(document: bytes, place: _Place) -> list[bytes]:
    """Return the elements that changes have added to an array of one null."""
    found = msgspec.json.decode(document)
    for part in place:
        found = found[0] if isinstance(found, list) else found[part]
    return [msgspec.json.encode(one) for one in found if one is not None]


def _in_operation(place: _Place, found: ErrorPlace) -> ErrorPlace:
    if isinstance(found, Beside):
        return found
    return ("path",) if len(found) < len(place) else ("value", *found[len(place) :])


def _holder(place: _Place, value: Raw) -> bytes:
    made: object = value
    for part in reversed(place):
        made = [made] if _is_index((part,)) else {part: made}
    return msgspec.json.encode(made)


def nulls(value: object, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if value is None:
        yield at
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from nulls(inner, (*at, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from nulls(inner, (*at, index))


def _refuse(reason: str, name: str) -> NoReturn:
    raise ConversionError(reason, (name,))
