"""Merged writes: reads the service's document, merges the write into it and sends it (`writes`).

`gateway.conversion.merging` merges the documents. This module sends both requests: the read, with
the client's credentials to the service that gets the write, and the write, with the entity tag of
the document. If the document has changed in between, both are repeated once.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from functools import partial
from hashlib import blake2b
from math import inf
from time import perf_counter
from typing import NamedTuple

from msgspec.structs import replace

from gateway.base import headers
from gateway.base.errors import Fault, FaultCode, FaultError, unconvertible
from gateway.base.headers import FieldLines, HeaderFields
from gateway.conversion.chain import BodyConversion
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import Document
from gateway.conversion.formats import json_body
from gateway.conversion.formats.body_format import MAYBE_JSON, BodyFormat, described
from gateway.conversion.formats.large_json import encode
from gateway.conversion.merging import BaseDocumentError, Merge, WriteForm, merge
from gateway.conversion.message import Message
from gateway.conversion.patches import MergeError
from gateway.conversion.version_step import Direction
from gateway.http import content_coding
from gateway.http.content_coding import ContentCodingError, DecodedTooLargeError
from gateway.http.cooperative import Step, no_step
from gateway.http.upstream.upstream import RequestBody, Upstream, UpstreamRequest, UpstreamResponse
from gateway.proxy.body_conversion import NOT_JSON, run_conversion
from gateway.proxy.conversion_budget import ConversionShare
from gateway.proxy.exchange import Exchange
from gateway.proxy.message_conversion import LiveContext
from gateway.proxy.message_rewriting import rewrite_request
from gateway.proxy.shadows import Shadows
from gateway.routing.plan import MergedWrite, Plan

_STRATEGIC = b"application/strategic-merge-patch+json"
_PATCH_TYPE = (b"Content-Type", b"application/merge-patch+json")
_JSON_TYPE = (b"Content-Type", b"application/json")
_IF_MATCH, _IF_NONE_MATCH = b"if-match", b"if-none-match"
# Further conditions of a client that the service can respond 412 to.
_CONDITIONS = frozenset({_IF_NONE_MATCH, b"if-unmodified-since"})
_KEY = b"idempotency-key"
_TYPE = frozenset({b"content-type"})
_OF_BODY = headers.BYTE_FIELDS | {b"expect"}
# Header fields of the write that the read omits.
_OF_WRITE = frozenset(
    {_IF_MATCH, _KEY, b"if-modified-since", b"if-range", b"range", b"prefer", b"cache-control"}
    | {b"accept-encoding"}
).union(_CONDITIONS, _OF_BODY, _TYPE, headers.METHOD_OVERRIDES)
_NO_CACHE = ((b"Cache-Control", b"no-cache"), (b"Accept-Encoding", b"identity"))
_STRONG_TAG = re.compile(rb'"[!#-~\x80-\xff]*"')
_UNCHANGING = BodyConversion((), Direction.UP)
_CONFLICT = (
    "Another client changed the document while this write was merged, twice in a row."
    " Send the write again."
)
_NO_MATCH = "If-Match does not match the document."
_EXISTS = "The document exists, but the write has If-None-Match: *."
_FORMATS = "This write must be JSON, JSON Merge Patch or JSON Patch, in UTF-8."
_MORE = "The write cannot be merged: its conversion reads more than the body."


class _Read(NamedTuple):
    """The decoded document of the service; `tag` is its strong entity tag, or empty."""

    body: bytes
    fields: HeaderFields
    tag: bytes


class _Write(NamedTuple):
    """A write to be merged.

    Attributes:
        request: The request for the service, with the body as the client sent it.
        given: Its header fields, by their names in lower case.
        text: The decoded body.
    """

    exchange: Exchange
    plan: Plan
    rule: MergedWrite
    request: UpstreamRequest
    given: dict[bytes, bytes]
    text: bytes
    form: WriteForm
    maybe_json: bool
    room: ConversionShare

    @property
    def is_patch(self) -> bool:
        return self.request.method == "PATCH"

    @property
    def matched(self) -> bytes:
        return self.given.get(_IF_MATCH, b"*")


class MergedWrites:
    def __init__(self, upstream: Upstream, shadows: Shadows) -> None:
        self._upstream = upstream
        self._shadows = shadows

    async def send(
        self,
        exchange: Exchange,
        plan: Plan,
        request: UpstreamRequest,
        body: RequestBody,
        room: ConversionShare,
    ) -> UpstreamResponse:
        """Send a write merged into the service's document; raises FaultError.

        Args:
            request: The request for the service, whose body is not converted yet.
            body: The body as the client sent it.
        """
        outcome, exchange.sent = "refused", 0.0
        whole = plan.route.service.timeouts.whole
        try:
            async with asyncio.timeout(None if whole == inf else whole) as limit:
                write = await _begun(exchange, plan, request, body, room)
                if write is None:
                    outcome = "unmerged"
                    return await self._send(exchange, plan, request)
                for attempt in ("merged", "repeated"):
                    read = await self._read(write, limit.when())
                    made = await (_unmerged(write) if read is None else _merged(write, read))
                    response = await self._send(exchange, plan, made)
                    if read is None or response.status != 412 or not _is_own(write, read):
                        outcome = "unmerged" if read is None else attempt
                        return response
                    response.abandon()
            outcome = "conflict"
            raise FaultError(Fault(FaultCode.WRITE_CONFLICT, _CONFLICT))
        except TimeoutError:
            fault = Fault(FaultCode.UPSTREAM_TIMEOUT, "The backend did not respond in time.")
            raise FaultError(fault, "timeouts.whole includes the read of the document") from None
        finally:
            labels = plan.endpoint.api, str(plan.version), outcome
            self._shadows.recorder.count("merged_writes", *labels)

    async def _send(
        self, exchange: Exchange, plan: Plan, request: UpstreamRequest
    ) -> UpstreamResponse:
        exchange.sent = perf_counter()
        if plan.repeated is None:
            return await self._upstream.send(plan.route.service, request)
        return await self._shadows.send(exchange, plan, request)

    async def _read(self, write: _Write, ends: float | None) -> _Read | None:
        """Return the document, or None if there is none (404); raises FaultError.

        `ends` is the end of `timeouts.whole`; the read may take half of the remaining time.
        """
        began, now, span = perf_counter(), asyncio.get_running_loop().time(), write.exchange.span
        try:
            async with asyncio.timeout(None if ends is None else (ends - now) / 2):
                return await self._document(write)
        except TimeoutError:
            raise _unread("it did not arrive in time") from None
        except FaultError as error:
            fault = error.fault
            if fault.code in (FaultCode.WRITE_UNREAD, FaultCode.WRITE_DENIED):
                raise
            why = f"{fault.code}: {fault.detail}"
            raise _unread(why, error.cause, fault.status, fault.fields) from None
        finally:
            if span is not None:
                span.stages.append(("read before write", began, perf_counter()))

    async def _document(self, write: _Write) -> _Read | None:
        fields = [*headers.end_to_end(write.request.fields, _OF_WRITE), *_NO_CACHE]
        given = {"target": write.rule.read, "fields": fields, "body": None, "length": None}
        request = replace(write.request, method="GET", informational=None, **given)
        response = await self._upstream.send(write.plan.route.service, request)
        try:
            status, fields = response.status, response.fields
            if status == 404:
                return None
            if status in (401, 403):
                challenge = tuple(one for one in fields if one[0].lower() == b"www-authenticate")
                detail = f"The write needs the right to read the document: GET has status {status}."
                denied = FaultCode.WRITE_DENIED
                raise FaultError(Fault(denied, detail, None, challenge, status))
            if status != 200:
                raise _unread(f"the service responds to GET with status {status}")
            body = bytearray()
            while piece := await response.read():
                body += piece
                if len(body) > write.room.limit:
                    raise _unread(f"it has more than {write.room.limit} bytes")
                await write.room.grow(len(write.text) + len(body))
        finally:
            response.abandon()
        kind, codings, encoding = described(fields, write.plan.endpoint.media_types)
        if kind is not BodyFormat.JSON or encoding is not None:
            raise _unread("the service sends no JSON in UTF-8")
        tags = [value.strip(b" \t") for name, value in fields if name.lower() == b"etag"]
        strong = len(tags) == 1 and _STRONG_TAG.fullmatch(tags[0]) is not None
        if not (strong or write.rule.rule.accepts_untagged):
            raise _unread("the service sends no strong ETag, and without_tag: accept is not set")
        try:
            text = await _decoded(bytes(body), codings, write.room)
        except ContentCodingError as error:
            raise _unread(f"Content-Encoding: {error}") from None
        return _Read(text, fields, tags[0] if strong else b"")


async def _begun(
    exchange: Exchange,
    plan: Plan,
    request: UpstreamRequest,
    body: RequestBody,
    room: ConversionShare,
) -> _Write | None:
    """Return the write to be merged; None if conversions do not read bodies of its format."""
    assert isinstance(plan.shadow, MergedWrite)  # the caller has checked it
    kind, codings, encoding = described(request.fields, plan.endpoint.media_types)
    if not body or kind in (BodyFormat.PASSED, BodyFormat.OTHER):
        return None
    form = form_of_write(exchange.method, kind, request.fields)
    if form is None or encoding is not None:
        raise FaultError(Fault(FaultCode.UNSUPPORTED_MEDIA_TYPE, _FORMATS))
    given: dict[bytes, bytes] = {}
    for name, value in request.fields:
        lines = (given.get(name.lower()), value.strip(b" \t"))
        given[name.lower()] = b", ".join(line for line in lines if line is not None)
    if isinstance(body, AsyncIterator):
        if b"expect" in given:
            exchange.inform(100, [])
        body = await room.gather(body, exchange.length or 0)
    try:
        text = await _decoded(body, codings, room)
    except DecodedTooLargeError as error:
        raise FaultError(Fault(FaultCode.BODY_TOO_LARGE, f"{error}.")) from None
    except ContentCodingError as error:
        fault = Fault(FaultCode.UNSUPPORTED_MEDIA_TYPE, f"Content-Encoding: {error}.")
        raise FaultError(fault) from None
    request, is_json = replace(request, body=body), kind in MAYBE_JSON
    return _Write(exchange, plan, plan.shadow, request, given, text, form, is_json, room)


async def _decoded(body: bytes, values: list[bytes], room: ConversionShare) -> bytes:
    """Decode a body; raises ContentCodingError, also for a decoded body over the limit."""
    codings = content_coding.codings(values)
    if codings:
        body = await asyncio.to_thread(content_coding.decode, body, codings, room.limit)
    if len(body) > room.limit:
        raise DecodedTooLargeError(f"A body to be merged may have at most {room.limit} bytes")
    return body


def form_of_write(method: str, kind: BodyFormat, fields: HeaderFields) -> WriteForm | None:
    """Return the form of a write; None if writes of this format cannot be merged."""
    if kind is BodyFormat.JSON_PATCH:
        return WriteForm.JSON_PATCH
    if kind is BodyFormat.MERGE_PATCH:
        return WriteForm.MERGE_PATCH
    if kind is not BodyFormat.JSON and kind not in MAYBE_JSON:
        return None
    given = next((value for name, value in fields if name.lower() in _TYPE), b"")
    if given.partition(b";")[0].strip(b" \t").lower() == _STRATEGIC:
        return WriteForm.STRATEGIC_PATCH
    return WriteForm.MERGE_PATCH if method == "PATCH" else WriteForm.DOCUMENT


async def _unmerged(write: _Write) -> UpstreamRequest:
    exchange, plan, body = write.exchange, write.plan, write.request.body
    plan = plan._replace(shadow=plan.repeated)
    made = await rewrite_request(exchange, plan, body, write.room)
    exchange.converted = made.body is not body
    return made


async def _merged(write: _Write, read: _Read) -> UpstreamRequest:
    """Return the request with the merged body; raises FaultError."""
    request, form, given = write.request, write.form, write.given
    # If-Match is compared strongly (RFC 9110, section 13.1.1).
    tags = [tag.strip(b" \t") for tag in write.matched.split(b",")]
    if write.matched != b"*" and (not read.tag or read.tag not in tags):
        raise FaultError(Fault(FaultCode.PRECONDITION_FAILED, _NO_MATCH))
    if given.get(_IF_NONE_MATCH) == b"*":
        raise FaultError(Fault(FaultCode.PRECONDITION_FAILED, _EXISTS))
    body = await _merged_body(write, read)
    write.exchange.converted = True
    write.exchange.count_digests(name for name in given if name in headers.DIGESTS)
    fields = headers.end_to_end(request.fields, _OF_BODY | {_IF_MATCH, _KEY})
    if form is WriteForm.STRATEGIC_PATCH and write.is_patch:
        fields = [*headers.end_to_end(fields, _TYPE), _PATCH_TYPE]
    elif form is not WriteForm.DOCUMENT and not write.is_patch:
        fields = [*headers.end_to_end(fields, _TYPE), _JSON_TYPE]
    if read.tag:
        fields.append((b"If-Match", read.tag))
    if _KEY in given:
        # A second attempt may have another merged body, and a service must not get one key with
        # two bodies.
        mark = b"-" + blake2b(body, digest_size=8).hexdigest().encode()
        fields.append((b"Idempotency-Key", re.sub(rb'("?)\Z', mark + rb"\1", given[_KEY], count=1)))
    return replace(request, fields=fields, body=body, length=None)


def _is_own(write: _Write, read: _Read) -> bool:
    """Return whether a 412 can only be caused by the If-Match of the gateway."""
    return bool(read.tag) and write.matched == b"*" and write.given.keys().isdisjoint(_CONDITIONS)


async def _merged_body(write: _Write, read: _Read) -> bytes:
    room, exchange, plan = write.room, write.exchange, write.plan
    ways = conversions_of(plan, write.rule, exchange.method, read.fields)
    context = LiveContext(exchange.method, exchange, plan)
    of_read = context.message(ways[0], read.fields, 200)
    of_write = context.message(ways[1], write.request.fields, None)

    def convert(_: bytes, __: BodyConversion, ___: Message | None, step: Step) -> bytes:
        given = read.body, write.text, write.form, (of_read, of_write)
        made = merge_bodies(plan, write.rule, write.request.method, ways, *given, step)
        return encode(made.body(write.form, is_patch=write.is_patch), step)

    slowest = max(ways, key=lambda each: each.timeout or 0)
    larger = max(read.body, write.text, key=len)  # determines where the merge runs
    try:
        made = await run_conversion(convert, BodyFormat.JSON, larger, (), slowest, room, None)
    except DecodedTooLargeError as error:
        raise FaultError(Fault(FaultCode.BODY_TOO_LARGE, f"{str(error).capitalize()}.")) from None
    except ConversionError as error:
        raise merge_fault(error, maybe_json=write.maybe_json) from None
    await room.grow(len(write.text) + len(read.body) + len(made))
    return made


def conversions_of(
    plan: Plan, write: MergedWrite, method: str, fields: HeaderFields
) -> tuple[BodyConversion, ...]:
    """Return the conversions of the document for the client, and of the write for the service.

    `fields` are those of the response with the document. Raises FaultError.
    """
    response, request = write.response, plan.request
    down = None if response is None else response.of_response(fields).for_response("GET", 200)
    up = None if request is None else request.for_document(plan.method(method))
    ways = down or _UNCHANGING, up or _UNCHANGING
    if any(each.needs_message for each in ways):
        raise FaultError(Fault(FaultCode.WRITE_UNMERGEABLE, _MORE))
    return ways


def merge_bodies(
    plan: Plan,
    write: MergedWrite,
    asked: str,
    ways: tuple[BodyConversion, ...],
    base: bytes,
    sent: bytes,
    form: WriteForm,
    messages: Sequence[Message | None],
    step: Step = no_step,
) -> Merge:
    """Merge bodies, and remove the fields that the service's OpenAPI document calls readOnly.

    `asked` is the method of the request to the service.
    """

    def convert(way: int, document: Document) -> Document:
        made = json_body.convert(encode(document, step), ways[way], messages[way], step)
        return json_body.parse_exactly(made)

    try:
        document = json_body.parse_exactly(base)
    except ConversionError as error:
        raise BaseDocumentError(error.reason) from None
    to_client, to_service = partial(convert, 0), partial(convert, 1)
    written = json_body.parse_exactly(sent)
    made = merge(document, written, form, write.rule.keys, to_client, to_service)
    written_by, path = plan.route.written, plan.target.partition("?")[0]
    known = None if written_by is None else written_by.loaded
    operation = None if known is None else known.find(asked, path)
    if known is None or operation is None:
        return made
    kept, merged = (known.writable(one, operation.request) for one in (made.base, made.merged))
    return made._replace(base=kept, merged=merged)


def merge_fault(error: ConversionError, *, maybe_json: bool = False) -> FaultError:
    """Return the refusal of a write; `maybe_json` if the request does not declare JSON."""
    if isinstance(error, BaseDocumentError):
        return _unread(f"it cannot be converted: {error}", error.cause)
    if isinstance(error, MergeError):
        detail = f"The write cannot be merged: {error}."
        fault = Fault(FaultCode.WRITE_UNMERGEABLE, detail, misfit=error.misfit)
    elif isinstance(error, json_body.NotJsonError) and maybe_json:
        fault = Fault(FaultCode.UNSUPPORTED_MEDIA_TYPE, NOT_JSON)
    else:
        fault = unconvertible(error, error.misfit)
    return FaultError(fault, error.cause)


def _unread(
    why: str, cause: str = "", status: int | None = None, fields: FieldLines = ()
) -> FaultError:
    detail = f"The document to merge the write into cannot be read: {why.removesuffix('.')}."
    return FaultError(Fault(FaultCode.WRITE_UNREAD, detail, None, fields, status), cause)
