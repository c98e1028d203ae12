"""Comparison of two responses to the same request, field by field.

A field is `status`, `header` with a name, or a location in the body. A location is a JSON Pointer
(RFC 6901) with `*` for every array index, so all elements of an array share their fields. The root
of a JSON body and a body that is not JSON are the field `body`. A stream of documents is compared
as an array.

Two values are equal if a client in a typed language reads them as equal:

- An integer never equals a number with a fraction or an exponent, since integer parsers reject
`1.0`. Two numbers with a fraction or an exponent are compared by value: `1.10` equals `1.1`.
- A missing field does not equal a null field.
- Two URLs are equal if `ComparedAnswer.link` maps them to the same public URL.
- The order of array elements matters; the order of object keys does not.

If the statuses differ, nothing else is compared, since the bodies describe different results.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from hashlib import blake2b
from itertools import chain
from typing import NamedTuple, TypeVar

from gateway.conversion.document import MISSING, Document
from gateway.conversion.field_path import pointer
from gateway.conversion.scalars import Huge

# The maximum number of reported fields, since objects may have any number of keys.
_MOST_FIELDS = 32
_REST = "more fields"
_LONGEST_FIELD = 200
_LONGEST_SAMPLE = 200
_Headers = Mapping[str, tuple[str, ...]]


class ComparedAnswer(NamedTuple):
    """The parts of a response that are compared.

    Attributes:
        headers: The compared header fields by lower-case name, with one value for each field line.
        body: The body as a JSON document, or as bytes if it is not JSON.
        fault: The error if the response comes from the gateway, without values of the request;
            empty for a response of a service.
        link: Maps a URL of the service in the body to the URL for the client.
    """

    status: int
    headers: _Headers
    body: Document
    fault: str = ""
    link: Callable[[str], str] = str

    @property
    def outcome(self) -> str:
        return f"{self.status} {self.fault}".rstrip()


class Difference(NamedTuple):
    """A field in which two responses differ, with the values at the first location that differs."""

    field: str
    old: Document
    new: Document


class IgnoredPlaces(NamedTuple):
    """The locations in the body that are not compared.

    Attributes:
        places: For each location, the keys on the path from the root. `*` stands for any array
            element or object member. Everything below a location is also ignored.
        added: Whether object members that only the new response has are also ignored.
    """

    places: frozenset[tuple[str, ...]] = frozenset()
    added: bool = False

    def covers(self, field: str) -> bool:
        keys = field.split("/")
        return any(
            len(place) <= len(keys)
            and all(step in ("*", key) for step, key in zip(place, keys, strict=False))
            for place in self.places
        )


NOTHING = IgnoredPlaces()


class RefusedField(NamedTuple):
    """A part of a request that the service of another version would refuse.

    Attributes:
        field: The part: `operation`, `conversion`, `query` with a name, `header` with a name, or a
            location in the body. A location is a JSON Pointer with `*` for any array index, or
            `body` for the root.
        reason: A sentence about the violation; it may contain values.
    """

    field: str
    rule: str
    reason: str


_Field = TypeVar("_Field", Difference, RefusedField)


def refused_fields(
    found: Iterable[RefusedField], ignored: IgnoredPlaces = NOTHING
) -> tuple[RefusedField, ...]:
    return _each_once(found, ignored)


def parse_ignored(text: str) -> tuple[str, ...]:
    """Return the keys in a JSON Pointer, with `*` for any array element or object member.

    Raises:
        ValueError: The string is not a JSON Pointer to a location in a body. The message is for
            the operator.
    """
    keys = tuple(text.split("/"))
    escapes = text.replace("~0", "").replace("~1", "")
    if len(keys) < 2 or keys[0] or "" in keys[1:] or "~" in escapes:
        # If the string is a field path as in `changes`, the message suggests the equivalent
        # pointer.
        parts = text.replace("[]", ".*").split(".")
        likely = all(parts) and "/" not in text and "~" not in text
        raise ValueError(
            f"'{text}' is not a location in a body; write a JSON Pointer, with * for"
            " the elements of"
            " an array or the members of an object, such as"
            f" /{'/'.join(parts) if likely else 'items/*/price'}"
        )
    return tuple("*" if key.isdecimal() else key for key in keys)


def compare(
    old: ComparedAnswer, new: ComparedAnswer, ignored: IgnoredPlaces = NOTHING
) -> tuple[Difference, ...]:
    """Return each differing field of two responses once, in the order of the old response."""
    if old.status != new.status:
        return (Difference("status", old.outcome, new.outcome),)
    found = _values(old.body, new.body, "", added=not ignored.added)
    if old.link is not new.link:
        found = (each for each in found if not _same_link(each, old.link, new.link))
    if old.headers != new.headers:
        found = chain(_header_fields(old.headers, new.headers), found)
    return _each_once(found, ignored)


def without_noise(
    differences: Collection[Difference], noise: Collection[Difference]
) -> tuple[Difference, ...]:
    """Return the differences that are not noise.

    Args:
        noise: The differences between two responses of the old service to the same request. Fields
            at or below these locations are omitted.
    """
    noisy = [difference.field for difference in noise]
    return tuple(
        difference
        for difference in differences
        if not any(_at_or_below(difference.field, field) for field in noisy)
    )


def redacted(value: Document, key: bytes) -> str:
    """Return the type and size of a value, with a short keyed hash that distinguishes values."""
    if value is MISSING or value is None or isinstance(value, bool):
        return _kind(value)
    text = plain(value, None)
    mark = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=3, key=key).hexdigest()
    size = f" of {len(value)}" if isinstance(value, str | bytes | list | dict) else ""
    return f"{_kind(value)}{size} #{mark}"


def plain(value: Document, longest: int | None = _LONGEST_SAMPLE) -> str:
    """Return a value as JSON, truncated to `longest` characters; None does not truncate."""
    if value is MISSING:
        return "missing"
    if isinstance(value, bytes):
        start = value[: longest and longest * 4].decode("utf-8", "replace")
        text = "".join(one if one.isprintable() else repr(one)[1:-1] for one in start)
    else:
        text = _as_json(value)
    return text if longest is None else truncated(text, longest)


def truncated(text: str, longest: int = _LONGEST_SAMPLE) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"


def _each_once(found: Iterable[_Field], ignored: IgnoredPlaces) -> tuple[_Field, ...]:
    fields: dict[str, _Field] = {}
    for each in found:
        field = each.field[:_LONGEST_FIELD]
        if field in fields or ignored.covers(each.field):
            continue
        if len(fields) == _MOST_FIELDS:
            fields[_REST] = each._replace(field=_REST)
            break
        fields[field] = each._replace(field=field)
    return tuple(fields.values())


def _at_or_below(field: str, above: str) -> bool:
    if above == "body":
        return field == "body" or field.startswith("/")
    return field == above or field.startswith(f"{above}/")


def _header_fields(old: _Headers, new: _Headers) -> Iterator[Difference]:
    for name in dict.fromkeys((*old, *new)):
        before, after = old.get(name, MISSING), new.get(name, MISSING)
        if before != after:
            yield Difference(f"header {name}", before, after)


def _same_link(
    found: Difference, old_link: Callable[[str], str], new_link: Callable[[str], str]
) -> bool:
    old, new = found.old, found.new
    if not isinstance(old, str) or not isinstance(new, str) or not ("//" in old and "//" in new):
        return False
    return old_link(old) == new_link(new)


def _values(old: Document, new: Document, at: str, *, added: bool) -> Iterator[Difference]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys((*old, *new) if added else old):
            place = at + pointer(key)
            yield from _values(old.get(key, MISSING), new.get(key, MISSING), place, added=added)
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            before = old[index] if index < len(old) else MISSING
            after = new[index] if index < len(new) else MISSING
            yield from _values(before, after, f"{at}/*", added=added)
    elif type(old) is not type(new) or old != new:
        yield Difference(at or "body", old, new)


def _kind(value: Document) -> str:
    if value is MISSING:
        return "missing"
    return "null" if value is None else _KINDS.get(type(value), "number")


_KINDS: Mapping[type, str] = {
    bool: "boolean",
    str: "text",
    bytes: "bytes",
    list: "array",
    tuple: "header",
    dict: "object",
}


def _written(value: object) -> object:
    return value.text if isinstance(value, Huge) else str(value)


# With these arguments, json.dumps would create a new encoder for each value.
_as_json = json.JSONEncoder(ensure_ascii=False, default=_written).encode
