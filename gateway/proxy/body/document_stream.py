"""Makes what converts the stream of documents of a format, within the bounds of a room."""

from gateway.conversion.chain import BodyConversion
from gateway.conversion.formats import json_body
from gateway.conversion.formats.body_format import BodyFormat, ElementCount
from gateway.conversion.formats.document_stream import ConvertedStream
from gateway.conversion.message.message import Message
from gateway.http.content_coding import DecodedTooLargeError
from gateway.http.turns.thread_pace import Step
from gateway.proxy.body.conversion_budget import AT_ONCE
from gateway.proxy.body.conversion_room import ConversionRoom

_CONTAINERS = (b"{", b"[")


def converted_stream(
    body_format: BodyFormat,
    conversion: BodyConversion,
    room: ConversionRoom,
    message: Message | None,
    *,
    strict: bool = False,
) -> ConvertedStream:
    """Return what converts a stream of documents, each within the bounds of the room.

    Args:
        body_format: the format of the stream.
        conversion: the conversion of each document.
        room: the bounds of each document.
        message: the message that has the stream; None where nothing of it is known.
        strict: whether text that is not JSON is refused; else it passes, as `[DONE]` does.
    """
    conversion = conversion.of_documents

    def convert(document: bytes, step: Step) -> bytes:
        if not strict and not document.lstrip(b" \t\n\r").startswith(_CONTAINERS):
            return document
        if len(document) > AT_ONCE and ElementCount(room.elements).exceeds(document):
            raise DecodedTooLargeError(f"a document of more than {room.elements} elements")
        # The head of the message is sent before its documents, which cannot change it.
        copy = None if message is None else message.copied()
        try:
            return json_body.convert(document, conversion, copy, step)
        except json_body.NotJsonError:
            if strict:
                raise
            return document

    if body_format is BodyFormat.JSON_LINES:
        from gateway.conversion.formats.document_stream import JsonLineStream

        return JsonLineStream(convert, room.limit)
    if body_format is BodyFormat.JSON_SEQUENCE:
        from gateway.conversion.formats.json_sequence import JsonSequenceStream

        return JsonSequenceStream(convert, room.limit)
    from gateway.conversion.formats.event_stream import EventStream

    return EventStream(convert, room.limit, room.elements, conversion)
