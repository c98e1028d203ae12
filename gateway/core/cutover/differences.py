"""Comparison: in which fields two answers to one request differ.

A field is `status`, `header` and a name, or a place in the body: a JSON Pointer (RFC 6901) in which
the index of every array element is folded to `*`, so that a field of a thousand elements is one
field. A body that is not JSON is one field, `body`, as is the root of one that is.

What is the same is what a client in a typed language takes for the same:

- An integer is never the same as a number with a fraction or an exponent, for a reader of integers
  refuses `1.0`. Two of the latter are compared by their exact value: `1.10` is `1.1`.
- A field that is missing is not one that is null.
- The elements of an array have an order, the keys of an object have none.

Where the statuses differ, nothing else is compared: the bodies speak of different things.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from hashlib import blake2b
from typing import NamedTuple

from gateway.core.conversion.document import MISSING, Document
from gateway.core.conversion.field_path import pointer

# So many fields of one answer are told apart; objects may have keys without end.
_MOST_FIELDS = 32
_REST = "more fields"
_LONGEST_FIELD = 200
_LONGEST_SAMPLE = 200


class ComparedAnswer(NamedTuple):
    """What is compared of a response.

    Attributes:
        status: as the client got it.
        headers: the chosen ones, in lower case; their values line by line.
        body: a JSON document, or the bytes of what is none.
    """

    status: int
    headers: Mapping[str, tuple[str, ...]]
    body: Document


class Difference(NamedTuple):
    """Where two answers differ, and the values in the first such place; MISSING where none is."""

    field: str
    old: Document
    new: Document


@dataclass(frozen=True, slots=True)
class Ignored:
    """The known differences: places in the body, each with all that lies below it.

    In a place, `*` is any element of an array and any member of an object.
    """

    places: frozenset[tuple[str, ...]] = frozenset()

    def covers(self, field: str) -> bool:
        """Whether a field is one of them, or lies below one."""
        keys = field.split("/")
        return any(
            len(place) <= len(keys)
            and all(step in ("*", key) for step, key in zip(place, keys, strict=False))
            for place in self.places
        )


NOTHING = Ignored()


def parse_ignored(text: str) -> tuple[str, ...]:
    """Return the place that a JSON Pointer spells; `*` stands for every element or member.

    Raises:
        ValueError: with a sentence for the operator.
    """
    keys = tuple(text.split("/"))
    escapes = text.replace("~0", "").replace("~1", "")
    if len(keys) < 2 or keys[0] or "" in keys[1:] or "~" in escapes:
        # Changes name a field by its keys, so that this may be what was meant.
        parts = text.replace("[]", ".*").split(".")
        likely = all(parts) and "/" not in text and "~" not in text
        raise ValueError(
            f"'{text}' is not a place in a body; write a JSON Pointer, with * for the elements of"
            " an array or the members of an object, such as"
            f" /{'/'.join(parts) if likely else 'items/*/price'}"
        )
    return tuple("*" if key.isdecimal() else key for key in keys)


def number(text: str) -> Document:
    """Return what a JSON number is compared as; a fraction keeps every digit."""
    try:
        return Decimal(text) if set(text) & {".", "e", "E"} else int(text)
    except (InvalidOperation, ValueError):
        return Huge(text)  # beyond what can be reckoned with, so that the text has to do


@dataclass(frozen=True, slots=True)
class Huge:
    """A number of more digits than can be reckoned with."""

    text: str


def compare(
    old: ComparedAnswer, new: ComparedAnswer, ignored: Ignored = NOTHING
) -> tuple[Difference, ...]:
    """Return where two answers differ, each field once, in the order of the old answer."""
    if old.status != new.status:
        return (Difference("status", old.status, new.status),)
    found: dict[str, Difference] = {}
    for difference in _walk(old, new):
        field = difference.field[:_LONGEST_FIELD]
        if field in found or ignored.covers(difference.field):
            continue
        if len(found) == _MOST_FIELDS:
            found[_REST] = difference._replace(field=_REST)
            break
        found[field] = difference._replace(field=field)
    return tuple(found.values())


def without_noise(
    differences: Collection[Difference], noise: Collection[Difference]
) -> tuple[Difference, ...]:
    """Return the differences that do not lie at or below a field that is noise.

    Args:
        differences: between the old service's answer and the new one's.
        noise: between two answers of the old service.
    """
    noisy = [difference.field for difference in noise]
    return tuple(
        difference
        for difference in differences
        if not any(_at_or_below(difference.field, field) for field in noisy)
    )


def redacted(value: Document, key: bytes) -> str:
    """Return the type and size of a value, and a short keyed hash that tells like from unlike."""
    if value is MISSING or value is None or isinstance(value, bool):
        return _kind(value)
    text = plain(value, None)
    mark = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=3, key=key).hexdigest()
    size = f" of {len(value)}" if isinstance(value, str | bytes | list | dict) else ""
    return f"{_kind(value)}{size} #{mark}"


def plain(value: Document, longest: int | None = _LONGEST_SAMPLE) -> str:
    """Return a value as JSON, cut where it is too long to look at."""
    if value is MISSING:
        return "missing"
    if isinstance(value, bytes):
        text = value[: longest and longest * 4].decode("utf-8", "replace")
    else:
        text = json.dumps(value, ensure_ascii=False, default=_written)
    return text if longest is None or len(text) <= longest else f"{text[:longest]}…"


def _at_or_below(field: str, above: str) -> bool:
    if above == "body":
        return field == "body" or field.startswith("/")
    return field == above or field.startswith(f"{above}/")


def _walk(old: ComparedAnswer, new: ComparedAnswer) -> Iterator[Difference]:
    for name in dict.fromkeys((*old.headers, *new.headers)):
        before, after = old.headers.get(name, MISSING), new.headers.get(name, MISSING)
        if before != after:
            yield Difference(f"header {name}", before, after)
    yield from _values(old.body, new.body, "")


def _values(old: Document, new: Document, at: str) -> Iterator[Difference]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys((*old, *new)):
            place = at + pointer(key)
            yield from _values(old.get(key, MISSING), new.get(key, MISSING), place)
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            before = old[index] if index < len(old) else MISSING
            after = new[index] if index < len(new) else MISSING
            yield from _values(before, after, f"{at}/*")
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
