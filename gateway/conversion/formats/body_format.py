"""The formats of bodies that can be converted, by their media types."""

import re
from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Final

from gateway.base.headers import FieldNames
from gateway.conversion.formats.text_encoding import TextEncoding, declared

NO_TYPE: Final = "none"
"""The placeholder for a missing Content-Type in a list of media types."""

# A media type with a structured suffix: +json (RFC 6839) or +json-seq (RFC 8091).
_SUFFIX = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+/[!#$%&'*+\-.^_`|~0-9a-z]+\+(json|json-seq)\Z")
# A member of a list: commas inside quoted strings do not separate (RFC 9110, section 5.6.1).
_MEMBER = re.compile(rb'(?:[^,"]|"(?:[^"\\]|\\.)*+"?)++')
_VALID = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+/[!#$%&'*+\-.^_`|~0-9A-Za-z]+[ \t]*(?:;|\Z)")
_SHORT = 256
_TYPE = b"content-type"
_DESCRIBING = FieldNames({_TYPE, b"content-encoding"})
_CHARSET = b"charset="
# Charsets that are treated as UTF-8: other names of UTF-8, and names of its subset ASCII.
_LIKE_UTF_8 = (b"utf8", b"us-ascii", b"ascii")


class BodyFormat(Enum):
    JSON = "JSON"
    MERGE_PATCH = "JSON Merge Patch"
    JSON_PATCH = "JSON Patch"
    FORM = "form"
    JSON_LINES = "JSON lines"
    JSON_SEQUENCE = "JSON text sequence"
    EVENT_STREAM = "event stream"
    YAML = "YAML"
    TEXT = "text that may be JSON"
    UNTYPED = "body without a type that may be JSON"
    PASSED = "passed unchanged"
    OTHER = "other"


# A tuple is faster than a set here: the hash of an Enum member is computed by Python code.
STREAMS = (BodyFormat.JSON_LINES, BodyFormat.JSON_SEQUENCE, BodyFormat.EVENT_STREAM)
"""The formats of a series of documents. Each document is converted as soon as it is complete."""

EMPTY_FORM = b"&"
"""The body to use for a form without fields, since an empty body would mean that there is no body.
An empty string beside a separator is not a field (WHATWG URL, section 5.1)."""

ERROR_TEXTS = frozenset(
    {"text/plain", "text/html", "text/xml", "application/xml", "application/xhtml+xml"}
)
"""Media types of error responses that frameworks or proxies write. They are the same in all
versions."""

_JSON_MARKS = (b",", b"[", b"{")
_MARKS = {
    BodyFormat.FORM: (b"&",),
    BodyFormat.JSON_LINES: (*_JSON_MARKS, b"\n"),
    BodyFormat.JSON_SEQUENCE: (*_JSON_MARKS, b"\n", b"\x1e"),
    BodyFormat.EVENT_STREAM: (*_JSON_MARKS, b"\n", b"\r"),
    BodyFormat.YAML: (*_JSON_MARKS, b"\n"),
}
# Methods of requests that usually have a body (RFC 9110, section 9.3).
_WRITING = frozenset({"POST", "PUT", "PATCH"})
# Maximum bytes of one step. Other threads wait during a step.
_STEP = 64 * 1024

_TYPES = {
    b"application/json": BodyFormat.JSON,  # RFC 8259
    # Media types used before application/json was registered, and script types used for JSON.
    b"text/json": BodyFormat.JSON,
    b"text/x-json": BodyFormat.JSON,
    b"application/x-json": BodyFormat.JSON,
    b"application/javascript": BodyFormat.JSON,
    b"application/x-javascript": BodyFormat.JSON,
    b"text/javascript": BodyFormat.JSON,
    b"text/x-javascript": BodyFormat.JSON,
    # Default media types of frameworks, sometimes sent with JSON bodies.
    b"text/plain": BodyFormat.TEXT,
    b"text/html": BodyFormat.TEXT,
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
    b"application/apply-patch+yaml": BodyFormat.YAML,  # server-side apply of Kubernetes
}


_READINGS = {
    "json": BodyFormat.JSON,
    "json_lines": BodyFormat.JSON_LINES,
    "yaml": BodyFormat.YAML,
    "pass": BodyFormat.PASSED,
}
MAYBE_JSON = (BodyFormat.TEXT, BodyFormat.UNTYPED)
NO_TYPES: Mapping[str, str] = {}


BodyKind = tuple[BodyFormat, list[bytes], TextEncoding | None]
"""The format of a body, the values of its Content-Encoding, and its text encoding.

The text encoding is None for UTF-8 and for encodings that are detected from the first bytes."""


def described(
    fields: Iterable[tuple[bytes, bytes]], media_types: Mapping[str, str] = NO_TYPES
) -> BodyKind:
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
    if types and (given := _last_type(types)):
        kind, encoding = _remembered(given) if len(given) <= _SHORT else _format(given)
        if media_types and (own := _declared(given, media_types)) is not None:
            kind, encoding = own
        return kind, codings, encoding
    reading = media_types.get(NO_TYPE)
    return BodyFormat.UNTYPED if reading is None else _READINGS[reading], codings, None


def is_stream(kind: BodyKind) -> bool:
    return kind[0] in STREAMS and not kind[1]


def format_of(fields: Iterable[tuple[bytes, bytes]]) -> BodyFormat:
    return described(fields)[0]


def is_empty_form(method: str, body_format: BodyFormat) -> bool:
    return method in _WRITING and body_format is BodyFormat.FORM


def passes(
    fields: Iterable[tuple[bytes, bytes]], media_types: Mapping[str, str], status: int
) -> bool:
    found, _, _ = described(fields, media_types)
    if found is BodyFormat.PASSED:
        return True
    return (
        status >= 400
        and is_in_ranges(fields, ERROR_TEXTS)
        and not is_in_ranges(fields, media_types)
    )


class ElementCount:
    """Counts the elements, members, lines or fields of a body that arrives in pieces."""

    def __init__(self, most: int, body_format: BodyFormat = BodyFormat.JSON) -> None:
        self._left = most
        self._marks = _MARKS.get(body_format, _JSON_MARKS)

    def exceeds(self, piece: bytes) -> bool:
        # Each element follows one of the marks, but marks inside strings are counted too. The count
        # runs in short steps because other threads wait during a step. It stops at the limit.
        for begin in range(0, len(piece), _STEP):
            end = begin + _STEP
            self._left -= sum(piece.count(mark, begin, end) for mark in self._marks)
            if self._left < 0:
                return True
        return False


def is_in_ranges(fields: Iterable[tuple[bytes, bytes]], ranges: Collection[str]) -> bool:
    types = [value for name, value in fields if name.lower() == _TYPE] if ranges else []
    return bool(types) and any(each in ranges for each in _ranges(_last_type(types)))


def _last_type(values: list[bytes]) -> bytes:
    """Return the last valid media type in values of Content-Type, which should have only one.

    Recipients read repeated ones in this way (RFC 9110, section 8.3; WHATWG Fetch, "extract a MIME
    type"). Frameworks and the proxies in front of them sometimes each add the field.
    """
    if len(values) == 1 and b"," not in values[0]:
        return values[0]
    members = [member.strip(b" \t") for value in values for member in _MEMBER.findall(value)]
    return next((member for member in reversed(members) if _VALID.match(member)), values[-1])


def _ranges(content_type: bytes) -> tuple[str, str]:
    essence = content_type.partition(b";")[0].strip(b" \t").lower().decode("latin-1")
    kind, slash, _ = essence.partition("/")
    return essence, f"{kind}{slash}*"


_Text = tuple[BodyFormat, TextEncoding | None]


def _declared(content_type: bytes, media_types: Mapping[str, str]) -> _Text | None:
    for name in _ranges(content_type):
        if name in media_types:
            return _in_charset(_READINGS[media_types[name]], _charsets(content_type))
    return None


def _format(content_type: bytes) -> _Text:
    essence = content_type.partition(b";")[0].strip(b" \t").lower()
    found = _TYPES.get(essence)
    if found is None:
        suffix = _SUFFIX.match(essence)
        found = BodyFormat.OTHER if suffix is None else _TYPES[b"application/" + suffix[1]]
    return _in_charset(found, _charsets(content_type))


def _charsets(content_type: bytes) -> set[bytes]:
    parameters = (part.strip(b" \t").lower() for part in content_type.split(b";")[1:])
    charsets = (one[len(_CHARSET) :] for one in parameters if one.startswith(_CHARSET))
    return {charset.strip(b'"') for charset in charsets} - {b"utf-8"}


def _in_charset(found: BodyFormat, charsets: set[bytes]) -> _Text:
    """Return a format with the text encoding for a charset.

    An unknown charset is ignored, because most unknown names are other names of UTF-8.
    """
    if not charsets or found in (BodyFormat.OTHER, BodyFormat.PASSED, BodyFormat.EVENT_STREAM):
        return found, None  # an event stream is UTF-8 (WHATWG HTML, section 9.2.5)
    try:
        (charset,) = charsets
        if charset in _LIKE_UTF_8:
            return found, None
        encoding = declared(charset.decode("latin-1"))
    except (LookupError, ValueError):
        return found, None
    # Streams are always read as UTF-8.
    return found, None if found in STREAMS else encoding


_remembered = lru_cache(maxsize=128)(_format)
