"""Message rewriting: makes requests for services and responses for clients, of every version.

Live traffic and shadows call `rewrite_request` and `rewrite_response`, which drop the fields that
are not forwarded, convert fields and body, replace the version, and add the fields of this hop.
`gateway.proxy.offline_message` calls `convert_request` and `convert_response` for the commands
`convert` and `explain`.

The conversion is always first and the version always last, also in the query (`routing.plan`).
A conversion is declared on the fields of the version that wrote the message, so it receives them
unchanged. It may leave a value under a name at which a version is read, by a rename for instance,
and the receiver would take that value for the version. So the version is written last, when no
other step can change it.

Most conversions change fields, query and body separately. Where a change moves a value between
them, or depends on more than a value, they are converted together, version step by version step.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from email.utils import formatdate
from functools import lru_cache
from time import time
from typing import Final, NamedTuple, Protocol

from aiohttp.http import HttpVersion11

from gateway.base import headers
from gateway.base.errors import FaultError, unconvertible
from gateway.base.headers import (
    BOUNDED_METHODS,
    LINK,
    FieldLines,
    HeaderFields,
    HeaderFilter,
    with_fewer_forwards,
)
from gateway.conversion.chain import BodyConversion, Conversion
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.entity_tags import CONDITIONS, EntityTags
from gateway.conversion.formats.body_format import (
    EMPTY_FORM,
    STREAMS,
    BodyFormat,
    BodyKind,
    described,
    is_empty_form,
    is_stream,
    passes,
)
from gateway.conversion.formats.form_body import retyped
from gateway.conversion.message import Message, QueryStep, QueryWalk
from gateway.conversion.parameter_change import (
    QUERY,
    parse_fields,
    parse_query,
    write_fields,
    write_query,
)
from gateway.http.client import request_parsing
from gateway.http.content_coding import LONGEST_ACCEPT_ENCODING, accepted_coding
from gateway.http.limits import Limits
from gateway.http.upstream.connection import (
    MAX_HEAD,
    MOST_FIELDS,
    forwarding_lines,
    known_forwarding_lines,
)
from gateway.http.upstream.service import CLIENT_HOST, TARGET_HOST
from gateway.http.upstream.upstream import RequestBody, UpstreamHead, UpstreamRequest
from gateway.proxy import body_conversion, compression, cors_fields, links
from gateway.proxy.conversion_budget import ConversionShare
from gateway.proxy.record import Exchange
from gateway.rollout.shadow import SAFE
from gateway.routing.links import LinkMapper
from gateway.routing.plan import Plan, written_target

_VIA: Final = (b"Via", b"1.1 " + headers.PSEUDONYM)
_IDENTITY = (b"Accept-Encoding", b"identity")
_EXPECT = frozenset({b"expect"})
_WEBSOCKET: Final = (
    "it asks for a WebSocket, whose messages cannot be converted; use a version that is served"
    " without conversion"
)
_ETAG = frozenset({b"etag"})
_PREFIX = b"x-forwarded-prefix"
_RANGE = frozenset({b"content-range"})
_ETAG_LENGTH = len(b"etag")
# A part of a converted body cannot be had (RFC 9110, section 14.3).
_NO_RANGES = (b"Accept-Ranges", b"none")
_takes = compression.takes
_convert_response_body = body_conversion.convert_response_body
# What holds where a conversion leaves a body as it is.
_OF_UNALTERED: Final = headers.DIGESTS | {b"content-encoding"}
# Other statuses with the entity tag of the resource (RFC 9110, sections 15.4.5 and 15.5.13).
_CURRENT = frozenset({304, 412})
_AROUND: Final = len(": \r\n")  # of a header field line
_OF_BODY = headers.BYTE_FIELDS | {b"content-type"}
_TYPE = frozenset({b"content-type"})
_CONVERTED = headers.header_filter(headers.BYTE_FIELDS)
_JSON = (b"Content-Type", b"application/json")
_NOTHING = b"{}"
# To read a member from its class takes ten times as much.
_FORM, _MERGE_PATCH = BodyFormat.FORM, BodyFormat.MERGE_PATCH
_UNREAD: Final = (BodyFormat.PASSED, BodyFormat.OTHER)
# Requests with these methods have no body by custom (RFC 9110, section 9.3).
_BODILESS = frozenset({"GET", "HEAD", "DELETE"})


RewrittenResponse = tuple[int, HeaderFields, bytes | AsyncIterator[bytes] | None, bool]
"""A response for the client: status, fields, body, and whether the body may differ.

The body is None if that of the service is forwarded unchanged; see also `bodiless`. A stream of
documents is an iterator, which converts each document when it arrives.
"""


async def rewrite_request(  # noqa: C901  # one walk in one frame, for speed
    exchange: Exchange, plan: Plan, body: RequestBody, room: ConversionShare
) -> UpstreamRequest:
    """Return the request to send to the service of a plan.

    Args:
        exchange: the client's request, with its head read.
        plan: the plan for the request.
        body: the request body, in pieces or whole; None for no body.
        room: the room for a body that is converted.

    Raises:
        FaultError: the request does not fit its version, its Expect cannot be met, a field of
            it would have the service see another request, or it asks for a WebSocket whose
            messages would have to be converted.
    """
    message, route, snapshot = exchange.message, plan.route, exchange.snapshot
    given = plan.operation_path or route  # each property of the plan would be a call
    method, converting, returned = exchange.method, given.request, given.response
    answer = None if returned is None else returned.for_response(method, 200)
    upgrade = exchange.upgrade if message.upgrade else None
    if upgrade is not None and _converts_messages(plan, method, answer):
        raise FaultError(unconvertible(_WEBSOCKET))
    tagged, traced = route.tags is not None, exchange.trace_fields != ()
    fields_filter = snapshot.passed_in_trace if traced else snapshot.passed
    if tagged or answer is not None:
        fields_filter = _request_filter(fields_filter.names, answer is not None, tagged)
    fields, watched = fields_filter.apply(message.raw_headers)
    conversion: BodyConversion | None = None
    target, streamed = plan.target, body is not None and not isinstance(body, bytes)
    if watched:
        exchange.check_fields(watched)
        if route.tags is not None and not CONDITIONS.isdisjoint(watched):
            fields = route.tags.conditions(fields)
        if exchange.has_body and not streamed and b"expect" in watched:  # the body is complete
            fields = headers.end_to_end(fields, _EXPECT)
    if converting is not None:
        arrives = exchange.has_body
        if arrives or method not in SAFE or converting.makes_bodies or converting.needs_message:
            kind, asked = described(fields, plan.endpoint.media_types), plan.method(method)
            conversion = sent_conversion(converting, method, asked, kind, has_body=arrives)
        if conversion is not None:
            if b"expect" in watched and streamed:
                exchange.inform(100, [])
            context = _LiveContext(method, exchange, plan)
            together, fields, body = await convert_request(
                context, converting, fields, kind, body, conversion, room
            )
            if together is not None:
                path, query = plan.target.partition("?")[0], write_query(together.query)
                target = written_target(plan.rewrite, path, query)
            if not headers.DIGESTS.isdisjoint(watched):
                # No closure: a variable in a cell would slow down every request.
                dropped = set(watched).difference(name.lower() for name, _ in fields)
                exchange.count_digests(dropped)
            if b"expect" in watched:
                fields = headers.end_to_end(fields, _EXPECT)
        elif converting.changes_fields:
            context = _LiveContext(method, exchange, plan)
            fields = convert_fields(context, fields, converting)
        changed = converting.changes_fields or converting.needs_message
        if changed or len(target) > snapshot.limits.target:
            _check_request(target, fields, snapshot.limits)
    if method in BOUNDED_METHODS:
        fields = with_fewer_forwards(fields)
        if method == "OPTIONS":
            fields = cors_fields.for_service(exchange, plan, fields)
    if plan.rewrite is not None:
        fields = plan.rewrite.fields(fields)
    inherited = _inherited(exchange) if snapshot.trusted_proxies else ()
    own = b"X-Request-Id: " + exchange.request_id.encode()
    if inherited:
        inherited = tuple(line for line in inherited if line[0].lower() != _PREFIX)
        own += links.prefix_line(exchange, plan)
    elif route.stripped is not None:
        own += route.prefix_line or links.prefix_line(exchange, plan)
    via = _VIA[1] if message.version == HttpVersion11 else b"1.0 " + headers.PSEUDONYM
    lines = forwarding_lines if inherited else known_forwarding_lines
    forwarding = lines(exchange.peer, exchange.authority, via, inherited)
    fields += exchange.trace_fields
    if answer is not None:
        fields.append(_IDENTITY)  # a content coding would have to be undone for the conversion
        upgrade = None
    elif upgrade is not None:
        fields += ((b"Connection", b"Upgrade"), (b"Upgrade", upgrade))
    return UpstreamRequest(
        method if plan.operation_path is None else plan.operation_path.method,
        target,
        fields,
        _host(exchange, plan),
        body,
        exchange.length if conversion is None else None,
        upgrade,
        exchange.inform,
        (forwarding, own),
        exchange.network,
    )


async def rewrite_response(  # noqa: C901  # one walk in one frame, for speed
    exchange: Exchange, plan: Plan, response: UpstreamHead, room: ConversionShare
) -> RewrittenResponse:
    """Return the response for the client; see `RewrittenResponse`.

    Raises:
        FaultError: the response cannot be converted completely, and no part of it may be sent; or
            the client's version does not have the method.
    """
    status, route, method = response.status, plan.route, exchange.method
    converting, fields_filter = (plan.operation_path or route).response, route.passed
    answered, tags = status, None
    conversion: BodyConversion | None = None
    declared: BodyConversion | None = None
    represented: BodyConversion | None = None
    body: bytes | AsyncIterator[bytes] | None = None
    altered = False
    if converting is not None:
        if status == 404 and plan.operation_path is not None:
            links.check_method(exchange, plan)
        if converting.changes_status:
            answered = converting.status(method, status)
        types = plan.endpoint.media_types
        declared = converting.for_response(method, status)
        if not ((types or status >= 400) and passes(response.fields, types, status)):
            conversion = declared
        represented = conversion
        if 200 <= status <= 299:
            tags = route.tags
        elif status in _CURRENT:  # they have the tag of a 200, and a 304 all of its fields
            tags, declared = route.tags, converting.for_response(method, 200)
            if status == 304:
                represented = conversion or declared
        fields_filter = _response_filter(route.overrules, represented is not None, tags is not None)
    fields, watched = fields_filter.apply(response.fields)
    kept = fields
    if converting is not None:
        if conversion and not (converting.goes_beyond_bodies or bodiless(method, status)):
            # Most answers.
            body, altered = await _convert_response_body(response, conversion, room, None, types)
        else:
            context = _LiveContext(method, exchange, plan)
            fields, body, altered = await convert_response(
                context, converting, fields, conversion, response, answered, room
            )
            altered = altered or (conversion is None and represented is not None)
        if altered and not _OF_UNALTERED.isdisjoint(watched):
            remaining = headers.end_to_end(fields, _OF_UNALTERED)
            kept = remaining if fields is kept else kept
            fields = remaining
            exchange.count_digests(watched)
        if converting.changes_fields or converting.needs_message:
            _check_response(response, fields)
            fields = cors_fields.for_script(exchange, plan, fields)
    if LINK in watched or fields is not kept:  # a conversion may have made a field of links
        fields = links.map_answer_fields(exchange, plan, fields)
    if route.response_rewrite is not None:
        fields = route.response_rewrite.fields(fields)
    if status == 405 or method == "OPTIONS":
        fields = links.map_allow(exchange, plan, fields)
        if method == "OPTIONS":
            fields = cors_fields.for_preflight(exchange, plan, fields)
    own = plan.content_type if answered < 300 else None
    called = own if status < 300 and answered < 300 else route.error_type or own
    if called is not None and not 300 <= answered <= 399:
        headers.retype(fields, called)
    fields.append(_VIA)
    vary = plan.endpoint.vary
    if plan.endpoint.client_vary:
        vary = plan.endpoint.vary_of(route.version)
    if converting is not None:
        if tags is not None and b"etag" in watched:
            weak = declared is not None and declared.varies
            fields = _tagged(exchange, tags, fields, status, weak=weak)
        if conversion is not None and method in SAFE:
            fields.append(_NO_RANGES)
        # A 304 has the Vary of the answer that it stands for (RFC 9110, section 15.4.5), of which
        # it does not tell the media type; an empty body is the same in every coding.
        if exchange.snapshot.compress and (
            (conversion and (body != b"" if type(body) is bytes else _takes(method, fields, body)))
            or (tags and status == 304 and declared)
        ):
            vary = (*vary, "Accept-Encoding")
    fields = with_common_headers(exchange, fields, watched, vary)
    if exchange.fields:
        fields = cors_fields.with_exposed(exchange, fields)
    if body is not None and isinstance(body, bytes):
        fields.append((b"Content-Length", b"%d" % len(body)))
    elif body is None and conversion and not bodiless(method, answered):
        # It passes as it came, with its length.
        fields += [line for line in response.fields if line[0].lower() == b"content-length"]
    return answered, fields, body, altered


def with_common_headers(
    exchange: Exchange, fields: HeaderFields, watched: Sequence[bytes], vary: tuple[str, ...]
) -> HeaderFields:
    """Return the fields of an answer together with those that every answer carries.

    Args:
        exchange: the request that is answered.
        fields: the header fields of the answer so far.
        watched: the lower-case names `vary` and `date`, each if `fields` contains it.
        vary: the names of the request fields that the answer depends on.
    """
    if vary:
        if vary[0] == "*":
            fields = headers.without_shared_caching(fields)
        elif b"vary" in watched:
            fields = headers.with_vary(fields, vary)
        else:
            fields.append((b"Vary", headers.field_list(vary)))
    if exchange.fields:
        fields += exchange.fields
    if b"date" not in watched:
        # RFC 9110, section 6.6.1: a response without a date gets the time of its receipt.
        fields.append(_date(int(time())))
    fields.append((b"X-Request-Id", exchange.request_id.encode()))
    return fields


def _converts_messages(plan: Plan, method: str, answer: BodyConversion | None) -> bool:
    """Return whether a handshake, which is a GET (RFC 6455, 4.1), has messages to convert."""
    if method != "GET" or plan.request is None:
        return False
    return answer is not None or plan.request.for_request(plan.method(method)) is not None


def _host(exchange: Exchange, plan: Plan) -> bytes | None:
    policy = plan.route.service.host
    if policy == TARGET_HOST:
        return None
    if policy != CLIENT_HOST:
        return policy.encode()
    authority, rewrite = exchange.authority, plan.rewrite
    if rewrite is not None and rewrite.changes_authority:
        authority = rewrite.authority(authority)
    return authority.encode()


def _inherited(exchange: Exchange) -> FieldLines:
    if not exchange.snapshot.trusts(exchange.peer):
        return ()
    given = exchange.message.raw_headers
    return tuple(line for line in given if line[0].lower() in headers.FORWARDING)


@lru_cache(maxsize=2)
def _date(second: int) -> tuple[bytes, bytes]:
    return b"Date", formatdate(second, usegmt=True).encode()


@lru_cache(maxsize=16)
def _request_filter(drop: frozenset[bytes], converted: bool, tags: bool) -> HeaderFilter:
    drop |= headers.SELECTION_FIELDS if converted else frozenset()  # they refer to bytes before it
    return HeaderFilter(drop, CONDITIONS if tags else frozenset())


@lru_cache(maxsize=256)
def _response_filter(overruled: frozenset[bytes], converted: bool, tagged: bool) -> HeaderFilter:
    dropped = overruled | headers.REPLACED
    if converted:
        dropped |= (headers.BYTE_FIELDS - _OF_UNALTERED) | _RANGE
        if not tagged:  # the tag is of the bytes before the conversion (RFC 9110, section 8.8.3)
            dropped |= _ETAG
    return HeaderFilter(dropped, _OF_UNALTERED | (_ETAG if tagged else frozenset()))


def _tagged(
    exchange: Exchange, tags: EntityTags, fields: HeaderFields, status: int, *, weak: bool
) -> HeaderFields:
    """Return the fields of a response with the tag for the client; a malformed tag is left out."""
    coding = coding_of(exchange)
    kept: HeaderFields = []
    for line in fields:
        if len(line[0]) == _ETAG_LENGTH and line[0].lower() == b"etag":
            if status == 304:
                given = exchange.message.raw_headers
                asked = [value for name, value in given if name.lower() == b"if-none-match"]
                tag = tags.current(line[1], asked, coding, weak=weak)
            else:
                tag = tags.for_client(line[1], coding, weak=weak)
            if tag is None:
                continue
            line = line[0], tag
        kept.append(line)
    return kept


def coding_of(exchange: Exchange) -> str | None:
    """Return the coding of converted answers that the client prefers; None for no coding."""
    if not exchange.snapshot.compress:
        return None
    text = ",".join(exchange.message.headers.getall("Accept-Encoding", ()))
    return accepted_coding(text) if len(text) <= LONGEST_ACCEPT_ENCODING else None


class MessageContext(Protocol):
    """The request to which a body belongs, as far as conversions need it.

    Attributes:
        method: The method of the client's request.
        asked: The method of the request to the service.
        length: The declared length of the body of the request; None if none is declared.
        media_types: How media types are read; see `Endpoint.media_types`.
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
        """Return the message of a body, or None if its conversion needs none.

        Args:
            conversion: The conversion of the body.
            fields: The header fields of the message.
            status: The status of the response; None for the request.
        """
        ...

    def shown(self, fields: HeaderFields, status: int | None) -> Message:
        """Return the message for changes of the query and of header fields."""
        ...


class _LiveContext(NamedTuple):
    """The context of a request that the gateway serves or repeats."""

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
        needs = conversion.needs_message
        if not (conversion.maps_links or needs):
            return None
        exchange = self.exchange
        mapper = links.link_mapper(exchange, self.plan)
        map_links = links.request_links if status is None else links.answer_links
        link = map_links(exchange, mapper)
        return self._planned(mapper, fields, status, link) if needs else Message(link=link)

    def shown(self, fields: HeaderFields, status: int | None) -> Message:
        mapper = links.link_mapper(self.exchange, self.plan)
        return self._planned(mapper, fields, status)

    def _planned(
        self,
        mapper: LinkMapper,
        fields: HeaderFields,
        status: int | None,
        link: Callable[[str], str] = str,
    ) -> Message:
        query = self.exchange.message.path.partition("?")[2]
        return planned_message(
            self.plan, self.method, mapper.path, query, mapper.captures, fields, status, link
        )


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
    """Return the message of a request or of its answer, which is converted with its body.

    Args:
        plan: The plan for the request.
        method: The method of the client's request.
        path: The path of the client's request.
        query: The query of the client's request.
        captures: The raw captures of the path.
        fields: The header fields of the message.
        status: The status of the answer; None for the request.
        link: Returns a URL for the receiver of the message.
    """
    lines = parse_query(query)
    operation, steps, spelling = plan.endpoint.template.text, _query_steps(plan, method), QUERY
    if any(step.rewrites for step in steps):  # they get the message as the client has sent it
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
    """Return the header fields and the body of a request for the service.

    And the message that has its query, where that was converted together with the body; else None.

    Args:
        context: the request to which the body belongs.
        converting: the conversion of the request.
        fields: its header fields.
        kind: what they say of its body; see `described`.
        body: its body, in pieces or whole; None for no body.
        conversion: the conversion of the body.
        room: the room for the body.

    Raises:
        FaultError: the request does not fit its version, or there is no room to convert it.
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
        return None, _CONVERTED.apply(converted)[0], streamed
    whole = received = (
        await room.gather(body, context.length or 0)
        if isinstance(body, AsyncIterator)
        else body or b""
    )
    method = context.method
    # Some clients give each request a body; here it means nothing (RFC 9110, section 9.3.1).
    if whole and method in SAFE and whole.strip() == _NOTHING:
        whole = body = b""
    made = None if whole else converting.made(context.asked)
    if made is not None:
        whole, conversion = _NOTHING, made
        converted = [*headers.end_to_end(converted, _TYPE), _JSON]
        typed = [*headers.end_to_end(fields, _TYPE), _JSON]
        message = context.message(made, typed, None)
        together = message if made.needs_message else None
    elif not whole and method not in SAFE and is_empty_form(method, kind[0]):
        whole = EMPTY_FORM
    elif together is not None and not whole:
        # It stays without a body, unless a value comes into it.
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
        # It is no JSON and stays: the rest is converted separately.
        together, converted = None, convert_fields(context, converted, converting)
    elif together is not None:
        converted = write_fields(together.headers)
        drops = drops or context.asked in _BODILESS
    if drops and whole == _NOTHING:
        return together, headers.end_to_end(converted, _OF_BODY), None
    if kind[0] is _FORM and not kept:
        converted = retyped(converted, conversion)
    return together, converted if kept else _CONVERTED.apply(converted)[0], whole


async def convert_response(  # noqa: C901  # one walk in one frame, for speed
    context: MessageContext,
    converting: Conversion,
    fields: HeaderFields,
    conversion: BodyConversion | None,
    response: UpstreamHead,
    answered: int,
    room: ConversionShare,
) -> tuple[HeaderFields, bytes | AsyncIterator[bytes] | None, bool]:
    """Return the header fields of an answer for the client, and its body; None if it stays.

    And whether the body may be another one than that of the service. Where it is not, the fields
    that are about its bytes hold.

    Args:
        context: the request to which the body belongs.
        converting: the conversion of the answer.
        fields: the header fields of the answer.
        conversion: the conversion of the body; None for one that is not converted.
        response: the answer of the service.
        answered: the status of the answer to the client.
        room: the room for the body.

    Raises:
        FaultError: the answer cannot be converted completely; no part of it may be sent.
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
    # Values that come into the body from header fields are in neither of them here.
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
            # It is no JSON, or several documents: the rest is converted separately.
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
    """Return the converted header fields of a response, or of a request; raises FaultError."""
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


def _check_request(target: str, fields: HeaderFields, limits: Limits) -> None:
    """Raise FaultError for a converted request that would be refused if a client sent it."""
    refused = None
    if len(target) > limits.target:
        refused = request_parsing.too_long(limits)
    elif len(fields) > limits.header_fields:
        refused = request_parsing.too_many(limits)
    elif _size(fields) > limits.header_bytes:
        refused = request_parsing.too_heavy(limits)
    if refused is not None:
        raise FaultError(refused, "as its version is converted")


def _check_response(response: UpstreamHead, fields: HeaderFields) -> None:
    """Raise FaultError for a converted head that would be refused if a service sent it."""
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
    """Return whether a response with another status has a body that its service did not send."""
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
    """Return the fields and the body of a response without the body of its service."""
    if bodiless("", answered):
        return headers.end_to_end(fields, _OF_BODY), None
    if conversion is None:
        return headers.end_to_end(fields, _OF_BODY), b""
    # The changes make a body of nothing.
    return fields, body_conversion.convert_made(response, conversion, message)
