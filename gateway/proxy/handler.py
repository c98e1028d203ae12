"""The handler: the life of a request, top to bottom.

Pin the snapshot, plan, convert the request if the plan says so, send, convert the response or
stream it through, record. What is to be decided is decided in the pure core; here is the I/O.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import lru_cache
from random import random

import msgspec
from aiohttp.http import HttpVersion11, RawRequestMessage
from msgspec import Struct
from msgspec.structs import replace

from gateway.core import headers
from gateway.core.context import RequestContext
from gateway.core.conversion.chain import Conversion
from gateway.core.cutover.shadow import SAFE
from gateway.core.errors import Fault, FaultCode, FaultError
from gateway.core.headers import FieldLines, HeaderFields
from gateway.core.overrides import NO_OVERRIDES, Overrides
from gateway.core.plan import Options, Plan, plan
from gateway.core.service import CLIENT_HOST, TARGET_HOST
from gateway.core.snapshot import Limits, Snapshot
from gateway.proxy.body import body_conversion
from gateway.proxy.client.client_request import ClientRequest
from gateway.proxy.client.client_response import ClientResponse
from gateway.proxy.exchange import Exchange
from gateway.proxy.shadow.shadows import Shadows
from gateway.proxy.upstream.upstream import Upstream, UpstreamRequest, UpstreamResponse

_log = logging.getLogger(__name__)

# Where the next request would begin is in doubt, or behind a body that nobody wants.
_FINAL = frozenset({FaultCode.BAD_REQUEST, FaultCode.BODY_TOO_LARGE})
_THEIRS = frozenset({b"x-request-id"})
_THEIRS_CONVERTED = _THEIRS | headers.ABOUT_BYTES
_VIA = b"1.1 " + headers.PSEUDONYM
_VIA_1_0 = b"1.0 " + headers.PSEUDONYM


class Handler:
    """Answers requests by the snapshot of the moment.

    Attributes:
        snapshot: what new requests go by; a reload swaps this one reference.
        overrides: what they go by over and above it, swapped likewise.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        upstream: Upstream,
        shadows: Shadows,
        record: Callable[[Exchange, ClientResponse], None],
    ) -> None:
        self.snapshot = snapshot
        self.overrides = NO_OVERRIDES
        self._upstream = upstream
        self._shadows = shadows
        self._record = record

    @property
    def limits(self) -> Limits:
        """Return what bounds new connections."""
        return self.snapshot.limits

    async def answer(self, inbound: ClientRequest, down: ClientResponse) -> None:
        """Answer one request, whatever happens, and record it once."""
        walk = self._walk(inbound, down)
        try:
            todo = walk.plan(self.overrides)
            if todo is not None:
                await walk.forward(todo)
        except FaultError as error:
            walk.refuse(error)
            error.__traceback__ = None  # it leads to the response, which may keep the error
        except (asyncio.CancelledError, ConnectionError) as error:
            walk.exchange.aborted = True
            walk.exchange.cause = str(error) or "the client left"
            down.abort()
            if isinstance(error, asyncio.CancelledError):
                raise
        except Exception:
            _log.exception("request %s failed", walk.exchange.request_id)
            walk.refuse(
                FaultError(Fault(FaultCode.INTERNAL, "The gateway failed; the log knows more."))
            )
        finally:
            self._record(walk.exchange, down)

    def refuse(self, inbound: ClientRequest, down: ClientResponse, fault: Fault) -> None:
        """Answer with a fault what could not be read as a request."""
        walk = self._walk(inbound, down)
        walk.refuse(FaultError(fault))
        self._record(walk.exchange, down)

    def _walk(self, inbound: ClientRequest, down: ClientResponse) -> "_Walk":
        message = inbound.message
        exchange = Exchange(inbound.request_id, message.method, inbound.loggable_path, inbound.peer)
        return _Walk(self.snapshot, self._upstream, self._shadows, inbound, message, down, exchange)


class _Walk(Struct):
    """One request on its way; the snapshot is pinned."""

    snapshot: Snapshot
    upstream: Upstream
    shadows: Shadows
    inbound: ClientRequest
    message: RawRequestMessage
    down: ClientResponse
    exchange: Exchange
    authority: str = ""
    said: FieldLines = ()
    trailers: bool = False

    def plan(self, overrides: Overrides) -> Plan | None:
        """Return what is to be done, or None if that is done; raises FaultError to refuse."""
        exchange = self.exchange
        head, self.authority = self.inbound.read()
        if head.path == "*":  # OPTIONS for the gateway itself (RFC 9110, section 9.3.7)
            self._send(204, b"", self._dressed([]))
            return None
        if self.snapshot.naming is not None:
            exchange.client = self.snapshot.naming.name(head, self.inbound.peer)
        # Whom a brownout meets is no secret to keep: a plain generator will do.
        draws = random(), random(), random()  # noqa: S311
        context = RequestContext(exchange.client, time.time(), overrides, *draws)
        outcome = plan(self.snapshot, head, context)
        exchange.endpoint, exchange.version = outcome.endpoint, outcome.version
        self.said = outcome.fields
        if isinstance(outcome, Plan):
            exchange.plan = outcome
            return outcome
        if isinstance(outcome, Options):
            self._send(204, b"", self._dressed([(b"Allow", outcome.allow.encode())]))
            return None
        raise FaultError(outcome.fault)

    async def forward(self, todo: Plan) -> None:
        """Ask the service, and give the client what it answers; raises FaultError."""
        asked = self._outgoing(todo)
        conversion = todo.route.request and todo.route.request.for_request(self.message.method)
        if conversion is not None and self.inbound.has_body:
            asked = await self._converted(asked, conversion)
        self.exchange.asked = time.perf_counter()
        if todo.shadow is None:
            response = await self.upstream.send(todo.route.service, asked)
        else:
            response = await self.shadows.send(todo, asked)
        self.exchange.answered = time.perf_counter()
        self.exchange.target = response.target
        try:
            await self._respond(todo, response)
        finally:
            response.abandon()

    def refuse(self, error: FaultError) -> None:
        """Answer with a problem detail; cut the connection if an answer has begun already."""
        fault, exchange = error.fault, self.exchange
        exchange.code, exchange.cause = fault.code, error.cause or None
        if self.down.status:
            exchange.aborted = True
            self.down.abort()
            return
        if fault.code in _FINAL:
            self.down.keep_alive = False
        body = msgspec.json.encode(fault.problem(exchange.path))
        fields = [
            (b"Content-Type", b"application/problem+json"),
            (b"Content-Length", b"%d" % len(body)),
            (b"Cache-Control", b"no-store"),
            *fault.fields,
        ]
        with suppress(ConnectionError):  # whoever it was for has left
            self._send(fault.status, b"", self._dressed(fields), body)

    def _outgoing(self, todo: Plan) -> UpstreamRequest:
        message, inbound, route = self.message, self.inbound, todo.route
        answer = route.response and route.response.for_response(message.method, 200)
        withheld = self.snapshot.withheld
        if answer is not None:
            withheld = _withheld_converted(withheld, message.method in SAFE)
        given = headers.end_to_end(message.raw_headers, withheld)
        if route.request_rewrite is not None:
            given = route.request_rewrite.fields(given)
        if route.request is not None:
            given = body_conversion.convert_request_fields(given, route.request, message.method)
        fields: HeaderFields = [
            *given,
            *self._forwarding(),
            (b"Via", _VIA if message.version == HttpVersion11 else _VIA_1_0),
            (b"X-Request-Id", self.exchange.request_id.encode()),
        ]
        if "TE" in message.headers and headers.takes_trailers(message.headers.getall("TE")):
            self.trailers = True  # TE itself ends here; what a service sends unasked passes on
        upgrade: bytes | None = None
        if answer is not None:
            # Nothing would be gained by a coding that has to be undone here.
            fields.append((b"Accept-Encoding", b"identity"))
        elif (upgrade := inbound.upgrade) is not None:
            fields += ((b"Connection", b"Upgrade"), (b"Upgrade", upgrade))
        length = inbound.length
        body: bytes | AsyncIterator[bytes] | None = b"" if length == 0 else None
        if inbound.has_body:
            body = inbound.pieces(self._most(todo))
        expects = self._expects()
        inform = self.down.inform
        host = self._host(todo.route.service.host)
        return UpstreamRequest(
            message.method, todo.target, fields, host, body, length, expects, bool(upgrade), inform
        )

    def _host(self, policy: str) -> bytes | None:
        if policy == TARGET_HOST:
            return None
        return (self.authority if policy == CLIENT_HOST else policy).encode()

    def _most(self, todo: Plan) -> int | None:
        limits, most = self.snapshot.limits, todo.endpoint.max_body
        if most is None:
            most = limits.body
        if (
            todo.route.request is None
            or todo.route.request.for_request(self.message.method) is None
        ):
            return most
        return limits.convert if most is None else min(most, limits.convert)

    async def _converted(self, asked: UpstreamRequest, conversion: Conversion) -> UpstreamRequest:
        if asked.expects:
            self.down.inform(100, [])
        assert isinstance(asked.body, AsyncIterator)
        limit = self.snapshot.limits.convert
        whole = b"".join([piece async for piece in asked.body])
        body = await body_conversion.convert_request(whole, asked.fields, conversion, limit)
        fields = headers.end_to_end(asked.fields, headers.ABOUT_BYTES | {b"expect"})
        self.exchange.converted = True
        return replace(asked, fields=fields, body=body, expects=False)

    def _expects(self) -> bool:
        if "Expect" not in self.message.headers:
            return False
        values = self.message.headers.getall("Expect")
        if any(value.lower() != "100-continue" for value in values):
            raise FaultError(
                Fault(FaultCode.EXPECTATION_FAILED, "Only 100-continue can be expected.")
            )
        return True

    def _forwarding(self) -> tuple[tuple[bytes, bytes], ...]:
        peer = self.inbound.peer
        inherited: tuple[tuple[bytes, bytes], ...] = ()
        if self.snapshot.trusts(peer):
            given = self.message.raw_headers
            inherited = tuple(line for line in given if line[0].lower() in headers.FORWARDING)
        return headers.forwarding(peer, self.authority, "http", inherited)

    async def _respond(self, todo: Plan, response: UpstreamResponse) -> None:
        status, route = response.status, todo.route
        method = self.message.method
        conversion = route.response.for_response(method, status) if route.response else None
        drop = _THEIRS if conversion is None else _THEIRS_CONVERTED
        if route.overrules:
            drop |= route.overrules
        fields = headers.end_to_end(response.fields, drop)
        if route.response is not None:
            fields = body_conversion.convert_response_fields(
                fields, route.response, method, response
            )
        if route.response_rewrite is not None:
            fields = route.response_rewrite.fields(fields)
        if (called := todo.content_type) is not None and 200 <= status <= 299:
            fields = headers.retyped(fields, called.encode())
        fields.append((b"Via", _VIA))
        fields = self._dressed(fields)
        if response.switched:
            await self._tunnel(response, fields)
        elif self._bodiless(status):
            self.down.send_head(status, response.reason, fields)
        elif conversion is not None:
            body = await body_conversion.convert_response(
                response, conversion, self.snapshot.limits.convert
            )
            self.exchange.converted = True
            if route.check is not None:
                self.exchange.body = body
            fields.append((b"Content-Length", b"%d" % len(body)))
            self.down.send(status, response.reason, fields, body)
        elif response.complete:
            body = await response.read()
            behind = self._behind(response)
            self.down.send(
                status, response.reason, fields, body, sized=response.sized, trailers=behind
            )
        else:
            self.down.begin(status, response.reason, fields, sized=response.sized)
            while piece := await response.read():
                await self.down.write(piece)
            self.down.end(self._behind(response))

    def _behind(self, response: UpstreamResponse) -> HeaderFields:
        return headers.trailing(response.trailers) if self.trailers else []

    async def _tunnel(self, response: UpstreamResponse, fields: HeaderFields) -> None:
        # Both sides speak another protocol from here on; bytes are passed on as they come.
        client = self.down.switch([*fields, *headers.upgrade(response.fields)])

        async def upwards() -> None:
            while data := await client.read():
                await response.write(data)

        sending = asyncio.create_task(upwards())
        try:
            while piece := await response.read():
                await self.down.write(piece)
        finally:
            sending.cancel()

    def _send(self, status: int, reason: bytes, fields: HeaderFields, body: bytes = b"") -> None:
        if self._bodiless(status):
            self.down.send_head(status, reason, fields)
        else:
            self.down.send(status, reason, fields, body)

    def _bodiless(self, status: int) -> bool:
        return self.message.method == "HEAD" or status in (204, 304)

    def _dressed(self, fields: HeaderFields) -> HeaderFields:
        endpoint = self.exchange.endpoint
        if endpoint is not None and endpoint.vary:
            fields = headers.vary(fields, endpoint.vary)
        if self.said:
            fields += self.said
        fields.append((b"X-Request-Id", self.exchange.request_id.encode()))
        return fields


@lru_cache(maxsize=4)
def _withheld_converted(withheld: frozenset[bytes], reading: bool) -> frozenset[bytes]:
    return withheld | (headers.ASKS if reading else headers.ASKS_WRITING)
