"""Conversion of forms: `application/x-www-form-urlencoded` (WHATWG URL, section 5).

A form is converted as an object of strings: a repeated name is an array. If a version does not
accept forms, the conversion to that version turns a form into JSON.

Only fields that a change alters are rewritten. Some clients, such as curl, send JSON or plain text
with the media type of forms. Such a body is not converted.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from types import MappingProxyType
from urllib.parse import quote_plus, unquote_to_bytes

import msgspec

from gateway.base.headers import HeaderFields, end_to_end
from gateway.conversion.chain import BodyConversion
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import PLAIN, Document, JsonObject, kind, within
from gateway.conversion.field_path import Tokens
from gateway.conversion.formats import large_json
from gateway.conversion.formats.body_format import EMPTY_FORM
from gateway.conversion.message import Message
from gateway.conversion.scalars import NUMBER_TEXT, WORDS
from gateway.conversion.unfit import Unfit
from gateway.conversion.version_step import Direction, VersionLink
from gateway.http.cooperative import Step, no_step

# Maximum bytes per call of urllib. A call needs 85 times the memory of its input, and no other
# thread runs during the call.
_STEP = 16 * 1024
# Matches a body whose first name has a character that clients always escape. It is not a form.
_TEXT = re.compile(rb'[^=&]*[\x00-\x20"<>\\^`{|}]')
_json_text = msgspec.json.Decoder(msgspec.Raw).decode


def convert_form(
    body: bytes,
    conversion: BodyConversion,
    message: Message | None = None,
    step: Step = no_step,
) -> bytes:
    """Convert a form to a form or to JSON; return the same object if no change alters it.

    Raises:
        ConversionError: The body does not fit the declared changes, the result has a value that a
            form cannot hold (null or an object), or the body becomes JSON but is not UTF-8.
    """
    if _is_json(body):
        return body
    names, texts = _read(body, step)
    fields = _fields(texts)
    form = replace(FORM, message=message)
    try:
        begin = json_from(conversion)
        if begin is not None:
            return body if _is_text(body) else _json(fields, conversion, begin, message)
        converted = conversion.convert(fields, form)
        try:
            return _rewritten(body, names, texts, converted)
        except ConversionError as error:
            raise error.moved(conversion.origin) from None
    except ConversionError as error:
        raise within(error, fields, form) from None


def read_form(body: bytes, step: Step = no_step) -> JsonObject:
    """Return the fields of a form. Bytes that are not UTF-8 become surrogates."""
    return _fields(_read(body, step)[1])


def _read(body: bytes, step: Step) -> tuple[list[str | None], dict[str, list[str]]]:
    names: list[str | None] = []
    texts: dict[str, list[str]] = {}
    for pair in body.split(b"&"):
        step()
        name, _, value = pair.partition(b"=")
        names.append(_decoded(name) if pair else None)
        if pair:
            texts.setdefault(names[-1] or "", []).append(_decoded(value))
    return names, texts


def _fields(texts: dict[str, list[str]]) -> JsonObject:
    return {name: some if some[1:] else some[0] for name, some in texts.items()}


def write_form(document: Document) -> bytes:
    """Return a document as a form; raises ConversionError if a form cannot hold it."""
    texts = _texts(document)
    return b"&".join([_pair(name, text) for name, some in texts.items() for text in some])


def _rewritten(
    body: bytes, names: list[str | None], given: dict[str, list[str]], converted: Document
) -> bytes:
    made = _texts(converted)
    if made == given:
        return b"" if body is EMPTY_FORM else body
    pairs = body.split(b"&") if given else []
    instead: dict[int, list[bytes]] = {}
    spelled: dict[str, bytes] = {}
    places: dict[str, list[int]] = {}
    for index, name in enumerate(names if given else ()):
        if name is not None:
            places.setdefault(name, []).append(index)
    for name, indexes in places.items():
        texts = made.get(name, [])
        for number, (index, text) in enumerate(zip(indexes, given[name], strict=True)):
            written, sign, value = pairs[index].partition(b"=")
            if number >= len(texts):
                instead[index] = []
                spelled[text] = sign + value
            elif texts[number] != text:
                instead[index] = [written + b"=" + _coded(texts[number])]
        if more := texts[len(indexes) :]:
            last = indexes[-1]
            instead[last] = [*instead.get(last, (pairs[last],)), *(_pair(name, t) for t in more)]
    if given and not instead and _is_text(body):
        return body
    ahead = _place_new(made, places, instead, spelled, len(pairs))
    written_pairs: list[bytes] = []
    for index, pair in enumerate(pairs):
        written_pairs += ahead.get(index, ())
        written_pairs += instead.get(index, (pair,))
    return b"&".join([*written_pairs, *ahead.get(len(pairs), ())])


def _place_new(
    made: dict[str, list[str]],
    places: dict[str, list[int]],
    instead: dict[int, list[bytes]],
    spelled: dict[str, bytes],
    end: int,
) -> dict[int, list[bytes]]:
    """Put new fields at the positions of removed fields; return the pairs that remain.

    A value that only moves to another name keeps its bytes. The result has the new pairs by the
    index of the original pair that follows them.
    """
    behind: dict[str, int] = {}
    following = end
    for name in reversed(made):
        following = places[name][0] if name in places else following
        behind[name] = following
    free = deque(sorted(index for index, pairs in instead.items() if not pairs))
    ahead: dict[int, list[bytes]] = {}
    before = -1
    for name, texts in made.items():
        if name in places:
            before = places[name][0]
            continue
        pairs = deque(_pair(name, text, spelled) for text in texts)
        rest = ahead.setdefault(behind[name], [])
        while free and free[0] < before:
            free.popleft()
        while pairs and free and free[0] < behind[name]:
            rest = instead[free.popleft()]
            rest.append(pairs.popleft())
        rest += pairs
    return ahead


def _pair(name: str, text: str, spelled: Mapping[str, bytes] = MappingProxyType({})) -> bytes:
    return _coded(name) + (spelled[text] if text in spelled else b"=" + _coded(text))


def _texts(document: Document) -> dict[str, list[str]]:
    if not isinstance(document, dict):
        raise ConversionError(f"becomes {kind(document)}, which a form cannot hold")
    texts: dict[str, list[str]] = {}
    for name, text in _pairs(document):
        texts.setdefault(name, []).append(text)
    return texts


def is_form(body: bytes) -> bool:
    return not (_is_json(body) or _is_text(body))


def _is_json(body: bytes) -> bool:
    if not body.lstrip(b" \t\r\n").startswith((b"{", b"[", b'"')):
        return False
    try:
        _json_text(body)
    except msgspec.MsgspecError:
        return False
    return True


def _is_text(body: bytes) -> bool:
    return body.strip(b"&") != b"" and (b"=" not in body or _TEXT.match(body) is not None)


def typed(fields: Document, links: Sequence[VersionLink], *, of_request: bool = False) -> Document:
    for link in links:
        if link.older == links[0].older and link.forms is not None:
            if not isinstance(fields, dict):
                raise ConversionError(f"becomes {kind(fields)}, which a form cannot hold")
            _check_utf8(fields)
            keeps = of_request and link.unfit.requests is not Unfit.REFUSE
            fields = link.forms.typed(fields, keeps=keeps)
    return fields


def json_from(conversion: BodyConversion) -> int | None:
    """Return the index of the first link that converts JSON; None if a form stays a form."""
    newer = conversion.direction is Direction.DOWN
    known = [link.older for link in conversion.links]
    for link in conversion.links:
        if link.forms is not None and link.forms.in_newer is newer:
            return known.index(link.older)
    return None


def retyped(fields: HeaderFields, conversion: BodyConversion) -> HeaderFields:
    if json_from(conversion) is None:
        return fields
    return [*end_to_end(fields, _TYPE), (b"Content-Type", b"application/json")]


def _json(
    fields: JsonObject, conversion: BodyConversion, begin: int, message: Message | None
) -> bytes:
    """Convert a form to JSON. Links before the index `begin` convert the form itself."""
    before, behind = conversion.split_at(begin)
    document = before.convert(fields, replace(FORM, message=message))
    try:
        document = typed(document, behind.links, of_request=conversion.of_request)
        return large_json.encode(behind.convert(document, replace(PLAIN, message=message)))
    except ConversionError as error:
        raise error.moved(before.origin) from None


def _pairs(fields: JsonObject) -> Iterator[tuple[str, str]]:
    for name, value in fields.items():
        for one in value if isinstance(value, list) else (value,):
            if isinstance(one, bool):
                yield name, WORDS[one]
            elif isinstance(one, str):
                yield name, one
            elif (digits := _digits(one)) is not None:
                yield name, digits
            else:
                place = name, *_first(one)
                reason = f"becomes {kind(one)}, which a form cannot hold"
                if place[1:]:
                    nested = f"{name}{''.join(f'[{token}]' for token in place[1:])}"
                    reason += f"; changes name its nested field as '{nested}'"
                raise ConversionError(reason, place)


def _first(value: Document) -> Tokens:
    if not isinstance(value, dict) or not value:
        return ()
    key = next(iter(value))
    return (key, *_first(value[key]))


def _decoded(text: bytes) -> str:
    """Decode a name or value. Bytes that are not UTF-8 become surrogates."""
    text = text.replace(b"+", b" ")
    if len(text) <= _STEP:
        return unquote_to_bytes(text).decode(errors="surrogateescape")
    decoded, begin = BytesIO(), 0
    while begin < len(text):
        end = begin + _STEP
        cut = text.rfind(b"%", end - 2, end)  # an escape is not split
        end = end if cut < 0 else cut
        decoded.write(unquote_to_bytes(text[begin:end]))
        begin = end
    return decoded.getvalue().decode(errors="surrogateescape")


def _coded(text: str) -> bytes:
    steps = range(0, len(text), _STEP)
    parts = (quote_plus(text[at : at + _STEP], errors="surrogateescape") for at in steps)
    return "".join(parts).encode()


def _check_utf8(value: Document) -> None:
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    if isinstance(value, list):
        for inner in value:
            _check_utf8(inner)
    elif isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ConversionError("not a form in UTF-8 (WHATWG URL, section 5.1)") from None


def _parse(value: Document) -> Document:
    _check_utf8(value)
    return PLAIN.parse(value)


def _digits(value: Document) -> str | None:
    if isinstance(value, str):
        return value if NUMBER_TEXT.match(value) else None
    return PLAIN.digits(value)


_TYPE = frozenset({b"content-type"})
FORM = replace(PLAIN, digits=_digits, number=str, parse=_parse, typed=False)
