"""Conversion of whole messages: the header fields, the query and the body of each.

Most conversions change each of them on its own. Where a change moves a value from one to another,
or depends on more than a value, they are converted together, link by link.
"""

from collections.abc import AsyncIterator
from typing import Final

from gateway.base import headers
from gateway.base.errors import FaultError, unconvertible
from gateway.base.headers import HeaderFields
from gateway.conversion.chain import BodyConversion, Conversion
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.formats.body_format import (
    EMPTY_FORM,
    STREAMS,
    BodyFormat,
    BodyKind,
    described,
    is_empty_form,
    is_stream,
)
from gateway.conversion.message.message import Message
from gateway.conversion.parameter_change import write_fields, write_query
from gateway.http.client import parser_limits
from gateway.http.limits import Limits
from gateway.http.upstream.framing_fields import MOST_FIELDS
from gateway.http.upstream.upstream import RequestBody, UpstreamHead
from gateway.http.upstream.upstream_connection import MAX_HEAD
from gateway.proxy.body import body_conversion
from gateway.proxy.body.conversion_room import ConversionRoom
from gateway.proxy.planned_message import Surroundings
from gateway.rollout.shadow import SAFE
from gateway.routing.plan import Plan, written_target

_AROUND: Final = len(": \r\n")  # of a header field line
_OF_BODY = headers.ABOUT_BYTES | {b"content-type"}
_TYPE = frozenset({b"content-type"})
_CONVERTED = headers.fates(headers.ABOUT_BYTES)
_JSON = (b"Content-Type", b"application/json")
_NOTHING = b"{}"
# To read a member from its class takes ten times as much.
_FORM, _MERGE_PATCH = BodyFormat.FORM, BodyFormat.MERGE_PATCH
_UNREAD: Final = (BodyFormat.PASSED, BodyFormat.OTHER)
# Requests with these methods have no body by custom (RFC 9110, section 9.3).
_BODILESS = frozenset({"GET", "HEAD", "DELETE"})


async def convert_request(
    around: Surroundings,
    converting: Conversion,
    fields: HeaderFields,
    kind: BodyKind,
    body: RequestBody,
    conversion: BodyConversion,
    room: ConversionRoom,
) -> tuple[Message | None, HeaderFields, RequestBody]:
    """Return the header fields and the body of a request for the service.

    And the message that has its query, where that was converted together with the body; else None.

    Args:
        around: what surrounds the body.
        converting: the conversion of the request.
        fields: its header fields.
        kind: what they say of its body; see `described`.
        body: its body, in pieces or whole; None for no body.
        conversion: the conversion of the body.
        room: the room for the body.

    Raises:
        FaultError: the request does not fit its version, or there is no room to convert it.
    """
    message = around.message(conversion, fields, None)
    streams = is_stream(kind)
    together = message if conversion.needs_message and not streams else None
    converted = fields
    if together is None:
        converted = convert_request_fields(around, fields, converting)
    if streams:
        found, _, _ = described(converted, around.media_types)
        streamed = body_conversion.convert_request_stream(body, found, conversion, room, message)
        return None, _CONVERTED.sort(converted)[0], streamed
    whole = received = await _whole(body, around, room)
    method = around.method
    # Some clients give each request a body; here it means nothing (RFC 9110, section 9.3.1).
    if whole and method in SAFE and whole.strip() == _NOTHING:
        whole = body = b""
    made = None if whole else converting.made(around.asked)
    if made is not None:
        whole, conversion = _NOTHING, made
        converted = [*headers.end_to_end(converted, _TYPE), _JSON]
        typed = [*headers.end_to_end(fields, _TYPE), _JSON]
        message = around.message(made, typed, None)
        together = message if made.needs_message else None
    elif not whole and method not in SAFE and is_empty_form(method, kind[0]):
        whole = EMPTY_FORM
    elif together is not None and not whole:
        # It stays without a body, unless a value comes into it.
        whole, converted = _NOTHING, [*headers.end_to_end(fields, _TYPE), _JSON]
        carried = await body_conversion.convert_request_body(
            whole, described(converted, around.media_types), conversion.carrying, room, together
        )
        if carried == _NOTHING:
            left = headers.end_to_end(write_fields(together.headers), _OF_BODY)
            return together, left, body if isinstance(body, bytes) else None
        message = together = around.message(conversion, converted, None)
    sent = kind if converted is fields else described(converted, around.media_types)
    made_body = await body_conversion.convert_request_body(whole, sent, conversion, room, message)
    whole, drops = whole if made_body is None else made_body, converting.drops_body
    kept = whole is received
    if together is not None and made_body is None:
        # It is no JSON and stays: what surrounds it is converted apart.
        together, converted = None, convert_request_fields(around, converted, converting)
    elif together is not None:
        converted = write_fields(together.headers)
        drops = drops or around.asked in _BODILESS
    if drops and whole == _NOTHING:
        return together, headers.end_to_end(converted, _OF_BODY), None
    if kind[0] is _FORM and not kept:
        from gateway.conversion.formats.form_body import retyped  # few requests are forms

        converted = retyped(converted, conversion)
    return together, converted if kept else _CONVERTED.sort(converted)[0], whole


async def convert_response(  # noqa: C901  # one walk in one frame, for speed
    around: Surroundings,
    converting: Conversion,
    fields: HeaderFields,
    conversion: BodyConversion | None,
    response: UpstreamHead,
    answered: int,
    room: ConversionRoom,
) -> tuple[HeaderFields, bytes | AsyncIterator[bytes] | None, bool]:
    """Return the header fields of an answer for the client, and its body; None if it stays.

    And whether the body may be another one than that of the service. Where it is not, the fields
    that are about its bytes hold.

    Args:
        around: what surrounds the body.
        converting: the conversion of the answer.
        fields: the header fields of the answer.
        conversion: the conversion of the body; None for one that is not converted.
        response: the answer of the service.
        answered: the status of the answer to the client.
        room: the room for the body.

    Raises:
        FaultError: the answer cannot be converted completely; no part of it may be sent.
    """
    status, method = response.status, around.method
    changes = answered != status and _has_other_body(converting, method, status, answered)
    if conversion is None:
        fields = _convert_response_fields(around, fields, converting, response)
        if not changes:
            return fields, None, False
        return *_other_body(response, answered, None, fields), True
    has_body = not bodiless(method, answered)
    if changes and has_body:
        fields = _made_json(fields)
    # Values that come into the body from header fields are in neither of them here.
    heads = method == "HEAD" and conversion.needs_message
    message = None
    if (conversion.needs_message or conversion.maps_links) and (has_body or heads):
        message = around.message(conversion, fields, status)
    together = message
    types = around.media_types
    if not conversion.needs_message or described(fields, types)[0] in STREAMS:
        together = None
    if together is None and converting.changes_fields:
        fields = _convert_response_fields(around, fields, converting, response)
    body: bytes | AsyncIterator[bytes] | None = None
    altered = True
    if changes:
        fields, body = _other_body(response, answered, conversion, fields, message)
    elif has_body:
        given = response, conversion, room, message, types
        body, altered = await body_conversion.convert_response_body(*given)
        if together is not None and (body is None or isinstance(body, AsyncIterator)):
            # It is no JSON, or of several documents: what surrounds it is converted apart.
            together, fields = None, _convert_response_fields(around, fields, converting, response)
    elif together is not None:
        body_conversion.convert_made(response, conversion.carrying, together)
    if together is not None:
        fields = write_fields(together.headers)
        if body and not any(name.lower() in _TYPE for name, _ in fields):
            fields.append(_JSON)
    return fields, body, altered


def convert_request_fields(
    around: Surroundings, fields: HeaderFields, converting: Conversion
) -> HeaderFields:
    """Return the header fields of a request for the service; raises FaultError."""
    if not converting.changes_fields:
        return fields
    shown = around.shown(fields, None) if converting.shows_message else None
    try:
        return converting.fields(around.method, None, fields, shown)
    except ConversionError as error:
        raise FaultError(unconvertible(error, error.misfit), error.cause) from None


def _convert_response_fields(
    around: Surroundings, fields: HeaderFields, converting: Conversion, response: UpstreamHead
) -> HeaderFields:
    """Return the header fields of an answer for the client; raises FaultError."""
    if not converting.changes_fields:
        return fields
    shown = around.shown(fields, response.status) if converting.shows_message else None
    try:
        return converting.fields(around.method, response.status, fields, shown)
    except ConversionError as error:
        raise body_conversion.failed(response, error, error.cause) from None


def check_made_request(target: str, fields: HeaderFields, limits: Limits) -> None:
    """Raise FaultError for a converted request that would be refused if a client sent it."""
    if len(target) > limits.target:
        raise FaultError(parser_limits.too_long(limits), "as its version is converted")
    if len(fields) > limits.header_fields:
        raise FaultError(parser_limits.too_many(limits), "as its version is converted")
    left = limits.header_bytes
    for name, value in fields:
        left -= len(name) + len(value) + _AROUND
    if left < 0:
        raise FaultError(parser_limits.too_heavy(limits), "as its version is converted")


def check_made_response(response: UpstreamHead, fields: HeaderFields) -> None:
    """Raise FaultError for a converted head that would be refused if a service sent it."""
    if len(fields) > MOST_FIELDS:
        raise body_conversion.failed(response, f"it would have more than {MOST_FIELDS} fields")
    left = MAX_HEAD
    for name, value in fields:
        left -= len(name) + len(value) + _AROUND
    if left < 0:
        raise body_conversion.failed(response, f"its fields would have more than {MAX_HEAD} bytes")


def sent_conversion(
    converting: Conversion,
    method: str,
    asked: str,
    kind: BodyKind,
    *,
    has_body: bool,
) -> BodyConversion | None:
    """Return the conversion of a request with or without a body; None if no body is converted.

    Args:
        converting: the conversion of the request.
        method: the method of the client's request.
        asked: the method that the service is asked by.
        kind: what its header fields say of its body; see `described`.
        has_body: whether the request has a body.
    """
    empty = not has_body
    if empty:
        made = converting.made(asked)
        if made is not None:
            return made
        empty = not is_empty_form(method, kind[0])
        if empty and not converting.needs_message:
            return None
    found = request_conversion(converting, asked, kind)
    return None if found is None or (empty and not found.needs_message) else found


def request_conversion(converting: Conversion, asked: str, kind: BodyKind) -> BodyConversion | None:
    """Return the conversion of the body of a request, or None if the body passes unchanged."""
    if kind[0] in _UNREAD:
        return None
    # A merge patch has only the fields to change, by whatever method it is sent (RFC 7396). The
    # service takes the others by the method that it gets: what an old PUT lacks, a PATCH leaves.
    return converting.for_request("PATCH" if kind[0] is _MERGE_PATCH else asked)


def bodiless(method: str, status: int) -> bool:
    """Whether a response has no body, regardless of its fields (RFC 9110, section 6.4.1)."""
    return method == "HEAD" or status in (204, 304)


def _has_other_body(converting: Conversion, method: str, status: int, answered: int) -> bool:
    """Whether the client has a body where the service has none, or another one, or the reverse.

    Args:
        converting: the conversion of the answer.
        method: the method of the request.
        status: the status of the answer of the service.
        answered: the status of the answer to the client, which is another one.
    """
    if method == "HEAD":
        return False
    if bodiless(method, answered) != bodiless(method, status):
        return True
    return converting.loses_body(method, status)


def converted_target(plan: Plan, message: Message) -> str:
    """Return the target of a request whose query was converted with its body."""
    path = plan.target.partition("?")[0]
    return written_target(plan.rewrite, path, write_query(message.query))


async def _whole(body: RequestBody, around: Surroundings, room: ConversionRoom) -> bytes:
    if isinstance(body, AsyncIterator):
        return await room.gather(body, around.length or 0)
    return body or b""


def _other_body(
    response: UpstreamHead,
    answered: int,
    conversion: BodyConversion | None,
    fields: HeaderFields,
    message: Message | None = None,
) -> tuple[HeaderFields, bytes | None]:
    """Return fields and body of an answer without that of its service; see `_has_other_body`."""
    if bodiless("", answered):
        return headers.end_to_end(fields, _OF_BODY), None
    if conversion is None:
        return headers.end_to_end(fields, _OF_BODY), b""
    # The changes make a body of nothing.
    return fields, body_conversion.convert_made(response, conversion, message)


def _made_json(fields: HeaderFields) -> HeaderFields:
    """Return the fields of an answer whose body the changes make: JSON, as its service has none."""
    return [*headers.end_to_end(fields, _TYPE), _JSON]
