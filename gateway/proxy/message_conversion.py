"""Conversion of whole messages: header fields, query and body.

Most conversions change header fields, query and body separately. If a change moves a value between
these parts, or depends on several of them, they are converted together, version step by version
step.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final, NamedTuple, Protocol

from gateway.base import headers
from gateway.base.errors import FaultError, unconvertible
from gateway.base.headers import (
    HeaderFields,
)
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
from gateway.conversion.formats.form_body import retyped
from gateway.conversion.message import Message, QueryStep, QueryWalk
from gateway.conversion.parameter_change import (
    QUERY,
    parse_fields,
    parse_query,
    write_fields,
)
from gateway.http.client import request_parsing
from gateway.http.client.message import bodiless
from gateway.http.limits import Limits
from gateway.http.upstream.connection import (
    MAX_HEAD,
    MOST_FIELDS,
)
from gateway.http.upstream.upstream import RequestBody, UpstreamHead
from gateway.proxy import body_conversion, links
from gateway.proxy.conversion_budget import ConversionShare
from gateway.proxy.exchange import Exchange
from gateway.rollout.shadow import SAFE
from gateway.routing.links import LinkMapper
from gateway.routing.plan import Plan

_AROUND: Final = len(": \r\n")  # the bytes of a header field line besides name and value
_OF_BODY = headers.BYTE_FIELDS | {b"content-type"}
_TYPE = frozenset({b"content-type"})
_JSON = (b"Content-Type", b"application/json")
_NOTHING = b"{}"
# Reading a member from its class is ten times slower.
_FORM, _MERGE_PATCH = BodyFormat.FORM, BodyFormat.MERGE_PATCH
_UNREAD: Final = (BodyFormat.PASSED, BodyFormat.OTHER)
# Methods of requests that usually have no body (RFC 9110, section 9.3).
_BODILESS = frozenset({"GET", "HEAD", "DELETE"})


class MessageContext(Protocol):
    """The request to which a body belongs, with the attributes that conversions need.

    Attributes:
        method: The method of the client's request.
        asked: The method of the request to the service.
        length: The declared length of the request's body; None without a declared length.
        media_types: The formats of bodies by media type; see `Endpoint.media_types`.
    """

    @property
    def method(self) -> str: ...

    @property
    def asked(self) -> str: ...

    @property
    def length(self) -> int | None: ...

    @property
    def media_types(self) -> Mapping[str, str]: ...

    def message(
        self, conversion: BodyConversion, fields: HeaderFields, status: int | None
    ) -> Message | None:
        """Return the message, or None if the conversion of the body does not need it."""
        ...

    def shown(self, fields: HeaderFields, status: int | None) -> Message:
        """Return the message, for changes of the query or header fields that read the message."""
        ...


class LiveContext(NamedTuple):
    """The context of a request that the gateway forwards to a service or repeats in a shadow."""

    method: str
    exchange: Exchange
    plan: Plan

    @property
    def asked(self) -> str:
        return self.plan.method(self.method)

    @property
    def length(self) -> int | None:
        return self.exchange.length

    @property
    def media_types(self) -> Mapping[str, str]:
        return self.plan.endpoint.media_types

    def message(
        self, conversion: BodyConversion, fields: HeaderFields, status: int | None
    ) -> Message | None:
        if conversion.needs_message:
            return self.shown(fields, status)
        return Message(link=self._links(status)[1]) if conversion.maps_links else None

    def shown(self, fields: HeaderFields, status: int | None) -> Message:
        mapper, link = self._links(status)
        query = self.exchange.message.path.partition("?")[2]
        return planned_message(
            self.plan, self.method, mapper.path, query, mapper.captures, fields, status, link
        )

    def _links(self, status: int | None) -> tuple[LinkMapper, Callable[[str], str]]:
        mapper = links.link_mapper(self.exchange, self.plan)
        map_links = links.request_links if status is None else links.response_links
        return mapper, map_links(self.exchange, mapper)


def planned_message(
    plan: Plan,
    method: str,
    path: str,
    query: str | None,
    captures: Mapping[str, str],
    fields: HeaderFields,
    status: int | None,
    link: Callable[[str], str] = str,
) -> Message:
    """`captures` are the raw values; `status` is None for the request; `link` maps a URL."""
    lines = parse_query(query)
    operation, steps, spelling = plan.endpoint.template.text, _query_steps(plan, method), QUERY
    if any(step.rewrites for step in steps):  # these steps need the original message
        sent = Message(method, path, operation, captures, "/", status, query=lines)
        spelling = QUERY.of(sent)
    way = QueryWalk(lines, steps, spelling)
    back = () if status is None or plan.response is None else plan.response.query_steps("GET")
    return Message(
        method,
        path,
        operation,
        captures,
        plan.target.partition("?")[0],
        status,
        parse_fields(fields),
        [*way.lines],
        link,
        way,
        back,
    )


def _query_steps(plan: Plan, method: str) -> tuple[QueryStep, ...]:
    if plan.operation_path is not None:
        return plan.operation_path.query_steps
    return () if plan.request is None else plan.request.query_steps(method)


async def convert_request(
    context: MessageContext,
    converting: Conversion,
    fields: HeaderFields,
    kind: BodyKind,
    body: RequestBody,
    conversion: BodyConversion,
    room: ConversionShare,
) -> tuple[Message | None, HeaderFields, RequestBody]:
    """Convert a request for the service.

    Returns:
        The message, the header fields and the body. The message contains the query that was
        converted together with the body; it is None if the query is converted separately.

    Raises:
        FaultError: The request does not fit its version, or the memory budget has no room to
            convert it.
    """
    message = context.message(conversion, fields, None)
    streams = is_stream(kind)
    together = message if conversion.needs_message and not streams else None
    converted = fields
    if together is None:
        converted = convert_fields(context, fields, converting)
    if streams:
        found, _, _ = described(converted, context.media_types)
        streamed = body_conversion.convert_request_stream(body, found, conversion, room, message)
        return None, headers.end_to_end(converted, headers.BYTE_FIELDS), streamed
    whole = received = (
        await room.gather(body, context.length or 0)
        if isinstance(body, AsyncIterator)
        else body or b""
    )
    method = context.method
    # Some clients send `{}` with every request. For a safe method, it has no meaning (RFC 9110,
    # section 9.3.1).
    if whole and method in SAFE and whole.strip() == _NOTHING:
        whole = body = b""
    made = None if whole else converting.made(context.asked)
    if made is not None:
        conversion, bare = made, headers.end_to_end(fields, _TYPE)
        named = convert_fields(context, bare, converting)
        media_type = next((field for field in named if field[0].lower() in _TYPE), _JSON)
        whole, message = _empty_body(context, made, [*bare, media_type])
        converted = [*headers.end_to_end(converted, _TYPE), media_type]
        together = message if made.needs_message else None
    elif not whole and method not in SAFE and is_empty_form(method, kind[0]):
        whole = EMPTY_FORM
    elif together is not None and not whole:
        # The request stays without a body unless a change moves a value into the body.
        whole, converted = _NOTHING, [*headers.end_to_end(fields, _TYPE), _JSON]
        carried = await body_conversion.convert_request_body(
            whole, described(converted, context.media_types), conversion.carrying, room, together
        )
        if carried == _NOTHING:
            left = headers.end_to_end(write_fields(together.headers), _OF_BODY)
            return together, left, body if isinstance(body, bytes) else None
        message = together = context.message(conversion, converted, None)
    sent = kind if converted is fields else described(converted, context.media_types)
    made_body = await body_conversion.convert_request_body(whole, sent, conversion, room, message)
    whole, drops = whole if made_body is None else made_body, converting.drops_body
    kept = whole is received
    if together is not None and made_body is None:
        # The body is not JSON and stays unchanged. Convert header fields and query separately.
        together, converted = None, convert_fields(context, converted, converting)
    elif together is not None:
        converted = write_fields(together.headers)
        drops = drops or context.asked in _BODILESS
    if drops and whole == _NOTHING:
        return together, headers.end_to_end(converted, _OF_BODY), None
    if kind[0] is _FORM and not kept:
        converted = retyped(converted, conversion)
    return (
        together,
        converted if kept else headers.end_to_end(converted, headers.BYTE_FIELDS),
        whole,
    )


def _empty_body(
    context: MessageContext, conversion: BodyConversion, fields: HeaderFields
) -> tuple[bytes, Message | None]:
    """Return an empty body of the media type of the fields, and its message."""
    is_form = described(fields, context.media_types)[0] is _FORM
    return EMPTY_FORM if is_form else _NOTHING, context.message(conversion, fields, None)


async def convert_response(  # noqa: C901  # one walk in one frame, for speed
    context: MessageContext,
    converting: Conversion,
    fields: HeaderFields,
    conversion: BodyConversion | None,
    response: UpstreamHead,
    answered: int,
    room: ConversionShare,
) -> tuple[HeaderFields, bytes | AsyncIterator[bytes] | None, bool]:
    """Convert a response for the client.

    Returns:
        The header fields, the body, and whether the body may differ from the service's body. If it
        cannot differ, the header fields that describe its bytes stay valid. The body is None if the
        service's body is forwarded unchanged.

    Raises:
        FaultError: The response cannot be converted completely. No part of it may be sent.
    """
    status, method = response.status, context.method
    changes = answered != status and _has_other_body(converting, method, status, answered)
    if conversion is None:
        fields = convert_fields(context, fields, converting, response)
        if not changes:
            return fields, None, False
        return *_other_body(response, answered, None, fields), True
    has_body = not bodiless(method, answered)
    if changes and has_body:
        fields = [*headers.end_to_end(fields, _TYPE), _JSON]
    # A response to HEAD has no body. Values that a change moves from header fields to the body are
    # only removed.
    heads = method == "HEAD" and conversion.needs_message
    message = None
    if (conversion.needs_message or conversion.maps_links) and (has_body or heads):
        message = context.message(conversion, fields, status)
    together = message
    types = context.media_types
    if not conversion.needs_message or described(fields, types)[0] in STREAMS:
        together = None
    if together is None and converting.changes_fields:
        fields = convert_fields(context, fields, converting, response)
    body: bytes | AsyncIterator[bytes] | None = None
    altered = True
    if changes:
        fields, body = _other_body(response, answered, conversion, fields, message)
    elif has_body:
        given = response, conversion, room, message, types
        body, altered = await body_conversion.convert_response_body(*given)
        if together is not None and (body is None or isinstance(body, AsyncIterator)):
            # The body is not JSON, or has several documents. Convert the header fields separately.
            together, fields = None, convert_fields(context, fields, converting, response)
    elif together is not None:
        body_conversion.convert_made(response, conversion.carrying, together)
    if together is not None:
        fields = write_fields(together.headers)
        if body and not any(name.lower() in _TYPE for name, _ in fields):
            fields.append(_JSON)
    return fields, body, altered


def convert_fields(
    context: MessageContext,
    fields: HeaderFields,
    converting: Conversion,
    response: UpstreamHead | None = None,
) -> HeaderFields:
    """Convert the fields of a response, or of a request without one; raises FaultError."""
    if not converting.changes_fields:
        return fields
    status = None if response is None else response.status
    shown = context.shown(fields, status) if converting.shows_message else None
    try:
        return converting.fields(context.method, status, fields, shown)
    except ConversionError as error:
        if response is not None:
            raise body_conversion.failed(response, error, error.cause) from None
        raise FaultError(unconvertible(error, error.misfit), error.cause) from None


def check_request(target: str, fields: HeaderFields, limits: Limits) -> None:
    """Raise FaultError if a converted request exceeds the limits that apply to client requests."""
    refused = None
    if len(target) > limits.target:
        refused = request_parsing.too_long(limits)
    elif len(fields) > limits.header_fields:
        refused = request_parsing.too_many(limits)
    elif _size(fields) > limits.header_bytes:
        refused = request_parsing.too_heavy(limits)
    if refused is not None:
        raise FaultError(refused, "as its version is converted")


def check_response(response: UpstreamHead, fields: HeaderFields) -> None:
    """Raise FaultError if the head of a converted response exceeds the limits for responses."""
    if len(fields) > MOST_FIELDS:
        raise body_conversion.failed(response, f"it would have more than {MOST_FIELDS} fields")
    if _size(fields) > MAX_HEAD:
        raise body_conversion.failed(response, f"its fields would have more than {MAX_HEAD} bytes")


def _size(fields: HeaderFields) -> int:
    size = len(fields) * _AROUND
    for name, value in fields:
        size += len(name) + len(value)
    return size


def sent_conversion(
    converting: Conversion, method: str, asked: str, kind: BodyKind, *, has_body: bool
) -> BodyConversion | None:
    """Return None if no body is converted. Changes may create a body for a request without one.

    `method` is that of the client's request, and `asked` that of the request to the service.
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
    """Return the conversion of a request's body, or None if the body is forwarded unchanged."""
    if kind[0] in _UNREAD:
        return None
    # A merge patch contains only the fields to change, also if its method is not PATCH (RFC 7396).
    # For other bodies, the method of the request to the service decides: if a PUT without a field
    # becomes a PATCH, the PATCH leaves the field unchanged.
    return converting.for_request("PATCH" if kind[0] is _MERGE_PATCH else asked)


def _has_other_body(converting: Conversion, method: str, status: int, answered: int) -> bool:
    """Return whether a change of the status also replaces the body of the service's response."""
    if method == "HEAD":
        return False
    if bodiless(method, answered) != bodiless(method, status):
        return True
    return converting.loses_body(method, status)


def _other_body(
    response: UpstreamHead,
    answered: int,
    conversion: BodyConversion | None,
    fields: HeaderFields,
    message: Message | None = None,
) -> tuple[HeaderFields, bytes | None]:
    """Return the header fields and the new body of a response whose body must be replaced."""
    if bodiless("", answered):
        return headers.end_to_end(fields, _OF_BODY), None
    if conversion is None:
        return headers.end_to_end(fields, _OF_BODY), b""
    return fields, body_conversion.convert_made(response, conversion, message)
