"""Conversion of bodies between versions. Failures are raised as FaultError."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from io import BytesIO
from itertools import chain

from gateway.base.errors import Fault, FaultCode, FaultError, conversion_failed, unconvertible
from gateway.base.headers import HeaderFields, end_to_end, is_byte_part
from gateway.conversion.chain import BodyConversion
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.formats import json_body, placeholders
from gateway.conversion.formats.body_format import (
    MAYBE_JSON,
    NO_TYPES,
    STREAMS,
    BodyFormat,
    BodyKind,
    ElementCount,
    described,
)
from gateway.conversion.formats.streams import (
    ConvertedStream,
    EventStream,
    JsonLineStream,
    JsonSequenceStream,
    SeriesSearch,
    TextSearch,
)
from gateway.conversion.formats.text_encoding import TextEncoding
from gateway.conversion.formats.whole_body import CONVERSIONS, WholeConversion, in_encoding
from gateway.conversion.message import Message
from gateway.http import content_coding
from gateway.http.content_coding import ContentCodingError, DecodedTooLargeError, StreamDecoder
from gateway.http.cooperative import CooperativeRunner, Step, no_step
from gateway.http.upstream.upstream import RequestBody, UpstreamHead
from gateway.proxy import conversion_threads
from gateway.proxy.conversion_budget import AT_ONCE, PATIENCE, ConversionShare, overloaded

_JSON = BodyFormat.JSON  # reading the member from its class is ten times slower
# Light bodies do not wait for heavy bodies. A light body has at most _LIGHT bytes and _FEW
# elements. A light piece of a stream has at most _LIGHT_PIECE bytes, including bytes that were held
# back before it.
_LIGHT, _FEW, _LIGHT_PIECE = 16 * AT_ONCE, 50_000, 4 * AT_ONCE
# The size limit for the conversion of forms and patches on the event loop. It is lower because they
# take several times as long as JSON of the same size.
_AT_ONCE_BESIDE_JSON = AT_ONCE // 4
# The maximum number of lines to convert on the event loop. Even a short line takes some
# microseconds.
_LINES_AT_ONCE = 500
# A body of at most this number of bytes takes at most a third of a millisecond, and is converted at
# once. Larger bodies take turns, because AT_ONCE bytes with as many elements take 20 ms. Compressed
# bodies take turns too, because a few hundred compressed bytes can decode to AT_ONCE bytes.
_NO_TURN = 1024
# If no data follows the first document and its line feed for this number of seconds, the body is
# treated as a series of documents.
_MOMENT = 0.05
# If a body of unknown length does not begin within this number of seconds, the head of the response
# is sent without waiting for the body.
_SILENCE = 1.0
_turns = CooperativeRunner(PATIENCE, overloaded)

# Matches the beginning of a JSON object or array, or of JSON in UTF-16 or UTF-32.
_MAY_HAVE_FIELDS = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*(?:[\[{\0]|\xff\xfe|\xfe\xff|[^\0]\0)")
NOT_JSON = "This version accepts JSON bodies: application/json."
# The maximum bytes of a stream that are converted before other threads may run.
_STEP = 64 * 1024
# Bodies up to this number of bytes are converted quickly, even the slowest: surrogate pairs.
_NEVER_SLOW = 16 * 1024
_CONTAINERS = (b"{", b"[")
_CODING = frozenset({b"content-encoding"})


async def convert_request_body(
    body: bytes,
    kind: BodyKind,
    conversion: BodyConversion,
    room: ConversionShare,
    message: Message | None = None,
) -> bytes | None:
    """Return a request body converted to the service's version.

    Returns:
        The same object if the conversion does not alter the body. None if the body is forwarded
        unchanged because bodies of its format are not converted.

    Raises:
        FaultError: The body is not JSON, is too large, or does not fit the client's version; or
            the memory budget has no room to convert it.
    """
    if not body:
        return body  # an empty body is the same in every version
    body_format, codings, encoding = kind
    convert = json_body.convert if body_format is _JSON else _converter(body_format, room)
    if convert is None:
        return None
    if encoding is not None:
        convert = in_encoding(encoding, convert)
    if len(body) > room.limit:
        detail = f"A body to be converted may have at most {room.limit} bytes."
        raise FaultError(Fault(FaultCode.BODY_TOO_LARGE, detail))
    try:
        converted = await _converted_body(convert, body, kind, conversion, room, message)
    except content_coding.DecodedTooLargeError as error:
        raise _refused(error) from None
    except content_coding.ContentCodingError as error:
        fault = Fault(FaultCode.UNSUPPORTED_MEDIA_TYPE, f"Content-Encoding: {error}.")
        raise FaultError(fault) from None
    except ConversionError as error:
        if isinstance(error, json_body.NotJsonError):
            if conversion.keeps_malformed and not codings:
                return None
            if body_format in MAYBE_JSON:
                raise FaultError(Fault(FaultCode.UNSUPPORTED_MEDIA_TYPE, NOT_JSON)) from None
        raise FaultError(unconvertible(error, error.misfit), error.cause) from None
    return converted


async def _converted_body(
    convert: WholeConversion,
    body: bytes,
    kind: BodyKind,
    conversion: BodyConversion,
    room: ConversionShare,
    message: Message | None,
) -> bytes:
    body_format, codings, _ = kind
    if len(body) <= _NO_TURN and not codings and conversion.timeout is None:
        converted = convert(body, conversion, message, no_step)
    else:
        given = convert, body_format, body, codings
        converted = await run_conversion(*given, conversion, room, message)
    if len(converted) > _NO_TURN:
        await _hold_made(converted, room)
    return converted


async def convert_response_body(  # noqa: C901  # one walk in one frame, for speed
    response: UpstreamHead,
    conversion: BodyConversion,
    room: ConversionShare,
    message: Message | None = None,
    media_types: Mapping[str, str] = NO_TYPES,
    *,
    begun: bool = False,
) -> tuple[bytes | AsyncIterator[bytes] | None, bool]:
    """Convert the body of a response to the client's version.

    Returns:
        The body, and whether it may be altered. A stream of documents is returned as an iterator,
        which converts each document when it arrives, and raises FaultError for a document that
        cannot be converted. The body is None if it is forwarded unchanged, for example because it
        contains no object or array. An unaltered body still has its content coding.

    Args:
        begun: Whether the client has already received the head of the response.

    Raises:
        FaultError: The body cannot be converted completely, or the memory budget has no room to
            convert it. No part of it may be sent.
    """
    found = _kind_of(response, media_types)
    if found is None:
        return None, False
    kind, applied, known, unfit = found
    body_format, _, encoding = kind
    is_json, maybe = body_format is _JSON, body_format in MAYBE_JSON
    if not (is_json or unfit) and body_format in STREAMS:
        if applied:
            response = _DecodedResponse(response, applied, partial(failed, response))
        stream = _converted_stream(body_format, conversion, room, message)
        return _pieces(response, stream, conversion, room), True
    search: SeriesSearch | TextSearch | None = None
    whole = response.complete
    if not (whole or unfit) and known:
        search = _search(response, body_format, encoding, conversion)
    raw: BytesIO | None = None
    if search is not None and applied:
        response = _DecodedResponse(response, applied, partial(failed, response), room.limit)
        raw, kind = response.raw, (body_format, [], encoding)
    if search is None or begun or conversion.needs_message or _is_sized(response):
        body = await response.read()
    else:
        try:
            async with asyncio.timeout(_SILENCE):
                body = await response.read()
        except TimeoutError:
            return _late(response, conversion, room, message, media_types), True
    if unfit and body:
        raise failed(response, unfit)
    whole = whole or response.complete
    if maybe and _is_larger(response, body, room):
        _give_back(response, body, room)
        return None, False
    if not whole or len(body) > AT_ONCE or len(body) > room.limit:
        length = _length(response, room) if search is None else 0
        body = await room.gather(_collected(response, body, whole, room, search), length)
    more = search is not None and search.found
    if more:
        if is_json:
            return await _series(response, body, conversion, room, message, more=True), True
        if isinstance(search, TextSearch) and not search.json:
            _give_back(response, body, room)
            return None, False
    made = await _converted_whole(response, body, kind, conversion, room, message, known=known)
    if made is None:  # the header fields are converted separately
        made, more = body, more or conversion.needs_message
    elif not isinstance(made, bytes):
        return made, True
    if not more:
        unaltered = body if raw is None else raw.getvalue()
        return (unaltered, False) if made is body else (made, True)
    if made is body:
        _give_back(response, body, room)
        return None, False
    return _followed(response, made), True


def _kind_of(
    response: UpstreamHead, media_types: Mapping[str, str]
) -> tuple[BodyKind, list[str], bool, str] | None:
    """Return the kind, the codings, whether all are known, and why the body cannot be converted.

    The reason is empty if it can be converted; None if the body is forwarded unchanged.
    """
    kind = described(response.fields, media_types)
    body_format, codings, encoding = kind
    maybe, unfit = body_format in MAYBE_JSON, ""
    if body_format is BodyFormat.OTHER:
        return None
    if response.status == 206 and is_byte_part(response.fields):
        if maybe:
            return None
        unfit = "a part of a representation cannot be converted"
    if not codings:
        return kind, [], True, unfit
    applied = content_coding.codings(codings)
    if content_coding.known(applied):
        return kind, applied, True, unfit
    if not (body_format is _JSON or unfit) and (maybe or body_format in STREAMS):
        return None  # without decoding, it is unknown whether a change applies to the body
    # An unknown coding such as `UTF-8` is a mistake of the service, whose body is not encoded.
    return (body_format, [], encoding), [], False, unfit


async def _converted_whole(
    response: UpstreamHead,
    body: bytes,
    kind: BodyKind,
    conversion: BodyConversion,
    room: ConversionShare,
    message: Message | None,
    *,
    known: bool,
) -> bytes | AsyncIterator[bytes] | None:
    """Return the same object for an unaltered body, and an iterator for several JSON documents.

    None for a body that is not JSON and is not converted. Raises FaultError.
    """
    body_format, codings, encoding = kind
    if not body:
        return _convert_empty(response, conversion, message) or body
    is_json = body_format is _JSON
    convert = json_body.convert if is_json else _converter(body_format, room)
    assert convert is not None  # bodies of other formats are not converted
    if encoding is not None:
        convert = in_encoding(encoding, convert)
    try:
        converted = await _converted_body(convert, body, kind, conversion, room, message)
    except content_coding.ContentCodingError as error:
        if body_format not in MAYBE_JSON:
            raise failed(response, error) from None
        return body
    except ConversionError as error:
        text = body
        if isinstance(error, json_body.NotJsonError) and is_json:
            if codings:
                applied = content_coding.codings(codings)
                text = await asyncio.to_thread(content_coding.decode, body, applied, room.limit)
            with suppress(FaultError):
                return await _series(response, text, conversion, room, message, more=False)
        if not isinstance(error, json_body.NotJsonError) or (
            body_format not in MAYBE_JSON and known and _MAY_HAVE_FIELDS.match(text)
        ):
            raise failed(response, error, error.cause) from None
        return None
    return converted


def _give_back(response: UpstreamHead, body: bytes, room: ConversionShare) -> None:
    response.unread(body)
    if room.held:
        room.release()


def _is_larger(response: UpstreamHead, begun: bytes, room: ConversionShare) -> bool:
    lengths = [value for name, value in response.fields if name.lower() == b"content-length"]
    return len(begun) > room.limit or any(int(value) > room.limit for value in lengths)


def _is_sized(response: UpstreamHead) -> bool:
    return any(name.lower() == b"content-length" for name, _ in response.fields)


def _search(
    response: UpstreamHead,
    body_format: BodyFormat,
    encoding: TextEncoding | None,
    conversion: BodyConversion,
) -> SeriesSearch | TextSearch | None:
    # If a change needs the message or the whole body, a document in a series is converted
    # differently from a single document. A pause is then not sufficient: a second document must
    # follow.
    alike = not conversion.needs_message and conversion.of_documents is conversion
    if body_format is _JSON:
        if _is_sized(response) or encoding is not None:
            return None
        return SeriesSearch(_MOMENT if alike else None)
    if body_format in MAYBE_JSON:
        return TextSearch(encoding, None if conversion.needs_message else _MOMENT)
    return None


async def _late(
    response: UpstreamHead,
    conversion: BodyConversion,
    room: ConversionShare,
    message: Message | None,
    media_types: Mapping[str, str],
) -> AsyncIterator[bytes]:
    """Yield the converted body of a response whose head is sent before the body begins."""
    if isinstance(response, _DecodedResponse):
        response.raw = None  # the body is sent without its content coding
    given = response, conversion, room, message, media_types
    body, _ = await convert_response_body(*given, begun=True)
    if body is None:
        body = _followed(response, b"")
    if not isinstance(body, bytes):
        async for piece in body:
            yield piece
    elif body:
        yield body


async def _followed(response: UpstreamHead, converted: bytes) -> AsyncIterator[bytes]:
    if converted:
        yield converted
    while piece := await response.read():
        yield piece


async def _series(
    response: UpstreamHead,
    begun: bytes,
    conversion: BodyConversion,
    room: ConversionShare,
    message: Message | None,
    *,
    more: bool,
) -> AsyncIterator[bytes]:
    """Convert JSON documents, such as the events of a Kubernetes watch; raises FaultError."""
    sequence = BodyFormat.JSON_SEQUENCE
    stream = _converted_stream(sequence, conversion, room, message, strict=True)
    try:
        converted = await _converted(stream, begun, conversion, room)
        if not more:
            converted += await _converted(stream, None, conversion, room)
    except content_coding.DecodedTooLargeError as error:
        raise failed(response, error) from None
    except ConversionError as mistake:
        raise failed(response, mistake, mistake.cause) from None
    return _pieces(response, stream if more else None, conversion, room, converted)


def _convert_empty(
    response: UpstreamHead, conversion: BodyConversion, message: Message | None
) -> bytes:
    """Convert an empty body, which stays empty unless a change moves a value into it."""
    if message is None or not conversion.needs_message:
        return b""
    if convert_made(response, conversion.carrying, message) == b"{}":
        return b""
    message.restore()  # a change moves a value into the body, so all changes apply
    return convert_made(response, conversion, message)


def convert_made(
    response: UpstreamHead, conversion: BodyConversion, message: Message | None
) -> bytes:
    """Create the body of a response without a body: convert an empty object."""
    try:
        return json_body.convert(b"{}", conversion, message)
    except ConversionError as error:
        raise failed(response, error, error.cause) from None


def _length(response: UpstreamHead, room: ConversionShare) -> int:
    """Return the declared length, or 0 if there is none; raises FaultError if it is too large."""
    for name, value in response.fields:
        if name.lower() == b"content-length":
            if int(value) > room.limit:
                raise _too_large(response, room)
            return int(value)
    return 0


def _too_large(response: UpstreamHead, room: ConversionShare) -> FaultError:
    return failed(response, f"it is larger than {room.limit} bytes")


async def _collected(
    response: UpstreamHead,
    piece: bytes,
    last: bool,
    room: ConversionShare,
    search: SeriesSearch | TextSearch | None = None,
) -> AsyncIterator[bytes]:
    """Yield the pieces until the end, or until `search` finds a stream; raises FaultError."""
    size = 0
    while piece:
        size += len(piece)
        ended = search is not None and not last and search.ends_text(piece)
        if size > room.limit and not (search is not None and search.found):
            if not isinstance(search, TextSearch):
                raise _too_large(response, room)
            search.found, search.json = True, False
        yield piece
        if search is not None and not last:
            if search.found:
                return
            if ended:
                try:
                    async with asyncio.timeout(search.pause):
                        piece, last = await response.read(), response.complete
                except TimeoutError:
                    search.found = True
                    return
                continue
        piece, last = (b"", True) if last else (await response.read(), response.complete)


async def _pieces(
    response: UpstreamHead,
    stream: ConvertedStream | None,
    conversion: BodyConversion,
    room: ConversionShare,
    begun: bytes = b"",
) -> AsyncIterator[bytes]:
    """Yield the converted beginning of a body, and then convert and yield the rest as a stream."""
    if begun:
        yield begun
    if stream is None:
        return
    try:
        last = False
        while not last and (piece := await response.read()):
            last = response.complete  # checked now: the end may arrive while the client reads
            if converted := await _converted(stream, piece, conversion, room):
                yield converted
        if rest := await _converted(stream, None, conversion, room):
            yield rest
    except content_coding.DecodedTooLargeError as error:
        raise failed(response, error) from None
    except ConversionError as error:
        raise failed(response, error, error.cause) from None


async def convert_request_stream(
    body: RequestBody,
    body_format: BodyFormat,
    conversion: BodyConversion,
    room: ConversionShare,
    message: Message | None,
) -> AsyncIterator[bytes]:
    """Yield the converted pieces of a stream; raises FaultError if a document does not fit."""
    stream = _converted_stream(body_format, conversion, room, message)
    try:
        if isinstance(body, AsyncIterator):
            async for piece in body:
                yield await _converted(stream, piece, conversion, room)
        elif body:
            yield await _converted(stream, body, conversion, room)
        yield await _converted(stream, None, conversion, room)
    except content_coding.DecodedTooLargeError as error:
        raise _refused(error) from None
    except ConversionError as error:
        raise FaultError(unconvertible(error, error.misfit), error.cause) from None


async def run_conversion(
    convert: WholeConversion,
    body_format: BodyFormat,
    body: bytes,
    values: Sequence[bytes],
    conversion: BodyConversion,
    room: ConversionShare,
    message: Message | None,
) -> bytes:
    """Convert a whole body: a small one at once, others in a thread or in small steps.

    `values` are those of Content-Encoding. Raises the errors of `convert`, ContentCodingError and
    DecodedTooLargeError.
    """
    codings = content_coding.codings(values) if values else ()
    most = AT_ONCE if body_format is _JSON else _AT_ONCE_BESIDE_JSON

    def converted(text: bytes, step: Step) -> bytes:
        made = convert(text, conversion, message, step)
        if made is text:
            return body
        _check_elements(made, body_format, room)
        return made

    small = _decoded_small(body, codings, room.limit, most)
    if small is not None and conversion.timeout is None:
        return await _in_turn(partial(converted, small, no_step), room)

    def decoded(limit: int, elements: int, step: Step) -> bytes:
        count = ElementCount(elements, body_format)

        def take(piece: bytes) -> None:
            step()
            if count.exceeds(piece):
                what = f"the body has more than {elements} elements"
                raise content_coding.DecodedTooLargeError(what)

        return content_coding.decode(body, codings, limit, take)

    def convert_light(step: Step) -> bytes | None:
        try:
            text = decoded(min(_LIGHT, room.limit), min(_FEW, room.elements), step)
        except content_coding.DecodedTooLargeError:
            return None
        return converted(text, step)

    def convert_heavy(step: Step) -> bytes:
        return converted(decoded(room.limit, room.elements, step), step)

    if conversion.timeout is None and len(body) <= _LIGHT:
        light = conversion_threads.run(convert_light, room.network, light=True)
        if (made := await light) is not None:
            return made
    return await _beside(convert_heavy, conversion, room)


def _check_elements(made: bytes, body_format: BodyFormat, room: ConversionShare) -> None:
    if len(made) > AT_ONCE and ElementCount(room.elements, body_format).exceeds(made):
        what = f"the converted body has more than {room.elements} elements"
        raise content_coding.DecodedTooLargeError(what)


async def _hold_made(made: bytes, room: ConversionShare) -> None:
    """Reserve memory for a converted body; raises DecodedTooLargeError or FaultError."""
    if len(made) > room.limit:
        what = f"the converted body has more than {room.limit} bytes"
        raise content_coding.DecodedTooLargeError(what)
    if len(made) > AT_ONCE:
        await room.grow(len(made))


async def _in_turn(convert: Callable[[], bytes], room: ConversionShare) -> bytes:
    return await _turns.run(convert, lambda: room.network)


async def _beside(
    convert: Callable[[Step], bytes],
    conversion: BodyConversion,
    room: ConversionShare,
    *,
    light: bool = False,
) -> bytes:
    if conversion.timeout is None:
        return await conversion_threads.run(convert, room.network, light=light)
    from gateway.proxy import timed_conversion

    return await timed_conversion.run(convert, conversion.timeout)


async def _converted(
    stream: ConvertedStream,
    data: bytes | None,
    conversion: BodyConversion,
    room: ConversionShare,
) -> bytes:
    """Add data to a stream, or end the stream if `data` is None, and return its output."""

    def advance(step: Step = no_step) -> bytes:
        made = stream.finish(step) if data is None else stream.feed(data, step)
        if len(made) > size + room.limit:
            what = f"the converted stream has {room.limit} bytes more than its received part"
            raise content_coding.DecodedTooLargeError(what)
        return made

    text = data or b""
    size, lines = stream.held + len(text), text.count(b"\n") + text.count(b"\r")
    if size <= AT_ONCE and lines <= _LINES_AT_ONCE and conversion.timeout is None:
        return advance() if size <= _NO_TURN else await _in_turn(advance, room)
    await room.grow(size)
    return await _beside(advance, conversion, room, light=size <= _LIGHT_PIECE)


def _refused(error: content_coding.DecodedTooLargeError) -> FaultError:
    return FaultError(Fault(FaultCode.BODY_TOO_LARGE, f"{str(error).capitalize()}."))


def failed(response: UpstreamHead, what: object, cause: str = "") -> FaultError:
    """`what` is shown to the client; `cause` is for the log, if it has more details."""
    return FaultError(conversion_failed(what), f"{response.target}: {cause or what}")


def _converted_stream(
    body_format: BodyFormat,
    conversion: BodyConversion,
    room: ConversionShare,
    message: Message | None,
    *,
    strict: bool = False,
) -> ConvertedStream:
    """Unless `strict`, a document that is not JSON, such as `[DONE]`, is forwarded unchanged."""
    conversion = conversion.of_documents

    def convert(document: bytes, step: Step) -> bytes:
        if not strict and not document.lstrip(b" \t\n\r").startswith(_CONTAINERS):
            return document
        if len(document) > AT_ONCE and ElementCount(room.elements).exceeds(document):
            raise DecodedTooLargeError(f"a document of more than {room.elements} elements")
        # The head of the message has already been sent, so documents cannot change it.
        copy = None if message is None else message.copied()
        try:
            return json_body.convert(document, conversion, copy, step)
        except json_body.NotJsonError:
            if strict:
                raise
            return document

    if body_format is BodyFormat.JSON_LINES:
        return JsonLineStream(convert, room.limit)
    if body_format is BodyFormat.JSON_SEQUENCE:
        return JsonSequenceStream(convert, room.limit)
    return EventStream(convert, room.limit, room.elements, conversion)


def _converter(body_format: BodyFormat, room: ConversionShare) -> WholeConversion | None:
    if body_format in STREAMS:
        return partial(_convert_documents, body_format, room)
    return CONVERSIONS.get(body_format)


def _convert_documents(
    body_format: BodyFormat,
    room: ConversionShare,
    body: bytes,
    conversion: BodyConversion,
    message: Message | None,
    step: Step,
) -> bytes:
    stream = _converted_stream(body_format, conversion, room, message)
    converted = BytesIO()
    for begin in range(0, len(body), _STEP):  # in steps, because a search in a long event is slow
        step()
        converted.write(stream.feed(body[begin : begin + _STEP], step))
    converted.write(stream.finish(step))
    return converted.getvalue()


def _decoded_small(body: bytes, codings: Sequence[str], limit: int, most: int) -> bytes | None:
    """Decode a body; return None if it is too large to be converted on the event loop."""
    size = len(body)
    if size > most:
        return None
    try:
        decoded = content_coding.decode(body, codings, min(limit, most))
        if (codings or size > _NEVER_SLOW) and placeholders.many_surrogates(decoded):
            return None
        return decoded
    except content_coding.DecodedTooLargeError:
        if limit <= most:
            raise
        return None


class _DecodedResponse:
    """A response without its content codings; raises ContentCodingError if they are unknown.

    `most` is the maximum number of received bytes to keep in `raw`, which `unread` gives back; None
    to keep none.
    """

    def __init__(
        self,
        response: UpstreamHead,
        applied: Sequence[str],
        failed: Callable[[object], FaultError],
        most: int | None = None,
    ) -> None:
        self._response = response
        self._decoder = StreamDecoder(applied)
        self._failed = failed
        self._most = most
        self._pieces: Iterator[bytes] = iter(())
        self.status: int = response.status
        self.fields: HeaderFields = end_to_end(response.fields, _CODING)
        self.target: str = response.target
        self.raw = None if most is None else BytesIO()
        self.complete = self._ended = False

    async def read(self) -> bytes:
        try:
            while True:
                for piece in self._pieces:
                    if piece:
                        return piece
                    await asyncio.sleep(0)  # many empty pieces must not block the event loop
                # A complete response may return its whole body repeatedly. Read it only once.
                data = b"" if self._ended else await self._response.read()
                self._ended = self._response.complete
                if not data:
                    self._decoder.end()
                    self.complete = True
                    return b""
                if self.raw is not None and self._most is not None:
                    self.raw.write(data)
                    if self.raw.tell() > self._most:
                        raise self._failed(f"it is larger than {self._most} bytes")
                self._pieces = self._decoder.pieces(data)
        except ContentCodingError as error:
            raise self._failed(error) from None

    def unread(self, data: bytes) -> None:
        """Give back decoded bytes that were read; if `raw` is kept, give back `raw` instead."""
        if self.raw is None:
            self._pieces = chain((data,), self._pieces)
        else:
            self._response.unread(self.raw.getvalue())
