"""The formats of bodies that can be converted, by their media types."""

import re
from collections.abc import Collection, Iterable
from enum import Enum
from functools import lru_cache

from gateway.core.field_names import FieldNames

# RFC 8259, and the structured suffix of RFC 6839.
_JSON = re.compile(rb"application/(?:json|[!#$%&'*+\-.^_`|~0-9a-z]+\+json)\Z")
# Services and clients use few different types, which are cached. A Content-Type of more bytes is
# not cached, so that the cache stays small.
_SHORT = 256
_TYPE = b"content-type"
_DESCRIBING = FieldNames({_TYPE, b"content-encoding"})
_UTF_8 = (b"charset=utf-8", b'charset="utf-8"')


class BodyFormat(Enum):
    """The formats of bodies."""

    JSON = "JSON"
    MERGE_PATCH = "JSON Merge Patch"
    JSON_PATCH = "JSON Patch"
    FORM = "form"
    JSON_LINES = "JSON lines"
    JSON_SEQUENCE = "JSON text sequence"
    EVENT_STREAM = "event stream"
    OTHER = "other"


# No set: the hash of a member is computed by Python code.
STREAMS = (BodyFormat.JSON_LINES, BodyFormat.JSON_SEQUENCE, BodyFormat.EVENT_STREAM)
"""The formats of a series of documents, each of which is converted when it is whole."""

EMPTY_FORM = b"&"
"""A form without fields that is not empty; nothing between separators is no field (WHATWG URL,
section 5.1)."""

ERROR_TEXTS = frozenset(
    {"text/plain", "text/html", "text/xml", "application/xml", "application/xhtml+xml"}
)
"""Errors of these types are of a framework or a proxy, and the same in every version."""

_JSON_MARKS = (b",", b"[", b"{")
_MARKS = {
    BodyFormat.FORM: (b"&",),
    BodyFormat.JSON_LINES: (*_JSON_MARKS, b"\n"),
    BodyFormat.JSON_SEQUENCE: (*_JSON_MARKS, b"\n", b"\x1e"),
    BodyFormat.EVENT_STREAM: (*_JSON_MARKS, b"\n", b"\r"),
}
# A request by any other method has no body by custom (RFC 9110, section 9.3).
_WRITING = frozenset({"POST", "PUT", "PATCH"})
# For how many bytes other threads wait at a time.
_STEP = 64 * 1024

_TYPES = {
    b"application/merge-patch+json": BodyFormat.MERGE_PATCH,  # RFC 7396
    b"application/json-patch+json": BodyFormat.JSON_PATCH,  # RFC 6902
    b"application/x-www-form-urlencoded": BodyFormat.FORM,
    b"application/x-ndjson": BodyFormat.JSON_LINES,
    b"application/ndjson": BodyFormat.JSON_LINES,
    b"application/jsonl": BodyFormat.JSON_LINES,
    b"application/x-jsonl": BodyFormat.JSON_LINES,
    b"application/jsonlines": BodyFormat.JSON_LINES,
    b"application/x-jsonlines": BodyFormat.JSON_LINES,
    b"application/stream+json": BodyFormat.JSON_LINES,
    b"application/json-seq": BodyFormat.JSON_SEQUENCE,  # RFC 7464
    b"text/event-stream": BodyFormat.EVENT_STREAM,
}


BodyKind = tuple[BodyFormat, list[bytes]]
"""The format of a body, and the values of Content-Encoding."""


def described(fields: Iterable[tuple[bytes, bytes]]) -> BodyKind:
    """Return the format of a body, see `format_of`, and the values of Content-Encoding."""
    types: list[bytes] = []
    codings: list[bytes] = []
    known = _DESCRIBING.known
    for name, value in fields:
        try:
            found = known[name]
        except KeyError:
            found = _DESCRIBING.examine(name)
        if found is not None:
            (types if found == _TYPE else codings).append(value)
    if len(types) != 1:
        return BodyFormat.OTHER, codings
    given = types[0]
    return _remembered(given) if len(given) <= _SHORT else _format(given), codings


def is_stream(kind: BodyKind) -> bool:
    """Return whether a body is a stream of documents, which are converted one by one."""
    return kind[0] in STREAMS and not kind[1]


def format_of(fields: Iterable[tuple[bytes, bytes]]) -> BodyFormat:
    """Return the format of a body by its one Content-Type; OTHER for a charset but UTF-8."""
    return described(fields)[0]


def is_empty_form(method: str, fields: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return whether a request without a body has a form without fields, which is empty."""
    return method in _WRITING and format_of(fields) is BodyFormat.FORM


class ElementCount:
    """Counts the elements, members, lines or fields of a body, as its pieces come.

    Args:
        most: how many it may have.
        body_format: the format of the body.
    """

    def __init__(self, most: int, body_format: BodyFormat = BodyFormat.JSON) -> None:
        self._left = most
        self._marks = _MARKS.get(body_format, _JSON_MARKS)

    def exceeds(self, piece: bytes) -> bool:
        """Count a piece; return whether there may be too many with it."""
        # Each of them follows one of the marks; some marks are in texts. In steps, since other
        # threads wait during each; and no further than needed.
        for begin in range(0, len(piece), _STEP):
            end = begin + _STEP
            self._left -= sum(piece.count(mark, begin, end) for mark in self._marks)
            if self._left < 0:
                return True
        return False


def is_unconverted(fields: Iterable[tuple[bytes, bytes]], ranges: Collection[str]) -> bool:
    """Return whether one of the media ranges, such as `text/csv` or `image/*`, has the body's type.

    Args:
        fields: the header fields of the message.
        ranges: the media ranges, in lower case.
    """
    types = [value for name, value in fields if name.lower() == _TYPE] if ranges else []
    if len(types) != 1:
        return False
    essence = types[0].partition(b";")[0].strip(b" \t").lower().decode("latin-1")
    kind, slash, _ = essence.partition("/")
    return essence in ranges or f"{kind}{slash}*" in ranges


def _format(content_type: bytes) -> BodyFormat:
    essence, *parameters = (part.strip(b" \t").lower() for part in content_type.split(b";"))
    charsets = [parameter for parameter in parameters if parameter.startswith(b"charset=")]
    if not all(charset in _UTF_8 for charset in charsets):
        return BodyFormat.OTHER
    found = _TYPES.get(essence)
    if found is None:
        return BodyFormat.JSON if _JSON.match(essence) else BodyFormat.OTHER
    return found


_remembered = lru_cache(maxsize=128)(_format)
