"""Transit: converts requests for a service and answers for a client, for live and shadow traffic.

`outgoing` drops the fields that are not forwarded, converts fields and body, replaces the client's
version by the service's, and adds the fields of this hop. `returning` does the same with the
answer, for the client's version.

The conversion is always first and the version always last, also in the query (`gateway.core.plan`).
A conversion is declared on the fields of the version that wrote the message, so it receives them
unchanged. It may leave a value under a name at which a version is read, by a rename for instance,
and the receiver would take that value for the version. So the version is written last, when no
other step can change it.
"""

from collections.abc import AsyncIterator, Sequence
from email.utils import formatdate
from functools import lru_cache
from time import time

from aiohttp.http import HttpVersion11

from gateway.core import headers
from gateway.core.conversion.chain import Conversion
from gateway.core.cutover.shadow import SAFE
from gateway.core.headers import FieldFates, FieldLines, HeaderFields
from gateway.core.plan import Plan
from gateway.core.service import CLIENT_HOST, TARGET_HOST
from gateway.proxy.body import body_conversion
from gateway.proxy.client.exchange import Exchange
from gateway.proxy.upstream.upstream import RequestBody, UpstreamHead, UpstreamRequest

_VIA = (b"Via", b"1.1 " + headers.PSEUDONYM)
_VIA_1_0 = (b"Via", b"1.0 " + headers.PSEUDONYM)
_IDENTITY = (b"Accept-Encoding", b"identity")
_EXPECT = frozenset({b"expect"})
_CONVERTED = headers.ABOUT_BYTES | _EXPECT


async def outgoing(
    exchange: Exchange, plan: Plan, body: RequestBody, limit: int
) -> UpstreamRequest:
    """Return the request to send to the service of a plan.

    Args:
        exchange: the client's request, with its head read.
        plan: the plan for the request.
        body: the request body, in pieces or whole; None for no body.
        limit: the maximum size in bytes of a body that is converted, both coded and decoded.

    Raises:
        FaultError: the request does not fit its version, or its Expect cannot be met.
    """
    message, route, snapshot = exchange.message, plan.route, exchange.snapshot
    method = exchange.method
    answer = route.response and route.response.for_response(method, 200)
    fates = _request_fates(snapshot.withheld, answer is not None, method in SAFE)
    fields, watched = fates.sort(message.raw_headers)
    streamed = body is not None and not isinstance(body, bytes)
    if b"expect" in watched:
        exchange.check_expectation()
        if exchange.has_body and not streamed:  # the body is complete
            fields = headers.end_to_end(fields, _EXPECT)
    if route.request is not None:
        fields = body_conversion.convert_request_fields(fields, route.request, method)
        conversion = route.request.for_request(method) if exchange.has_body else None
        if conversion is not None:
            if b"expect" in watched and streamed:
                exchange.inform(100, [])
            body = await _converted(body, fields, conversion, limit)
            fields = headers.end_to_end(fields, _CONVERTED)
    if route.request_rewrite is not None:
        fields = route.request_rewrite.fields(fields)
    inherited = _inherited(exchange) if snapshot.trusted_proxies else ()
    fields += headers.forwarding(exchange.peer, exchange.authority, "http", inherited)
    fields.append(_VIA if message.version == HttpVersion11 else _VIA_1_0)
    fields.append((b"X-Request-Id", exchange.request_id.encode()))
    upgrade: bytes | None = None
    if answer is not None:
        fields.append(_IDENTITY)  # a content coding would have to be undone for the conversion
    elif message.upgrade and (upgrade := exchange.upgrade) is not None:
        fields += ((b"Connection", b"Upgrade"), (b"Upgrade", upgrade))
    policy = route.service.host
    host: bytes | None = None
    if policy != TARGET_HOST:
        host = policy.encode()
        if policy == CLIENT_HOST:
            authority = exchange.authority
            if route.request_rewrite is not None:
                authority = route.request_rewrite.authority(authority)
            host = authority.encode()
    return UpstreamRequest(
        method,
        plan.target,
        fields,
        host,
        body,
        exchange.length,
        upgrade is not None,
        exchange.inform,
    )


async def returning(
    exchange: Exchange, plan: Plan, response: UpstreamHead, limit: int
) -> tuple[HeaderFields, bytes | None]:
    """Return the header fields of an answer for the client, and its body if that is converted.

    If the returned body is None, the service's body is forwarded unchanged; see also `bodiless`.

    Args:
        exchange: the request that is answered.
        plan: the plan that the request followed.
        response: the answer of the service.
        limit: the maximum size in bytes of a body that is converted.

    Raises:
        FaultError: the answer cannot be converted completely; no part of it may be sent.
    """
    status, route, method = response.status, plan.route, exchange.method
    conversion = route.response and route.response.for_response(method, status)
    fates = _answer_fates(route.overrules, conversion is not None)
    fields, watched = fates.sort(response.fields)
    body: bytes | None = None
    if route.response is not None:
        fields = body_conversion.convert_response_fields(fields, route.response, method, response)
        if conversion is not None and not bodiless(method, status):
            body = await body_conversion.convert_response(response, conversion, limit)
    if route.response_rewrite is not None:
        fields = route.response_rewrite.fields(fields)
    if route.content_type is not None and 200 <= status <= 299:
        called = plan.content_type
        if called is not None:
            fields = headers.retyped(fields, called.encode())
    fields.append(_VIA)
    fields = dressed(exchange, fields, watched)
    if body is not None:
        fields.append((b"Content-Length", b"%d" % len(body)))
    return fields, body


def dressed(exchange: Exchange, fields: HeaderFields, watched: Sequence[bytes]) -> HeaderFields:
    """Return the fields of an answer together with those that every answer carries.

    Args:
        exchange: the request that is answered.
        fields: the header fields of the answer so far.
        watched: the lower-case names `vary` and `date`, each if `fields` contains it.
    """
    endpoint = exchange.endpoint
    if endpoint is not None and endpoint.vary:
        if b"vary" in watched:
            fields = headers.vary(fields, endpoint.vary)
        else:
            fields.append((b"Vary", headers.listing(endpoint.vary)))
    if exchange.fields:
        fields += exchange.fields
    if b"date" not in watched:
        # RFC 9110, section 6.6.1: a response without a date gets the time of its receipt.
        fields.append(_date(int(time())))
    fields.append((b"X-Request-Id", exchange.request_id.encode()))
    return fields


def bodiless(method: str, status: int) -> bool:
    """Whether a response has no body, regardless of its fields (RFC 9110, section 6.4.1)."""
    return method == "HEAD" or status in (204, 304)


def _inherited(exchange: Exchange) -> FieldLines:
    if not exchange.snapshot.trusts(exchange.peer):
        return ()
    given = exchange.message.raw_headers
    return tuple(line for line in given if line[0].lower() in headers.FORWARDING)


async def _converted(
    body: RequestBody, fields: HeaderFields, conversion: Conversion, limit: int
) -> bytes:
    if isinstance(body, AsyncIterator):
        body = b"".join([piece async for piece in body])
    return await body_conversion.convert_request(body or b"", fields, conversion, limit)


@lru_cache(maxsize=2)
def _date(second: int) -> tuple[bytes, bytes]:
    return b"Date", formatdate(second, usegmt=True).encode()


@lru_cache(maxsize=16)
def _request_fates(withheld: frozenset[bytes], converted: bool, reading: bool) -> FieldFates:
    if converted:  # ranges and validators refer to bytes before the conversion
        withheld |= headers.SELECTING if reading else headers.SELECTING_WRITE
    return FieldFates(withheld)


@lru_cache(maxsize=256)
def _answer_fates(overruled: frozenset[bytes], converted: bool) -> FieldFates:
    dropped = overruled | {b"x-request-id"}
    return FieldFates(dropped | headers.ABOUT_BYTES if converted else dropped)
