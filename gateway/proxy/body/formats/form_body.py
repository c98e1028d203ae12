"""Conversion of forms: `application/x-www-form-urlencoded` (WHATWG URL, section 5).

A form is converted as an object of texts: each name is a field, and a name that occurs several
times is an array. A form has no types, so where a change expects a number or a boolean, its text
is taken for one. Where a version takes no forms, a form becomes JSON on the way to it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from urllib.parse import quote_plus, unquote_to_bytes

from gateway.core.conversion.chain import BodyConversion
from gateway.core.conversion.conversion_error import ConversionError
from gateway.core.conversion.document import PLAIN, Document, JsonObject, kind, within
from gateway.core.conversion.field_path import Tokens
from gateway.core.conversion.message.message import Message
from gateway.core.conversion.scalars import NUMBER_TEXT, WORDS
from gateway.core.conversion.version_link import Direction, VersionLink
from gateway.core.headers import HeaderFields, end_to_end
from gateway.proxy.body import json_encoding
from gateway.proxy.turns.thread_pace import Step, no_step

# What urllib decodes and encodes at once takes 85 times the memory of its bytes, and no other
# thread runs meanwhile.
_STEP = 16 * 1024


def convert_form(
    body: bytes,
    conversion: BodyConversion,
    message: Message | None = None,
    step: Step = no_step,
) -> bytes:
    """Return a converted form, or the JSON that it becomes.

    Args:
        body: the form.
        conversion: the conversion.
        message: the message that has the form; None where nothing of it is known.
        step: is called between the steps.

    Raises:
        ConversionError: the body is not a form in UTF-8, does not fit the declared changes, or
            would need a value that a form cannot hold: null, or an object.
    """
    fields = read_form(body, step)
    form = replace(FORM, message=message)
    try:
        begin = json_from(conversion)
        if begin is not None:
            return _json(fields, conversion, begin, message)
        converted = conversion.convert(fields, form)
        try:
            return write_form(converted)
        except ConversionError as error:
            raise error.moved(conversion.origin) from None
    except ConversionError as error:
        raise within(error, fields, form) from None


def read_form(body: bytes, step: Step = no_step) -> JsonObject:
    """Return the fields of a form; raises ConversionError, or what a step raises."""
    texts: dict[str, list[Document]] = {}
    try:
        body.decode("ascii")
        for field in body.split(b"&"):
            if field:
                name, _, value = field.partition(b"=")
                texts.setdefault(_decoded(name), []).append(_decoded(value))
            step()
    except UnicodeDecodeError:
        raise ConversionError("not a form in UTF-8 (WHATWG URL, section 5.1)") from None
    return {name: some if some[1:] else some[0] for name, some in texts.items()}


def write_form(document: Document) -> bytes:
    """Return the form that a document becomes; raises ConversionError for one that none holds."""
    if not isinstance(document, dict):
        raise ConversionError(f"becomes {kind(document)}, which a form cannot hold")
    return "&".join(f"{_coded(name)}={_coded(value)}" for name, value in _pairs(document)).encode()


def typed(fields: Document, links: Sequence[VersionLink], *, of_request: bool = False) -> Document:
    """Return the document that the fields of a form become at the first of these links.

    Args:
        fields: the fields.
        links: the links.
        of_request: whether a link may keep what does not fit.

    Raises:
        ConversionError: a text is not one of its type, or there are no fields.
    """
    for link in links:
        if link.older == links[0].older and link.forms is not None:
            if not isinstance(fields, dict):
                raise ConversionError(f"becomes {kind(fields)}, which a form cannot hold")
            fields = link.forms.typed(fields, keeps=of_request and link.keeps_unfit)
    return fields


def json_from(conversion: BodyConversion) -> int | None:
    """Return the first link that is of JSON, whatever the form; None where it stays a form."""
    newer = conversion.direction is Direction.DOWN
    known = [link.older for link in conversion.links]
    for link in conversion.links:
        if link.forms is not None and link.forms.in_newer is newer:
            return known.index(link.older)
    return None


def retyped(fields: HeaderFields, conversion: BodyConversion) -> HeaderFields:
    """Return the header fields of a converted form, which is JSON where it becomes that."""
    if json_from(conversion) is None:
        return fields
    return [*end_to_end(fields, _TYPE), (b"Content-Type", b"application/json")]


def _json(
    fields: JsonObject, conversion: BodyConversion, begin: int, message: Message | None
) -> bytes:
    """Return the JSON that a form becomes; the links before `begin` convert texts."""
    links, direction, asking = conversion.links, conversion.direction, conversion.of_request
    before = BodyConversion(links[:begin], direction, asking)
    document = before.convert(fields, replace(FORM, message=message))
    try:
        document = typed(document, links[begin:], of_request=asking)
        behind = BodyConversion(links[begin:], direction, asking)
        return json_encoding.encode(behind.convert(document, replace(PLAIN, message=message)))
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
                reason = f"becomes {kind(one)}, which a form cannot hold"
                raise ConversionError(reason, (name, *_first(one)))


def _first(value: Document) -> Tokens:
    """Return where the first value is that an object has, which fields have become."""
    if not isinstance(value, dict) or not value:
        return ()
    key = next(iter(value))
    return (key, *_first(value[key]))


def _decoded(text: bytes) -> str:
    """Return a name or a value; raises UnicodeDecodeError."""
    text = text.replace(b"+", b" ")
    if len(text) <= _STEP:
        return unquote_to_bytes(text).decode()
    decoded, begin = BytesIO(), 0
    while begin < len(text):
        end = begin + _STEP
        cut = text.rfind(b"%", end - 2, end)  # no step ends within an escape
        end = end if cut < 0 else cut
        decoded.write(unquote_to_bytes(text[begin:end]))
        begin = end
    return decoded.getvalue().decode()


def _coded(text: str) -> str:
    if len(text) <= _STEP:
        return quote_plus(text)
    steps = range(0, len(text), _STEP)
    return "".join([quote_plus(text[begin : begin + _STEP]) for begin in steps])


def _digits(value: Document) -> str | None:
    """Return the digits of a text that is one of a number, or of a number that a change adds."""
    if isinstance(value, str):
        return value if NUMBER_TEXT.match(value) else None
    return PLAIN.digits(value)


_TYPE = frozenset({b"content-type"})
FORM = replace(PLAIN, digits=_digits, number=str, typed=False)
"""How a form holds the values of a document."""
