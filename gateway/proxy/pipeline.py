"""The pipeline: processes one request in phases, from its head to its log line and counts.

| Phase | Function | Purpose |
| --- | --- | --- |
| accept | `_accept` | check the head, and continue or begin its trace |
| identify | `ClientNaming.identify` | determine the client's name and its proof |
| select version, authorise, limit, plan | `_plan` | find the route, or refuse (`routing.plan`) |
| convert request | `rewrite_request` | convert header fields, query and body for the service |
| send | `Upstream.send` | send the request, directly or through `Shadows`, which keep a copy |
| convert response | `rewrite_response` | convert status, header fields and body for the client |
| respond | `_respond` | write the response, whole or as a stream |
| record | `record` | log and count the request, exactly once in every case |

The client's name is determined before the version, because a client can be pinned to a version. If
a phase raises FaultError, `_refuse` sends an error response.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from random import random
from time import perf_counter, time
from typing import ClassVar

import msgspec

from gateway.access.clients import ClientNaming
from gateway.access.rate_limits import RateLimiter
from gateway.base import headers
from gateway.base.addresses import client_site
from gateway.base.client_names import Identity
from gateway.base.errors import Fault, FaultCode, FaultError
from gateway.base.headers import FieldLines, HeaderFields
from gateway.base.overrides import NO_OVERRIDES
from gateway.base.request import RequestContext, RequestHead
from gateway.conversion.formats.body_format import described, is_stream
from gateway.conversion.unfit import UNFIT, UnfitValues
from gateway.http.bounds import TUNNEL_BYTES, ByteBudget, pass_on
from gateway.http.client.message import bodiless
from gateway.http.limits import Limits
from gateway.http.upstream.upstream import RequestBody, Upstream, UpstreamResponse
from gateway.proxy import compression, links
from gateway.proxy.conversion_budget import ConversionShare
from gateway.proxy.exchange import Exchange, ResponseCopy
from gateway.proxy.merged_writes import MergedWrites
from gateway.proxy.message_conversion import request_conversion
from gateway.proxy.message_rewriting import (
    RewrittenResponse,
    coding_of,
    rewrite_request,
    rewrite_response,
    with_common_headers,
    with_outcome,
)
from gateway.proxy.request_trace import RequestTraces
from gateway.proxy.response_buffer import ResponseBuffers, trailers, wait_until_read
from gateway.proxy.shadows import Shadows
from gateway.routing.cors import CorsRules
from gateway.routing.plan import MergedWrite, Options, Plan, plan
from gateway.routing.snapshot import Snapshot

_log = logging.getLogger(__name__)

_LENGTH = frozenset({b"content-length"})
# The connection closes after these faults, because the start of the next request is unknown, or
# follows a body that is not read.
_FINAL = frozenset({FaultCode.BAD_REQUEST, FaultCode.BODY_TOO_LARGE})


class Pipeline:
    """Processes requests with the current snapshot.

    Attributes:
        overrides: The current overrides, replaced as a whole.
        ahead: The seconds by which the clock for dates in the configuration is ahead of the clock
            of this machine; may be negative.
    """

    begin: ClassVar = Exchange

    def __init__(
        self,
        snapshot: Snapshot,
        upstream: Upstream,
        shadows: Shadows,
        begin: Callable[[Exchange], None],
        record: Callable[[Exchange], None],
        traces: RequestTraces,
        limiter: RateLimiter,
    ) -> None:
        self.snapshot = snapshot
        self.overrides = NO_OVERRIDES
        self.ahead = 0.0
        self._upstream = upstream
        self._buffers = ResponseBuffers()
        self._tunnels = ByteBudget(TUNNEL_BYTES)
        self._shadows = shadows
        self._writes = MergedWrites(upstream, shadows)
        self._begin = begin
        self._record = record
        self._traces = traces
        self._limiter = limiter

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot for new requests. A reload replaces it as a whole."""
        return self._snapshot

    @snapshot.setter
    def snapshot(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        routes = (route for endpoint in snapshot.router for route in endpoint.routes.values())
        self._shadowed = any(route.shadow is not None for route in routes)

    @property
    def limits(self) -> Limits:
        return self._snapshot.limits

    async def answer(self, exchange: Exchange) -> None:
        """Run the phases of one request, handle all failures, and record the request once."""
        exchange.snapshot = snapshot = self._snapshot
        room = ConversionShare(snapshot.limits.convert, snapshot.limits.elements, exchange)
        if snapshot.tolerates_unfit:
            exchange.unfit = UnfitValues()
            UNFIT.set(exchange.unfit)
        try:
            head = self._accept(exchange)
            if head is not None:
                naming = snapshot.naming
                if naming is not None:
                    certificate = exchange.connection.certificate
                    identity = naming.identify(head, exchange.peer, certificate)
                    if identity.pending is not None:
                        identity = await _identify(exchange, head, naming, identity)
                    exchange.client, exchange.identity = identity.name, identity
                planned = self._plan(exchange, head)
                if planned is not None:
                    await self._forward(exchange, planned, room)
        except FaultError as error:
            _refuse(exchange, error)
            error.__traceback__ = None  # avoids a reference cycle
        except (asyncio.CancelledError, ConnectionError) as end:
            exchange.aborted = True
            exchange.cause = str(end) or "the client left"
            exchange.abort()
            if isinstance(end, asyncio.CancelledError):
                raise
        except Exception:
            _log.exception("request %s failed", exchange.request_id)
            fault = Fault(FaultCode.INTERNAL, "The gateway failed; its log has the details.")
            _refuse(exchange, FaultError(fault))
        finally:
            if room.held:
                room.release()
            exchange.ended = perf_counter()
            self._record(exchange)

    def refuse(self, exchange: Exchange, fault: Fault) -> None:
        exchange.snapshot = self._snapshot
        _refuse(exchange, FaultError(fault, fault.detail))
        exchange.ended = perf_counter()
        self._record(exchange)

    def _accept(self, exchange: Exchange) -> RequestHead | None:
        """Return the head, or None if a response has already been sent; raises FaultError."""
        tracing = exchange.snapshot.tracing
        if tracing is not None:
            self._traces.begin(exchange, tracing)
        head = exchange.read()
        if head.path == "*":  # OPTIONS for the gateway itself (RFC 9110, section 9.3.7)
            _send(exchange, 204, [])
            return None
        return head

    def _plan(self, exchange: Exchange, head: RequestHead) -> Plan | None:
        """Return the plan, or None if a response has already been sent; raises FaultError."""
        snapshot = exchange.snapshot
        # The draws of brownouts, cutovers and shadows need no cryptographic randomness.
        draw = random()  # noqa: S311
        # Under load, fewer shadows are planned, because they would not be sent. A draw of 1 never
        # selects a shadow.
        shadow_draw = self._shadows.load.scaled_draw(draw) if self._shadowed else draw
        now = time() + self.ahead
        draws = random(), random(), shadow_draw  # noqa: S311
        admit, limits = None, snapshot.rate_limits
        if limits is not None:
            address = partial(client_site, head, exchange.peer, snapshot.trusted_proxies)
            admit = partial(self._limiter.admit, limits, exchange.identity, address)
        context = RequestContext(
            exchange.client, now, self.overrides, *draws, exchange.identity, admit
        )
        outcome = plan(snapshot, head, context)
        exchange.endpoint = outcome.endpoint
        exchange.fields = outcome.fields
        if outcome.fields and snapshot.trusted_proxies:
            exchange.fields = links.public_successor(exchange, outcome.fields)
        if isinstance(outcome, Plan):
            exchange.plan, route = outcome, outcome.route
            exchange.version = route.version
            if outcome.cutover_route is not None:
                exchange.cutover_route = outcome.cutover_route
                self._begin(exchange)
            if shadow_draw > draw and route.shadow is not None and outcome.shadow is None:
                rule, path = route.shadow.rule, outcome.endpoint.template.text
                if rule.selects(head.method, path, draw):
                    self._shadows.give_way(rule)
            return outcome
        exchange.version = outcome.version
        if isinstance(outcome, Options):
            _send(exchange, 204, [(b"Allow", outcome.allow.encode())] if outcome.allow else [])
            return None
        exchange.cutover_route = outcome.cutover_route
        fault = outcome.fault
        if fault.successor is not None and snapshot.trusted_proxies:
            fault = links.public_fault(exchange, fault)
        refused = fault.code is FaultCode.UNAUTHENTICATED
        raise FaultError(fault, fault.detail if refused else "")

    async def _forward(self, exchange: Exchange, planned: Plan, room: ConversionShare) -> None:
        body: RequestBody = None
        if exchange.has_body:
            body = _request_body(exchange, planned)
        elif exchange.length == 0:
            body = b""
        span = exchange.span
        if span is not None and planned.request is not None:
            span.begun = "convert request", perf_counter()
        request = await rewrite_request(exchange, planned, body, room)
        exchange.converted = request.body is not body
        exchange.sent = perf_counter()
        if span is not None:
            span.end(exchange.sent, converted=exchange.converted)
        if planned.shadow is None:
            response = await self._upstream.send(planned.route.service, request)
        elif isinstance(planned.shadow, MergedWrite):
            response = await self._writes.send(exchange, planned, request, body, room)
        else:
            response = await self._shadows.send(exchange, planned, request)
        exchange.answered = perf_counter()
        exchange.target, exchange.service_status = response.target, response.status
        exchange.address = response.address
        try:
            if span is not None and planned.response is not None:
                span.begun = "convert response", exchange.answered
            rewritten = await rewrite_response(exchange, planned, response, room)
            if span is not None and not isinstance(rewritten[2], AsyncIterator):
                span.end(perf_counter(), converted=rewritten[2] is not None)
            await self._respond(exchange, planned, response, rewritten)
            if room.held and rewritten[2] is not None:  # a large body
                response.release()  # a slow client must not keep the service busy
                await wait_until_read(exchange, room.holders)
        except FaultError as error:
            error.fault = with_outcome(exchange, planned, response, error.fault)
            raise
        finally:
            response.abandon()

    async def _respond(
        self,
        exchange: Exchange,
        planned: Plan,
        response: UpstreamResponse,
        rewritten: RewrittenResponse,
    ) -> None:
        status, fields, converted, altered = rewritten
        reason = response.reason if status == response.status else b""
        checked = planned.route.check is not None
        if response.switched:
            await _tunnel(exchange, response, fields, self._tunnels)
        elif isinstance(converted, bytes):
            exchange.converted = exchange.converted or converted != b""
            if checked:
                exchange.copy = ResponseCopy(fields, converted, converted != b"")
            behind = trailers(exchange, response, altered=altered) if response.trailers else ()
            if behind:
                fields = headers.end_to_end(fields, _LENGTH)
            elif len(converted) >= compression.LEAST and (coding := coding_of(exchange)):
                compressed = await compression.compressed(fields, converted, coding)
                fields, converted = compressed or (fields, converted)
            exchange.send(status, reason, fields, converted, sized=not behind, trailers=behind)
        elif converted is not None:
            await _send_stream(exchange, status, reason, fields, converted, response)
        elif bodiless(exchange.method, status):
            if status == 204 and checked:
                exchange.copy = ResponseCopy(fields, b"", False)
            exchange.send_head(status, reason, fields)
        elif response.complete:
            whole = await response.read()
            if checked:
                exchange.copy = ResponseCopy(fields, whole, False)
            behind = trailers(exchange, response) if response.trailers else ()
            exchange.send(status, reason, fields, whole, sized=response.sized, trailers=behind)
        else:
            exchange.begin(status, reason, fields, sized=response.sized)
            if checked:
                await self._buffers.pass_on_copied(exchange, response, fields)
            else:
                await self._buffers.pass_on(exchange, response)


async def _identify(
    exchange: Exchange, head: RequestHead, naming: ClientNaming, identity: Identity
) -> Identity:
    """Return the client of a request after the keys that verify its token have been fetched."""
    while identity.pending is not None:
        await identity.pending()
        identity = naming.identify(head, exchange.peer, exchange.connection.certificate)
    return identity


async def _send_stream(
    exchange: Exchange,
    status: int,
    reason: bytes,
    fields: HeaderFields,
    documents: AsyncIterator[bytes],
    response: UpstreamResponse,
) -> None:
    exchange.converted = True
    coding = coding_of(exchange)
    if coding is not None:
        fields, documents = compression.compressed_stream(fields, documents, coding)
    exchange.begin(status, reason, fields, sized=False)
    async for piece in documents:
        await exchange.write(piece)
    exchange.end(trailers(exchange, response, altered=True))
    if exchange.span is not None:
        exchange.span.end(perf_counter(), converted=True)


def _refuse(exchange: Exchange, error: FaultError) -> None:
    """Send an error response: a problem detail (RFC 9457), or the format of the version or API.

    If a response has already begun, the connection is closed instead.
    """
    fault = error.fault
    exchange.code, exchange.cause = fault.code, error.cause or None
    exchange.target = error.target or exchange.target
    if exchange.status:
        exchange.aborted = True
        exchange.abort()
        return
    if fault.code in _FINAL:
        exchange.keep_alive = False
    # Allow the preflight. The request that follows is refused, and scripts can read that refusal.
    if exchange.method == "OPTIONS" and _preflight(exchange):
        with suppress(ConnectionError):
            _send(exchange, 204, [])
        return
    problem: object = {**fault.problem(exchange.path), **fault.own}
    status, content_type = fault.status, b"application/problem+json"
    fields: HeaderFields = [(b"Cache-Control", b"no-store"), *fault.fields]
    endpoint = exchange.endpoint
    if endpoint is None:
        template = exchange.snapshot.errors_at(exchange.path)
    else:
        template = endpoint.errors.get(exchange.version)
    if template is not None:
        status = template.statuses.get(fault.code, status)
        given = {**fault.problem(exchange.path), "status": status}
        problem = template.render(given, exchange.request_id, fault.misfit, fault.own)
        content_type = template.content_type.encode()
        fields = template.dress(fault.code, fields)
    body = msgspec.json.encode(problem)
    fields = [(b"Content-Type", content_type), (b"Content-Length", b"%d" % len(body)), *fields]
    with suppress(ConnectionError):  # the client has disconnected
        _send(exchange, status, fields, body)


def _send(exchange: Exchange, status: int, fields: HeaderFields, body: bytes = b"") -> None:
    # An error response may already have a Vary header. Its headers have not been classified, so
    # always search them.
    vary = () if exchange.endpoint is None else exchange.endpoint.vary_of(exchange.version)
    cors = _cors(exchange)
    if cors is None:
        fields = with_common_headers(exchange, fields, (b"vary",), vary)
    else:
        vary = tuple(dict.fromkeys((*vary, *cors.vary)))
        fields = with_common_headers(exchange, fields, (b"vary",), vary)
        fields += _preflight(exchange) or cors.answer(exchange.message.headers, fields)
    if bodiless(exchange.method, status):
        exchange.send_head(status, b"", fields)
    else:
        exchange.send(status, b"", fields, body)


def _cors(exchange: Exchange) -> CorsRules | None:
    own = None if exchange.endpoint is None else exchange.endpoint.cors
    return exchange.snapshot.cors if own is None else own


def _preflight(exchange: Exchange) -> FieldLines:
    """Return the header fields for the response to a CORS preflight; empty for other requests."""
    cors = _cors(exchange)
    if cors is None or exchange.method != "OPTIONS":
        return ()
    return cors.preflight(exchange.message.headers)


def _request_body(exchange: Exchange, planned: Plan) -> bytes | AsyncIterator[bytes]:
    """Return bytes if the body arrived with the head, or a stream; raises FaultError."""
    most = planned.endpoint.max_body
    if most is None:
        most = exchange.snapshot.limits.body
    arrived = exchange.arrived(most)
    if arrived is not None:
        return arrived
    converting = planned.request
    if converting is not None:
        kind = described(exchange.message.raw_headers, planned.endpoint.media_types)
        asked = planned.method(exchange.method)
        if not is_stream(kind) and request_conversion(converting, asked, kind) is not None:
            convert = exchange.snapshot.limits.convert
            most = convert if most is None else min(most, convert)
    return exchange.pieces(most)


async def _tunnel(
    exchange: Exchange, response: UpstreamResponse, fields: HeaderFields, budget: ByteBudget
) -> None:
    client = exchange.switch([*fields, *headers.upgrade(response.fields)])
    response.release()
    give_way = exchange.connection.give_way
    sending = asyncio.create_task(pass_on(budget, client.read, response.write, give_way))
    try:
        await pass_on(budget, response.read, exchange.write, give_way)
    finally:
        sending.cancel()
