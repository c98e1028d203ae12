"""The request handler: processes one request from its head to the record of its outcome.

The steps are: pin the snapshot, plan, convert the request (`outgoing`), send it to the service,
convert the answer (`returning`), respond, and always record. The pure core makes the decisions
(`gateway.routing.plan`); `gateway.proxy.transit` changes the messages. This module does the I/O.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from random import random
from time import perf_counter, time
from typing import ClassVar

import msgspec

from gateway.base import headers
from gateway.base.context import RequestContext
from gateway.base.errors import Fault, FaultCode, FaultError
from gateway.base.headers import FieldLines, HeaderFields
from gateway.base.overrides import NO_OVERRIDES
from gateway.conversion.formats.body_format import described, is_stream
from gateway.http.bounds.tunnel_room import TunnelRoom
from gateway.http.limits import Limits
from gateway.http.upstream.upstream import RequestBody, Upstream, UpstreamResponse
from gateway.proxy import answer_links, compression
from gateway.proxy.answer_buffer import AnswerBuffers, taken, trailers
from gateway.proxy.body.conversion_room import ConversionRoom
from gateway.proxy.converted_message import bodiless, request_conversion
from gateway.proxy.exchange import AnswerCopy, Exchange
from gateway.proxy.request_trace import RequestTraces
from gateway.proxy.shadow.shadows import Shadows
from gateway.proxy.transit import coded, coding_of, dressed, outgoing, returning
from gateway.routing.plan import Options, Plan, plan
from gateway.routing.snapshot import Snapshot

_log = logging.getLogger(__name__)

_LENGTH = frozenset({b"content-length"})
# After these faults the connection closes: the start of the next request is unknown, or lies
# behind a body that is not read.
_FINAL = frozenset({FaultCode.BAD_REQUEST, FaultCode.BODY_TOO_LARGE})


class Handler:
    """Answers requests by the current snapshot.

    Args:
        snapshot: the first snapshot.
        upstream: sends requests to services.
        shadows: sends requests to services again, in the background.
        begin: takes each exchange of a cutover when it begins.
        record: takes each exchange when it has ended.
        traces: decides which requests are traced.

    Attributes:
        overrides: the overrides of the rules that are in force; replaced as a whole.
        ahead: by how many seconds the time that the dates of the rules go by is ahead of the clock
            of this machine.
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
    ) -> None:
        self.snapshot = snapshot
        self.overrides = NO_OVERRIDES
        self.ahead = 0.0
        self._upstream = upstream
        self._buffers = AnswerBuffers()
        self._tunnels = TunnelRoom()
        self._shadows = shadows
        self._begin = begin
        self._record = record
        self._traces = traces

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that new requests use; a reload replaces this one reference."""
        return self._snapshot

    @snapshot.setter
    def snapshot(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        routes = (route for endpoint in snapshot.router for route in endpoint.routes.values())
        self._shadowed = any(route.shadow is not None for route in routes)

    @property
    def limits(self) -> Limits:
        """The limits for new connections."""
        return self._snapshot.limits

    async def answer(self, exchange: Exchange) -> None:
        """Answer one request and record it once; every failure is handled here."""
        exchange.snapshot = snapshot = self._snapshot
        room = ConversionRoom(snapshot.limits.convert, snapshot.limits.elements, exchange)
        try:
            planned = self._plan(exchange)
            if planned is not None:
                await self._forward(exchange, planned, room)
        except FaultError as error:
            _refuse(exchange, error)
            error.__traceback__ = None  # it refers to the response, which may hold the error
        except (asyncio.CancelledError, ConnectionError) as end:
            exchange.aborted = True
            exchange.cause = str(end) or "the client left"
            exchange.abort()
            if isinstance(end, asyncio.CancelledError):
                raise
        except Exception:
            _log.exception("request %s failed", exchange.request_id)
            _refuse(
                exchange,
                FaultError(
                    Fault(FaultCode.INTERNAL, "The gateway failed; its log has the details.")
                ),
            )
        finally:
            if room.held:
                room.release()
            exchange.ended = perf_counter()
            self._record(exchange)

    def refuse(self, exchange: Exchange, fault: Fault) -> None:
        """Answer a request that could not be parsed with a fault, and record it."""
        exchange.snapshot = self._snapshot
        _refuse(exchange, FaultError(fault))
        exchange.ended = perf_counter()
        self._record(exchange)

    def _plan(self, exchange: Exchange) -> Plan | None:
        """Return the plan, or None if the answer was already sent; raises FaultError to refuse."""
        snapshot = exchange.snapshot
        if snapshot.tracing is not None:
            self._traces.begin(exchange, snapshot.tracing)
        head = exchange.read()
        if head.path == "*":  # OPTIONS for the gateway itself (RFC 9110, section 9.3.7)
            _send(exchange, 204, [])
            return None
        if snapshot.naming is not None:
            exchange.client = snapshot.naming.name(head, exchange.peer)
        # The draws of brownouts, cutovers and shadows need no cryptographic randomness.
        draw = random()  # noqa: S311
        # Under load fewer shadows are planned, as they would not be sent: a draw of 1 selects none.
        shadow_draw = self._shadows.load.thin(draw) if self._shadowed else draw
        now = time() + self.ahead
        given = (exchange.client, now, self.overrides, random(), random(), shadow_draw)  # noqa: S311
        # A fifth of the cost of RequestContext(...).
        outcome = plan(snapshot, head, tuple.__new__(RequestContext, given))
        exchange.endpoint = outcome.endpoint
        exchange.fields = outcome.fields
        if outcome.fields and snapshot.trusted_proxies:
            exchange.fields = answer_links.public_successor(exchange, outcome.fields)
        if isinstance(outcome, Plan):
            exchange.plan, route = outcome, outcome.route
            exchange.version = route.version
            if outcome.cutover_route is not None:
                exchange.cutover_route = outcome.cutover_route
                self._begin(exchange)
            if shadow_draw > draw and route.shadow is not None and outcome.shadow is None:
                rule, path = route.shadow.rule, outcome.endpoint.template.text
                if rule.falls_on(head.method, path, draw):
                    self._shadows.give_way(rule)
            return outcome
        exchange.version = outcome.version
        if isinstance(outcome, Options):
            _send(exchange, 204, [(b"Allow", outcome.allow.encode())] if outcome.allow else [])
            return None
        exchange.cutover_route = outcome.cutover_route
        fault = outcome.fault
        if fault.successor is not None and snapshot.trusted_proxies:
            fault = answer_links.public_fault(exchange, fault)
        raise FaultError(fault)

    async def _forward(  # noqa: C901  # one walk in one frame, for speed
        self, exchange: Exchange, planned: Plan, room: ConversionRoom
    ) -> None:
        """Send the request to the service and its answer to the client; raises FaultError."""
        body: RequestBody = None
        if exchange.has_body:
            most = planned.endpoint.max_body
            if most is None:
                most = exchange.snapshot.limits.body
            body = exchange.arrived(most)
            if body is None:
                body = exchange.pieces(_most(exchange, planned, most))
        elif exchange.length == 0:
            body = b""
        span = exchange.span
        if span is not None and (planned.operation_path or planned.route).request is not None:
            span.begun = "convert request", perf_counter()
        request = await outgoing(exchange, planned, body, room)
        exchange.converted = request.body is not body
        exchange.sent = perf_counter()
        if span is not None:
            span.end(exchange.sent, converted=exchange.converted)
        if planned.shadow is None:
            response = await self._upstream.send(planned.route.service, request)
        else:
            response = await self._shadows.send(exchange, planned, request)
        exchange.answered = perf_counter()
        exchange.target, exchange.service_status = response.target, response.status
        try:
            if span is not None and (planned.operation_path or planned.route).response is not None:
                span.begun = "convert response", exchange.answered
            status, fields, converted, altered = await returning(exchange, planned, response, room)
            if span is not None and (converted is None or isinstance(converted, bytes)):
                span.end(perf_counter(), converted=converted is not None)
            reason = response.reason if status == response.status else b""
            if response.switched:
                await _tunnel(exchange, response, fields, self._tunnels)
            elif converted is not None:
                if isinstance(converted, bytes):
                    exchange.converted = exchange.converted or converted != b""
                    if planned.route.check is not None:
                        exchange.copy = AnswerCopy(fields, converted, converted != b"")
                    behind = (
                        trailers(exchange, response, altered=altered) if response.trailers else ()
                    )
                    if behind:
                        fields = headers.end_to_end(fields, _LENGTH)
                    elif len(converted) >= compression.LEAST:
                        fields, converted = await coded(exchange, fields, converted)
                    exchange.send(
                        status, reason, fields, converted, sized=not behind, trailers=behind
                    )
                else:
                    await _send_stream(exchange, status, reason, fields, converted, response)
                    if span is not None:
                        span.end(perf_counter(), converted=True)
                if room.held:  # a large body
                    response.release()  # the service is free, however slowly the client reads
                    await taken(exchange, room.holders)
            elif bodiless(exchange.method, status):
                if status == 204 and planned.route.check is not None:
                    exchange.copy = AnswerCopy(fields, b"", False)
                exchange.send_head(status, reason, fields)
            elif response.complete:
                whole = await response.read()
                if planned.route.check is not None:
                    exchange.copy = AnswerCopy(fields, whole, False)
                behind = trailers(exchange, response) if response.trailers else ()
                exchange.send(status, reason, fields, whole, sized=response.sized, trailers=behind)
            else:
                exchange.begin(status, reason, fields, sized=response.sized)
                if planned.route.check is None:
                    await self._buffers.pass_on(exchange, response)
                else:
                    await self._buffers.pass_on_copied(exchange, response, fields)
        finally:
            response.abandon()


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


def _refuse(exchange: Exchange, error: FaultError) -> None:
    """Answer with a problem detail (RFC 9457), or with what the version has in its place.

    The connection is cut if an answer has begun.
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
    # What a preflight asks about gets the refusal, which its script can then read.
    if exchange.method == "OPTIONS" and _preflight(exchange):
        with suppress(ConnectionError):
            _send(exchange, 204, [])
        return
    problem: object = {**fault.problem(exchange.path), **fault.own}
    status, content_type = fault.status, b"application/problem+json"
    fields: HeaderFields = [(b"Cache-Control", b"no-store"), *fault.fields]
    endpoint = exchange.endpoint
    template = None if endpoint is None else endpoint.errors.get(exchange.version)
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
    """Send an answer that the gateway itself generates."""
    # A fault may carry Vary. Its fields are not sorted first, so Vary is always looked for.
    vary = () if exchange.endpoint is None else exchange.endpoint.vary_of(exchange.version)
    cors = exchange.snapshot.cors
    if cors is None:
        fields = dressed(exchange, fields, (b"vary",), vary)
    else:
        fields = dressed(exchange, fields, (b"vary",), (*vary, *cors.vary))
        fields += _preflight(exchange) or cors.answer(exchange.message.headers, fields)
    if bodiless(exchange.method, status):
        exchange.send_head(status, b"", fields)
    else:
        exchange.send(status, b"", fields, body)


def _preflight(exchange: Exchange) -> FieldLines:
    """Return the fields that answer a preflight of CORS; none for any other request."""
    cors = exchange.snapshot.cors
    if cors is None or exchange.method != "OPTIONS":
        return ()
    return cors.preflight(exchange.message.headers)


def _most(exchange: Exchange, planned: Plan, most: int | None) -> int | None:
    """Return the maximum size of a streamed body in bytes, at most `most`; None for no maximum."""
    fields, converting = exchange.message.raw_headers, planned.request
    kind = described(fields, planned.endpoint.media_types)
    asked = planned.method(exchange.method)
    if converting is None or is_stream(kind):
        return most
    if request_conversion(converting, asked, kind) is None:
        return most
    convert = exchange.snapshot.limits.convert
    return convert if most is None else min(most, convert)


async def _tunnel(
    exchange: Exchange, response: UpstreamResponse, fields: HeaderFields, room: TunnelRoom
) -> None:
    """Forward bytes in both directions after both sides have switched to another protocol."""
    client = exchange.switch([*fields, *headers.upgrade(response.fields)])
    response.release()
    give_way = exchange.connection.give_way
    sending = asyncio.create_task(room.pass_on(client.read, response.write, give_way))
    try:
        await room.pass_on(response.read, exchange.write, give_way)
    finally:
        sending.cancel()
