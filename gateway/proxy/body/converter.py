"""The conversions of whole bodies, by their formats."""

from collections.abc import Callable, Sequence
from functools import partial
from io import BytesIO

from gateway.conversion.chain import BodyConversion
from gateway.conversion.formats import json_body, surrogates, text_encoding
from gateway.conversion.formats.body_format import BodyFormat
from gateway.conversion.formats.text_encoding import TextEncoding
from gateway.conversion.message.message import Message
from gateway.http import content_coding
from gateway.http.turns.thread_pace import Step
from gateway.proxy.body.conversion_room import ConversionRoom
from gateway.proxy.body.document_stream import converted_stream

# For how many bytes other threads wait at a time.
_STEP = 64 * 1024
_NEVER_SLOW = 16 * 1024  # bytes, though each may be half of a surrogate pair

WholeConversion = Callable[[bytes, BodyConversion, Message | None, Step], bytes]
"""Converts a whole body and its message; it may raise ConversionError, or what a step raises."""


def converter(body_format: BodyFormat, room: ConversionRoom) -> WholeConversion | None:
    """Return what converts a whole body of a format; None for a format without conversion.

    Args:
        body_format: the format.
        room: the bounds of each document of a stream.
    """
    # The formats beside JSON are imported when they are met: few APIs have them.
    match body_format:
        case BodyFormat.JSON | BodyFormat.MERGE_PATCH | BodyFormat.TEXT | BodyFormat.UNTYPED:
            return json_body.convert
        case BodyFormat.JSON_PATCH:
            return _convert_patch
        case BodyFormat.FORM:
            from gateway.conversion.formats.form_body import convert_form

            return convert_form
        case BodyFormat.OTHER | BodyFormat.PASSED:
            return None
        case _:
            return partial(_convert_documents, body_format, room)


def _convert_patch(
    body: bytes, conversion: BodyConversion, message: Message | None, step: Step
) -> bytes:
    from gateway.conversion.formats.json_patch import convert_patch

    encoding = text_encoding.detected(body)
    convert = convert_patch if encoding is None else in_encoding(encoding, convert_patch)
    return convert(body, conversion, message, step)


def in_encoding(encoding: TextEncoding, convert: WholeConversion) -> WholeConversion:
    """Return what converts a whole body in an encoding other than UTF-8."""

    def convert_encoded(
        body: bytes, conversion: BodyConversion, message: Message | None, step: Step
    ) -> bytes:
        def convert_text(text: bytes) -> bytes:
            return convert(text, conversion, message, step)

        try:
            return text_encoding.converted(encoding, body, convert_text, step)
        except UnicodeDecodeError:
            if encoding.codec == "ascii":  # of which UTF-8 is a superset
                return convert_text(body)
            raise json_body.NotJsonError(f"not {encoding.codec}, as its charset says") from None

    return convert_encoded


def _convert_documents(
    body_format: BodyFormat,
    room: ConversionRoom,
    body: bytes,
    conversion: BodyConversion,
    message: Message | None,
    step: Step,
) -> bytes:
    stream = converted_stream(body_format, conversion, room, message)
    converted = BytesIO()
    for begin in range(0, len(body), _STEP):  # a long event is searched for its end
        step()
        converted.write(stream.feed(body[begin : begin + _STEP], step))
    converted.write(stream.finish(step))
    return converted.getvalue()


def decoded_small(body: bytes, codings: Sequence[str], limit: int, most: int) -> bytes | None:
    """Return the decoded body if it is fast enough to be converted at once, else None."""
    size = len(body)
    if size > most:
        return None
    try:
        decoded = content_coding.decode(body, codings, min(limit, most))
        if (codings or size > _NEVER_SLOW) and surrogates.many(decoded):
            return None
        return decoded
    except content_coding.DecodedTooLargeError:
        if limit <= most:
            raise
        return None
