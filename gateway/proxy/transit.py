"""Transit: converts requests for a service and answers for a client, for live and shadow traffic.

`outgoing` drops the fields that are not forwarded, converts fields and body, replaces the client's
version by the service's, and adds the fields of this hop. `returning` does the same with the
answer, for the client's version.

The conversion is always first and the version always last, also in the query (`routing.plan`).
A conversion is declared on the fields of the version that wrote the message, so it receives them
unchanged. It may leave a value under a name at which a version is read, by a rename for instance,
and the receiver would take that value for the version. So the version is written last, when no
other step can change it.
"""

from collections.abc import AsyncIterator, Sequence
from email.utils import formatdate
from functools import lru_cache
from time import time
from typing import Final

from aiohttp.http import HttpVersion11

from gateway.base import headers
from gateway.base.errors import FaultError, unconvertible
from gateway.base.headers import LINK, FieldFates, FieldLines, HeaderFields
from gateway.base.max_forwards import BOUNDED, counted_down
from gateway.conversion.chain import BodyConversion
from gateway.conversion.entity_tags import CONDITIONS
from gateway.conversion.formats.body_format import described, passes
from gateway.http.accepted_coding import accepted_coding
from gateway.http.upstream.request_head import forwarding_lines, known_forwarding_lines
from gateway.http.upstream.service import CLIENT_HOST, TARGET_HOST
from gateway.http.upstream.upstream import RequestBody, UpstreamHead, UpstreamRequest
from gateway.proxy import answer_links, compression, cors_fields
from gateway.proxy.body.body_conversion import convert_response_body
from gateway.proxy.body.conversion_room import ConversionRoom
from gateway.proxy.converted_message import (
    bodiless,
    check_made_request,
    check_made_response,
    convert_request,
    convert_request_fields,
    convert_response,
    converted_target,
    sent_conversion,
)
from gateway.proxy.exchange import Exchange
from gateway.proxy.planned_message import LiveSurroundings
from gateway.rollout.shadow import SAFE
from gateway.routing.plan import Plan

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
# What holds where a conversion leaves a body as it is.
_OF_UNALTERED: Final = headers.DIGESTS | {b"content-encoding"}
# Other statuses with the entity tag of the resource (RFC 9110, sections 15.4.5 and 15.5.13).
_CURRENT = frozenset({304, 412})


async def outgoing(  # noqa: C901  # one walk in one frame, for speed
    exchange: Exchange, plan: Plan, body: RequestBody, room: ConversionRoom
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
    fates = snapshot.passed_in_trace if traced else snapshot.passed
    if tagged or answer is not None:
        fates = _request_fates(fates.names, answer is not None, tagged)
    fields, watched = fates.sort(message.raw_headers)
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
            around = LiveSurroundings(method, exchange, plan)
            together, fields, body = await convert_request(
                around, converting, fields, kind, body, conversion, room
            )
            if together is not None:
                target = converted_target(plan, together)
            if not headers.DIGESTS.isdisjoint(watched):
                # No closure: a variable in a cell would slow down every request.
                dropped = set(watched).difference(name.lower() for name, _ in fields)
                exchange.count_digests(dropped)
            if b"expect" in watched:
                fields = headers.end_to_end(fields, _EXPECT)
        elif converting.changes_fields:
            around = LiveSurroundings(method, exchange, plan)
            fields = convert_request_fields(around, fields, converting)
        changed = converting.changes_fields or converting.needs_message
        if changed or len(target) > snapshot.limits.target:
            check_made_request(target, fields, snapshot.limits)
    if method in BOUNDED:
        fields = counted_down(fields)
        if method == "OPTIONS":
            fields = cors_fields.for_service(exchange, plan, fields)
    if plan.rewrite is not None:
        fields = plan.rewrite.fields(fields)
    inherited = _inherited(exchange) if snapshot.trusted_proxies else ()
    own = b"X-Request-Id: " + exchange.request_id.encode()
    if inherited:
        inherited = tuple(line for line in inherited if line[0].lower() != _PREFIX)
        own += answer_links.prefix_line(exchange, plan)
    elif route.stripped is not None:
        own += route.prefix_line or answer_links.prefix_line(exchange, plan)
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


async def returning(  # noqa: C901  # one walk in one frame, for speed
    exchange: Exchange, plan: Plan, response: UpstreamHead, room: ConversionRoom
) -> tuple[int, HeaderFields, bytes | AsyncIterator[bytes] | None, bool]:
    """Return the status and the fields of an answer for the client, and its body if converted.

    And whether the body may be another one than that of the service.

    If the returned body is None, the service's body is forwarded unchanged; see also `bodiless`.
    A stream of documents is returned as an iterator, which converts each as it comes.

    Args:
        exchange: the request that is answered.
        plan: the plan that the request followed.
        response: the answer of the service.
        room: the room for a body that is converted.

    Raises:
        FaultError: the answer cannot be converted completely, and no part of it may be sent; or
            the client's version does not have the method.
    """
    status, route, method = response.status, plan.route, exchange.method
    converting, fates = (plan.operation_path or route).response, route.passed
    answered, conversion, tags = status, None, None
    body: bytes | AsyncIterator[bytes] | None = None
    altered = False
    if converting is not None:
        if status == 404 and plan.operation_path is not None:
            answer_links.check_method(exchange, plan)
        if converting.changes_status:
            answered = converting.status(method, status)
        types = plan.endpoint.media_types
        if not ((types or status >= 400) and passes(response.fields, types, status)):
            conversion = converting.for_response(method, status)
        # The tag of any other answer is that of an error.
        tags = route.tags if 200 <= status <= 299 or status in _CURRENT else None
        # A 304 has the fields of the answer that it stands for (RFC 9110, section 15.4.5).
        stands = conversion or (status == 304 and converting.for_response(method, 200))
        fates = _answer_fates(route.overrules, bool(stands), tags is not None)
    fields, watched = fates.sort(response.fields)
    kept = fields
    if converting is not None:
        if conversion and not (converting.goes_beyond_bodies or bodiless(method, status)):
            # Most answers.
            body, altered = await convert_response_body(response, conversion, room, None, types)
        else:
            around = LiveSurroundings(method, exchange, plan)
            fields, body, altered = await convert_response(
                around, converting, fields, conversion, response, answered, room
            )
            altered = altered or (conversion is None and bool(stands))
        if altered and not _OF_UNALTERED.isdisjoint(watched):
            remaining = headers.end_to_end(fields, _OF_UNALTERED)
            kept = remaining if fields is kept else kept
            fields = remaining
            exchange.count_digests(watched)
        if converting.changes_fields or converting.needs_message:
            check_made_response(response, fields)
            fields = cors_fields.for_script(exchange, plan, fields)
    if LINK in watched or fields is not kept:  # a conversion may have made a field of links
        fields = answer_links.map_answer_fields(exchange, plan, fields)
    if route.response_rewrite is not None:
        fields = route.response_rewrite.fields(fields)
    if status == 405 or method == "OPTIONS":
        fields = answer_links.map_allow(exchange, plan, fields)
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
            fields = _tagged(exchange, plan, fields, status)
        if conversion is not None and method in SAFE:
            fields.append(_NO_RANGES)
        # A 304 has the Vary of the answer that it stands for (RFC 9110, section 15.4.5), of which
        # it does not tell the media type; an empty body is the same in every coding.
        if exchange.snapshot.compress and (
            (conversion and (body != b"" if type(body) is bytes else _takes(method, fields, body)))
            or (tags and status == 304 and converting.for_response(method, 200))
        ):
            vary = (*vary, "Accept-Encoding")
    fields = dressed(exchange, fields, watched, vary)
    if exchange.fields:
        fields = cors_fields.with_exposed(exchange, fields)
    if body is not None and isinstance(body, bytes):
        fields.append((b"Content-Length", b"%d" % len(body)))
    elif body is None and conversion and not bodiless(method, answered):
        # It passes as it came, with its length.
        fields += [line for line in response.fields if line[0].lower() == b"content-length"]
    return answered, fields, body, altered


async def coded(
    exchange: Exchange, fields: HeaderFields, body: bytes
) -> tuple[HeaderFields, bytes]:
    """Return a converted answer as it is sent: compressed, if it is large and the client accepts.

    Args:
        exchange: the request that is answered.
        fields: the header fields of the answer.
        body: the converted body.
    """
    coding = coding_of(exchange)
    compressed = coding and await compression.compressed(fields, body, coding)
    return compressed or (fields, body)


def dressed(
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
            fields = headers.unshared(fields)
        elif b"vary" in watched:
            fields = headers.vary(fields, vary)
        else:
            fields.append((b"Vary", headers.listing(vary)))
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
    return (authority if rewrite is None else rewrite.authority(authority)).encode()


def _inherited(exchange: Exchange) -> FieldLines:
    if not exchange.snapshot.trusts(exchange.peer):
        return ()
    given = exchange.message.raw_headers
    return tuple(line for line in given if line[0].lower() in headers.FORWARDING)


@lru_cache(maxsize=2)
def _date(second: int) -> tuple[bytes, bytes]:
    return b"Date", formatdate(second, usegmt=True).encode()


@lru_cache(maxsize=16)
def _request_fates(drop: frozenset[bytes], converted: bool, tags: bool) -> FieldFates:
    drop |= headers.SELECTING if converted else frozenset()  # they refer to bytes before it
    return FieldFates(drop, CONDITIONS if tags else frozenset())


@lru_cache(maxsize=256)
def _answer_fates(overruled: frozenset[bytes], converted: bool, tagged: bool) -> FieldFates:
    dropped = overruled | headers.REPLACED
    if converted:
        dropped |= (headers.ABOUT_BYTES - _OF_UNALTERED) | _RANGE
        if not tagged:  # the tag is of the bytes before the conversion (RFC 9110, section 8.8.3)
            dropped |= _ETAG
    return FieldFates(dropped, _OF_UNALTERED | (_ETAG if tagged else frozenset()))


def _tagged(exchange: Exchange, plan: Plan, fields: HeaderFields, status: int) -> HeaderFields:
    """Return the fields of an answer with the tag for the client; a malformed tag is left out."""
    tags, response = plan.route.tags, plan.response
    assert tags is not None
    assert response is not None  # as there are tags
    # A 304 and a 412 have the tag of the answer that they stand for.
    conversion = response.for_response(exchange.method, 200 if status in _CURRENT else status)
    weak = conversion is not None and conversion.varies
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
    return accepted_coding(exchange.message.headers.getall("Accept-Encoding", ()))
