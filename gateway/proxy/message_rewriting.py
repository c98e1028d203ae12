"""Message rewriting: creates the requests to services and the responses to clients.

Conversion is always the first step, because a conversion is declared for the fields that the sender
wrote. The version is always written in the last step, in the query too (`routing.plan`), so that no
other step can overwrite it. For example, a conversion may rename a header field to the name of the
field from which the receiver reads the version.
"""

import re
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from email.utils import formatdate
from functools import lru_cache, partial
from time import time
from typing import Final

from aiohttp.http import HttpVersion11

from gateway.base import headers
from gateway.base.errors import Fault, FaultCode, FaultError, unconvertible
from gateway.base.headers import (
    BOUNDED_METHODS,
    LINK,
    FieldLines,
    FieldNames,
    HeaderFields,
    filtered,
    watching_filter,
    with_fewer_forwards,
)
from gateway.conversion.chain import BodyConversion, Conversion
from gateway.conversion.formats.body_format import (
    BodyKind,
    described,
    passes,
)
from gateway.conversion.parameter_change import (
    write_query,
)
from gateway.http.client.message import bodiless
from gateway.http.client.public_origin import public_origin
from gateway.http.content_coding import CODINGS, LONGEST_ACCEPT_ENCODING, accepted_coding
from gateway.http.upstream.connection import (
    forwarding_lines,
    known_forwarding_lines,
)
from gateway.http.upstream.service import CLIENT_HOST, TARGET_HOST
from gateway.http.upstream.upstream import RequestBody, UpstreamHead, UpstreamRequest
from gateway.proxy import body_conversion, compression, cors_fields, links
from gateway.proxy.conversion_budget import ConversionShare
from gateway.proxy.exchange import Exchange
from gateway.proxy.message_conversion import (
    LiveContext,
    check_request,
    check_response,
    convert_fields,
    convert_request,
    convert_response,
    sent_conversion,
)
from gateway.rollout.shadow import SAFE
from gateway.routing.plan import MergedWrite, Plan, written_target

_VIA: Final = (b"Via", b"1.1 " + headers.PSEUDONYM)
_IDENTITY = (b"Accept-Encoding", b"identity")
_EXPECT = frozenset({b"expect"})
_WEBSOCKET: Final = (
    "it requests a WebSocket, whose messages cannot be converted; use a version that is served"
    " without conversion"
)
_ETAG = frozenset({b"etag"})
_OUTCOME = frozenset({b"etag", b"location"})
_PREFIX = b"x-forwarded-prefix"
_ETAG_LENGTH = len(b"etag")
# Clients cannot request a part of a converted body (RFC 9110, section 14.3).
_NO_RANGES = (b"Accept-Ranges", b"none")
_compressible = compression.is_compressible
_convert_response_body = body_conversion.convert_response_body
# Header fields that stay valid if a conversion does not alter the body.
_OF_UNALTERED: Final = headers.DIGESTS | {b"content-encoding"}
# Statuses other than 2xx whose ETag is the entity tag of the resource (RFC 9110, sections 15.4.5
# and 15.5.13).
_CURRENT = frozenset({304, 412})


RewrittenResponse = tuple[int, HeaderFields, bytes | AsyncIterator[bytes] | None, bool]
"""A response for the client: its status, header fields and body, and whether the body may differ
from the service's body.

The body is None if the service's body is forwarded unchanged, or if there is no body (`bodiless`).
A stream of documents is an iterator, which converts each document when it arrives.
"""


_ResponseConversion = tuple[
    BodyConversion | None, BodyConversion | None, BodyConversion | None, bytes | None
]

_UNCONVERTED: _ResponseConversion = (None, None, None, None)


async def rewrite_request(  # noqa: C901  # one walk in one frame, for speed
    exchange: Exchange, plan: Plan, body: RequestBody, room: ConversionShare
) -> UpstreamRequest:
    """Raises FaultError if the request cannot be converted, or would be unsafe to forward.

    Unsafe are an unsupported Expect, a field that could make the service read another request, and
    a WebSocket whose messages would need a conversion.
    """
    message, route, snapshot = exchange.message, plan.route, exchange.snapshot
    given = plan.operation_path or route  # faster than the properties of the plan
    method, converting, returned = exchange.method, given.request, given.response
    converts = returned is not None and returned.parts[method, 200].body is not None
    upgrade = exchange.upgrade if message.upgrade else None
    if upgrade is not None and _converts_messages(plan, method, converts):
        raise FaultError(unconvertible(_WEBSOCKET))
    tagged, traced = route.tag_key is not None, exchange.trace_fields != ()
    actions = snapshot.passed_in_trace if traced else snapshot.passed
    withheld = None if route.access is None else route.access.withheld
    if tagged or converts or withheld:
        actions = _request_filter(actions.names, withheld, converts, tagged)
    fields, watched = filtered(message.raw_headers, actions)
    conversion: BodyConversion | None = None
    target, streamed = plan.target, body is not None and not isinstance(body, bytes)
    if watched:
        exchange.check_fields(watched)
        if route.tag_key is not None and not CONDITIONS.isdisjoint(watched):
            fields = service_conditions(route.tag_key, fields)
        if converts and not headers.RANGES.isdisjoint(watched):
            fields = headers.without_byte_ranges(fields)
        if exchange.has_body and not streamed and b"expect" in watched:  # the body is complete
            fields = headers.end_to_end(fields, _EXPECT)
    if converting is not None:
        arrives = exchange.has_body
        if arrives or method not in SAFE or converting.makes_bodies or converting.needs_message:
            kind, asked = described(fields, plan.endpoint.media_types), plan.method(method)
            conversion = sent_conversion(converting, method, asked, kind, has_body=arrives)
        if conversion is not None and (plan.shadow is None or type(plan.shadow) is not MergedWrite):
            if b"expect" in watched and streamed:
                exchange.inform(100, [])
            context = LiveContext(method, exchange, plan)
            target, fields, body = await _converted(
                context, converting, fields, watched, kind, body, conversion, room
            )
        elif converting.changes_fields:
            fields = convert_fields(LiveContext(method, exchange, plan), fields, converting)
        if (
            converting.changes_fields
            or converting.needs_message
            or len(target) > snapshot.limits.target
        ):
            check_request(target, fields, snapshot.limits)
    if method in BOUNDED_METHODS:
        fields = with_fewer_forwards(fields)
        if method == "OPTIONS":
            fields = cors_fields.for_service(exchange, plan, fields)
    if plan.rewrite is not None:
        fields = plan.rewrite.fields(fields)
    fields += exchange.trace_fields
    if converts:
        fields.append(_IDENTITY)  # avoids that the gateway must decode the response
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
        partial(links.inform, exchange, plan),
        _gateway_lines(exchange, plan),
        exchange.network,
    )


async def _converted(
    context: LiveContext,
    converting: Conversion,
    fields: HeaderFields,
    watched: Sequence[bytes],
    kind: BodyKind,
    body: RequestBody,
    conversion: BodyConversion,
    room: ConversionShare,
) -> tuple[str, HeaderFields, RequestBody]:
    """Return the target, header fields and body; raises FaultError."""
    exchange, plan = context.exchange, context.plan
    target = plan.target
    together, fields, body = await convert_request(
        context, converting, fields, kind, body, conversion, room
    )
    if together is not None:
        path, query = target.partition("?")[0], write_query(together.query)
        target = written_target(plan.rewrite, path, query)
    if not headers.DIGESTS.isdisjoint(watched):
        exchange.count_digests(set(watched).difference(name.lower() for name, _ in fields))
    if b"expect" in watched:
        fields = headers.end_to_end(fields, _EXPECT)
    return target, fields, body


def _gateway_lines(exchange: Exchange, plan: Plan) -> tuple[bytes, bytes]:
    """Return the header field lines that describe the client and this hop to the service."""
    snapshot, route = exchange.snapshot, plan.route
    inherited = _inherited(exchange) if snapshot.trusted_proxies else ()
    own = b"X-Request-Id: " + exchange.request_id.encode()
    if inherited:
        inherited = tuple(line for line in inherited if line[0].lower() != _PREFIX)
        own += links.prefix_line(exchange, plan)
    elif route.stripped is not None:
        own += route.prefix_line or links.prefix_line(exchange, plan)
    is_1_1 = exchange.message.version == HttpVersion11
    via = _VIA[1] if is_1_1 else b"1.0 " + headers.PSEUDONYM
    sender = exchange.peer, exchange.connection.scheme, exchange.authority
    if not inherited:
        return known_forwarding_lines(*sender, via, ()), own
    return forwarding_lines(*sender, via, inherited, public_origin(exchange)), own


async def rewrite_response(  # noqa: C901  # one walk in one frame, for speed
    exchange: Exchange, plan: Plan, response: UpstreamHead, room: ConversionShare
) -> RewrittenResponse:
    """Raises FaultError if the response cannot be converted, or the version lacks the method."""
    status, route, method = response.status, plan.route, exchange.method
    converting, actions = (plan.operation_path or route).response, route.passed
    answered, altered = status, False
    conversion, represented, _, tag_key = found = _UNCONVERTED
    body: bytes | AsyncIterator[bytes] | None = None
    if converting is not None:
        if converting.filters_responses:
            converting = converting.of_response(response.fields)
        if status == 404 and plan.operation_path is not None:
            links.check_method(exchange, plan)
        if converting.changes_status:
            answered = converting.status(method, status)
        found = _response_conversion(converting, plan, method, response)
        conversion, represented, _, tag_key = found
        actions = _response_filter(
            route.overridden_fields, represented is not None, tag_key is not None
        )
    fields, watched = filtered(response.fields, actions)
    if represented is not None and not headers.RANGES.isdisjoint(watched):
        fields = headers.without_byte_ranges(fields)
    kept = fields
    if converting is not None:
        bare = method == "HEAD" or status in (204, 304)  # `bodiless` without a call
        if conversion and not (converting.goes_beyond_bodies or bare):  # most responses
            types = plan.endpoint.media_types
            body, altered = await _convert_response_body(response, conversion, room, None, types)
        else:
            context = LiveContext(method, exchange, plan)
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
            check_response(response, fields)
            fields = cors_fields.for_script(exchange, plan, fields)
    if LINK in watched or fields is not kept:  # a conversion may have created a field with links
        fields = links.map_response_fields(exchange, plan, fields)
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
    endpoint = plan.endpoint
    vary = endpoint.vary_of(route.version) if endpoint.client_vary else endpoint.vary
    if converting is not None:
        fields, vary = _describe_body(exchange, found, fields, watched, status, body, vary)
    fields = with_common_headers(exchange, fields, watched, vary)
    if endpoint.cors is not None:
        request = exchange.message.headers
        fields += endpoint.cors.answer(request, fields, exchange.fields)
    elif exchange.fields:
        fields = cors_fields.with_exposed(exchange, fields)
    if body is not None and isinstance(body, bytes):
        fields.append((b"Content-Length", b"%d" % len(body)))
    elif body is None and conversion and not bodiless(method, answered):
        fields += [line for line in response.fields if line[0].lower() == b"content-length"]
    return answered, fields, body, altered


def _describe_body(
    exchange: Exchange,
    found: _ResponseConversion,
    fields: HeaderFields,
    watched: Sequence[bytes],
    status: int,
    body: bytes | AsyncIterator[bytes] | None,
    vary: tuple[str, ...],
) -> tuple[HeaderFields, tuple[str, ...]]:
    """Return the header fields and Vary of a converted response, which describe its body.

    `status` is that of the service's response.
    """
    conversion, _, declared, tag_key = found
    method = exchange.method
    if tag_key is not None and b"etag" in watched:
        weak = declared is not None and declared.varies
        fields = _tagged(exchange, tag_key, fields, status, weak=weak)
    if conversion is not None and method in SAFE and not _has_ranges(fields, watched):
        fields.append(_NO_RANGES)
    if not exchange.snapshot.compress:
        return fields, vary
    if conversion is not None:
        # An empty body is the same in every coding.
        compresses = body != b"" if type(body) is bytes else _compressible(method, fields, body)
        if compresses:
            return fields, (*vary, "Accept-Encoding")
    # A 304 has the same Vary as the corresponding 200 (RFC 9110, section 15.4.5), whose media type
    # is unknown here.
    if status == 304 and tag_key is not None and declared is not None:
        vary = (*vary, "Accept-Encoding")
    return fields, vary


def with_outcome(exchange: Exchange, plan: Plan, response: UpstreamHead, fault: Fault) -> Fault:
    """Add the status, Location and ETag of a response to its refusal, after an unsafe method.

    The service has already acted (RFC 9110, section 9.2.1), so a client that repeats the request
    may act twice.
    """
    if exchange.method in SAFE or fault.code is FaultCode.METHOD_NOT_ALLOWED:
        return fault
    found = {line[0].lower(): line for line in response.fields if line[0].lower() in _OUTCOME}
    fields = list(found.values())
    converting = (plan.operation_path or plan.route).response
    if converting is not None:
        if converting.filters_responses:
            converting = converting.of_response(response.fields)
        given = converting, plan, exchange.method, response
        _, represented, declared, tag_key = _response_conversion(*given)
        if tag_key is not None:
            weak = declared is not None and declared.varies
            fields = _tagged(exchange, tag_key, fields, response.status, weak=weak)
        elif represented is not None:
            fields = headers.end_to_end(fields, _ETAG)
    with suppress(FaultError):  # too many links
        fields = links.map_response_fields(exchange, plan, fields)
    own = {"serviceStatus": response.status, **fault.own}
    return replace(fault, fields=(*fault.fields, *fields), own=own)


def _response_conversion(
    converting: Conversion, plan: Plan, method: str, response: UpstreamHead
) -> _ResponseConversion:
    """Determine how a response is converted.

    Returns:
        Four values:

        - The conversion of the body; None if the body is forwarded unchanged.
        - The conversion of the body that the header fields describe. For a 304, this is the body of
          the corresponding 200.
        - The conversion that is declared for the status, without regard to the media type. If the
          entity tag belongs to the corresponding 200, the conversion for status 200.
        - The key for the entity tag; None if the tag is forwarded unchanged or dropped.
    """
    status, types = response.status, plan.endpoint.media_types
    body = declared = converting.parts[method, status].body
    if (types or status >= 400) and passes(response.fields, types, status):
        body = None
    represented, tag_key = body, None
    if 200 <= status <= 299:
        tag_key = plan.route.tag_key
    elif status in _CURRENT:  # these have the tag of the 200, and a 304 has all its header fields
        tag_key, declared = plan.route.tag_key, converting.parts[method, 200].body
        if status == 304:
            represented = body or declared
    return body, represented, declared, tag_key


def with_common_headers(
    exchange: Exchange, fields: HeaderFields, watched: Sequence[bytes], vary: tuple[str, ...]
) -> HeaderFields:
    """Return the fields with Vary and Date, and with those of the selected version.

    `watched` has the names of watched fields that are present, in lower case.
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
        # RFC 9110, section 6.6.1: a response without Date gets the time at which it was received.
        fields.append(_date(int(time())))
    fields.append((b"X-Request-Id", exchange.request_id.encode()))
    return fields


def _converts_messages(plan: Plan, method: str, converts: bool) -> bool:
    """Return whether the messages of a WebSocket would need a conversion.

    The handshake of a WebSocket is a GET request (RFC 6455, section 4.1).
    """
    if method != "GET" or plan.request is None:
        return False
    return converts or plan.request.for_request(plan.method(method)) is not None


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
    names = ((line, line[0].lower()) for line in given)
    return tuple(
        line
        for line, name in names
        if name in headers.FORWARDING or headers.is_identity_field(name)
    )


@lru_cache(maxsize=2)
def _date(second: int) -> tuple[bytes, bytes]:
    return b"Date", formatdate(second, usegmt=True).encode()


@lru_cache(maxsize=64)
def _request_filter(
    drop: frozenset[bytes], withheld: frozenset[bytes] | None, converted: bool, tags: bool
) -> FieldNames:
    drop |= withheld or frozenset()
    # Drop header fields that select a coding or a range of the unconverted response.
    watch = CONDITIONS if tags else frozenset[bytes]()
    if converted:
        drop |= headers.SELECTION_FIELDS - headers.RANGES
        watch |= headers.SELECTION_FIELDS & headers.RANGES
    return watching_filter(drop, watch)


@lru_cache(maxsize=256)
def _response_filter(overruled: frozenset[bytes], converted: bool, tagged: bool) -> FieldNames:
    dropped, watch = overruled | headers.REPLACED, _OF_UNALTERED
    if converted:
        dropped |= headers.BYTE_FIELDS - _OF_UNALTERED - headers.RANGES
        watch |= headers.RANGES
        # Without a key, the entity tag is valid only for the unconverted bytes (RFC 9110, section
        # 8.8.3).
        if not tagged:
            dropped |= _ETAG
    return watching_filter(dropped, watch | (_ETAG if tagged else frozenset()))


def _has_ranges(fields: HeaderFields, watched: Sequence[bytes]) -> bool:
    """Return whether the service supports ranges of a unit that the conversion keeps."""
    return not headers.RANGES.isdisjoint(watched) and any(
        name.lower() in headers.RANGES for name, _ in fields
    )


def _tagged(
    exchange: Exchange, key: bytes, fields: HeaderFields, status: int, *, weak: bool
) -> HeaderFields:
    """Replace the service's entity tag with a tag for the client; a malformed one is dropped."""
    coding = coding_of(exchange)
    kept: HeaderFields = []
    for line in fields:
        if len(line[0]) == _ETAG_LENGTH and line[0].lower() == b"etag":
            if status == 304:
                given = exchange.message.raw_headers
                asked = [value for name, value in given if name.lower() == b"if-none-match"]
                tag = current_tag(key, line[1], asked, coding, weak=weak)
            else:
                tag = client_tag(key, line[1], coding, weak=weak)
            if tag is None:
                continue
            line = line[0], tag
        kept.append(line)
    return kept


def coding_of(exchange: Exchange) -> str | None:
    """Return the content coding that the client prefers for converted responses, or None."""
    if not exchange.snapshot.compress:
        return None
    text = ",".join(exchange.message.headers.getall("Accept-Encoding", ()))
    return accepted_coding(text) if len(text) <= LONGEST_ACCEPT_ENCODING else None


# Entity tags of converted responses (RFC 9110, section 8.8.3)
#
# The tag `"abc"` of the service becomes `"abc.KEY"` for the client. The key depends on the two
# versions and on the configuration of the conversions between them (`Route.tag_key`). A tag of
# another version or of an earlier configuration therefore never matches. A client's tag is
# converted back without stored state, so that every worker can do it.
#
# Each content coding of a response has its own tag, such as `"abc.KEY.gzip"`. The suffix is the
# coding that the client prefers, even if a small response is not compressed. Responses to GET and
# HEAD and a 304 therefore have the same tag.

CONDITIONS = frozenset({b"if-match", b"if-none-match", b"if-range"})
"""The names of the request header fields that contain entity tags, in lower case."""

_TAG = re.compile(rb'(W/)?"([!#-~\x80-\xff]*)"')
# Marks an entity tag that is weak for the client and strong for the service.
_WEAKENED = b".w"
_ANY = b"*"
# The maximum number of bytes in all these fields together. Other servers limit a header field to
# about 8,000 bytes, too.
_MOST_CONDITIONS = 8192
_TOO_MANY = (
    f"If-Match, If-None-Match and If-Range may have at most {_MOST_CONDITIONS} bytes"
    " in total at this endpoint."
)
_SUFFIXES = frozenset({b"", *(b".%b" % coding.encode() for coding in CODINGS)})


def client_tag(key: bytes, tag: bytes, coding: str | None, *, weak: bool = False) -> bytes | None:
    """Convert an entity tag of the service for the client; return None if it is malformed.

    A tag becomes `weak` because the conversion may turn equal bodies into different bytes.
    """
    tag = tag.strip(b" \t")
    if _TAG.fullmatch(tag) is None:
        return None
    suffix = b"" if coding is None else b"." + coding.encode()
    if weak and tag.startswith(b'"'):
        return b'W/%b%b%b%b"' % (tag[:-1], key, _WEAKENED, suffix)
    return b'%b%b%b"' % (tag[:-1], key, suffix)


def service_tags(key: bytes, value: bytes) -> bytes:
    """Convert the tags in If-Match or If-None-Match for the service.

    Tags that the gateway did not create with this key are left out, because they cannot match. The
    result is empty if no tag remains.
    """
    if value.strip(b" \t") == _ANY:
        return _ANY
    tags = (_given(key, *match.groups(b"")) for match in _TAG.finditer(value))
    return b", ".join(tag for tag in tags if tag)


def current_tag(
    key: bytes, tag: bytes, given: Iterable[bytes], coding: str | None, *, weak: bool = False
) -> bytes | None:
    """Return the entity tag for a 304: the matching tag of the client, with its coding suffix.

    Args:
        coding: The content coding to use if no tag of the client matches; None for no coding.
        weak: See `client_tag`.
    """
    strong = not weak and not tag.strip(b" \t").startswith(b"W/")
    for value in given:
        for match in _TAG.finditer(value):
            if _opaque(_given(key, *match.groups(b""))) == _opaque(tag):
                return match[0].removeprefix(b"W/") if strong else match[0]
    return client_tag(key, tag, coding, weak=weak)


def service_conditions(key: bytes, fields: HeaderFields) -> HeaderFields:
    """Convert the entity tags in the conditions of a request for the service.

    A tag is known if the gateway created it with this key:

    - If-Match without a known tag gets a tag that matches nothing.
    - If-Range without a known strong tag gets a tag that matches nothing, unless it is a date (RFC
      9110, section 13.1.5).
    - If-None-Match without a known tag is always true, and is left out. If-Modified-Since is then
      left out too, because it must be ignored if If-None-Match is present (section 13.1.3).

    Raises:
        FaultError: The tags exceed the size limit, which exists because each tag takes time.
    """
    if sum(len(value) for name, value in fields if name.lower() in CONDITIONS) > _MOST_CONDITIONS:
        raise FaultError(Fault(FaultCode.HEADERS_TOO_LARGE, _TOO_MANY))
    kept: HeaderFields = []
    none = b'"none%b"' % key  # matches no tag
    has_none_match, has_tags = False, False
    for name, value in fields:
        lower = name.lower()
        if lower == b"if-range":
            if b'"' in value:
                weak = value.lstrip(b" \t").startswith(b"W/")
                value = (not weak and service_tags(key, value)) or none
        elif lower in CONDITIONS:
            value = service_tags(key, value)
            if lower == b"if-match":
                value = value or none
            else:
                has_none_match, has_tags = True, has_tags or bool(value)
                if not value:
                    continue
        kept.append((name, value))
    if has_none_match and not has_tags:
        kept = [line for line in kept if line[0].lower() != b"if-modified-since"]
    return kept


def _given(key: bytes, prefix: bytes, opaque: bytes) -> bytes:
    """Return the service's entity tag for a known tag of the client, or b"" for an unknown tag."""
    own, found, suffix = opaque.rpartition(key)
    weakened = suffix.startswith(_WEAKENED)
    if not found or (weakened and not prefix):
        return b""
    if suffix.removeprefix(_WEAKENED) not in _SUFFIXES:
        return b""
    return b'%b"%b"' % (b"" if weakened else prefix, own)


def _opaque(tag: bytes) -> bytes:
    return tag.strip(b" \t").removeprefix(b"W/")
