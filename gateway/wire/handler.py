"""The handler: the life of a request, top to bottom.

Pin the snapshot, plan, convert the request if the plan says so, send, convert the response or
stream it through, record. What is to be decided is decided in the pure core; here is the I/O.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass

import msgspec
from aiohttp.web import BaseRequest

from gateway.core import headers
from gateway.core.errors import Code, Failed, Fault
from gateway.core.headers import Fields
from gateway.core.plan import Options, Plan, Refusal, plan
from gateway.core.snapshot import Snapshot
from gateway.wire import bodies, inbound
from gateway.wire.downstream import Downstream
from gateway.wire.exchange import Exchange
from gateway.wire.upstream import Request, Response, Upstream

_log = logging.getLogger(__name__)

# What the gateway writes itself, and so never passes on.
_OURS = frozenset({b"content-length", b"host", b"x-request-id"}) | headers.FORWARDING
_REQUEST_ID = frozenset({b"x-request-id"})


class Handler:
    """Answers requests by the snapshot of the moment.

    Attributes:
        snapshot: what new requests go by; a reload swaps this one reference.
    """

    def __init__(
        self, snapshot: Snapshot, upstream: Upstream, record: Callable[[Exchange], None]
    ) -> None:
        self.snapshot = snapshot
        self._upstream = upstream
        self._record = record
        self._in_flight = 0
        self._drained: asyncio.Event | None = None

    async def drain(self) -> None:
        """Return when nothing is in flight; every answer from now on ends its connection."""
        self._drained = asyncio.Event()
        if self._in_flight:
            await self._drained.wait()

    async def __call__(self, request: BaseRequest) -> Downstream:
        """Answer one request, whatever happens, and record it once."""
        walk = self._walk(request)
        exchange = walk.exchange
        self._in_flight += 1
        try:
            await walk.answer()
        except Failed as error:
            walk.refuse(error)
        except (asyncio.CancelledError, ConnectionError) as error:
            exchange.aborted = True
            exchange.cause = "the client left"
            if isinstance(error, asyncio.CancelledError):
                raise
        except Exception:
            _log.exception("request %s failed", exchange.request_id)
            walk.refuse(Failed(Fault(Code.INTERNAL, "The gateway failed; the log knows more.")))
        finally:
            self._in_flight -= 1
            if self._drained is not None:
                walk.down.keep_alive = False
                if not self._in_flight:
                    self._drained.set()
            exchange.ended = time.perf_counter()
            self._record(exchange)
        return walk.down

    def refuse(self, request: BaseRequest, fault: Fault) -> Downstream:
        """Answer with a fault what could not be read as a request."""
        walk = self._walk(request)
        walk.refuse(Failed(fault))
        walk.exchange.ended = time.perf_counter()
        self._record(walk.exchange)
        return walk.down

    def _walk(self, request: BaseRequest) -> "_Walk":
        exchange = Exchange(
            inbound.request_id(request),
            request.method,
            inbound.loggable_path(request),
            inbound.peer(request),
        )
        down = Downstream(request, exchange, keep_alive=self._drained is None)
        return _Walk(self.snapshot, self._upstream, request, exchange, down)


@dataclass(frozen=True, slots=True)
class _Walk:
    """One request on its way; the snapshot is pinned."""

    snapshot: Snapshot
    upstream: Upstream
    request: BaseRequest
    exchange: Exchange
    down: Downstream

    async def answer(self) -> None:
        """Plan, then do what the plan says; raises Failed for what is to be refused."""
        head, authority = inbound.read(self.request)
        outcome = plan(self.snapshot, head)
        self.exchange.endpoint = outcome.endpoint
        match outcome:
            case Plan():
                self.exchange.plan = outcome
                await self._forward(outcome, authority)
            case Options(allow=allow):
                self._send(204, b"", self._dressed([(b"Allow", allow.encode())]))
            case Refusal(fault=fault):
                raise Failed(fault)

    def refuse(self, error: Failed) -> None:
        """Answer with a problem detail; cut the connection if an answer has begun already."""
        fault, exchange = error.fault, self.exchange
        exchange.code, exchange.cause = fault.code, error.cause or None
        if self.down.begun:
            exchange.aborted = True
            self.down.abort()
            return
        body = msgspec.json.encode(fault.problem(exchange.path))
        fields = [
            (b"Content-Type", b"application/problem+json"),
            (b"Content-Length", b"%d" % len(body)),
            (b"Cache-Control", b"no-store"),
            *fault.fields,
        ]
        with suppress(ConnectionError):  # whoever it was for has left
            self._send(fault.status, b"", self._dressed(fields), body)

    async def _forward(self, todo: Plan, authority: str) -> None:
        asked = await self._outgoing(todo, authority)
        self.exchange.asked = time.perf_counter()
        response = await self.upstream.send(todo.leg.service, asked)
        self.exchange.answered = time.perf_counter()
        self.exchange.target = response.target
        try:
            await self._respond(todo, response)
        finally:
            response.abandon()

    async def _outgoing(self, todo: Plan, authority: str) -> Request:
        request, conversion = self.request, todo.leg.request
        given = request.raw_headers
        fields: Fields = [
            (b"Host", authority.encode()),
            *headers.end_to_end(given, _OURS if conversion is None else _OURS | headers.ASKS),
            *self._forwarding(authority),
            (b"Via", b"%d.%d %b" % (*request.version, headers.PSEUDONYM)),
            (b"X-Request-Id", self.exchange.request_id.encode()),
        ]
        expects = self._expects()
        length = inbound.content_length(request)
        body: bytes | AsyncIterator[bytes] | None = b"" if length == 0 else None
        if conversion is not None:
            # Nothing would be gained by a coding that has to be undone here.
            fields.append((b"Accept-Encoding", b"identity"))
        if request.body_exists and conversion is None:
            body = inbound.pieces(request)
        elif request.body_exists and conversion is not None:
            if expects:
                self.down.inform(100, [])
            limit = self.snapshot.limits.convert
            whole = await inbound.whole(request, limit)
            body = bodies.convert_request(whole, fields, conversion, limit)
            fields = headers.end_to_end(fields, headers.ABOUT_BYTES | {b"expect"})
            self.exchange.converted = True
        return Request(request.method, todo.target, fields, body, length, self.down.inform)

    def _expects(self) -> bool:
        values = self.request.headers.getall("Expect", ())
        if any(value.lower() != "100-continue" for value in values):
            raise Failed(Fault(Code.EXPECTATION_FAILED, "Only 100-continue can be expected."))
        return bool(values)

    def _forwarding(self, authority: str) -> Fields:
        peer, given = self.exchange.peer, self.request.raw_headers
        trusted = self.snapshot.trusts(peer)
        inherited = [line for line in given if line[0].lower() in headers.FORWARDING and trusted]
        return headers.forwarding(peer, authority.encode(), b"http", inherited)

    async def _respond(self, todo: Plan, response: Response) -> None:
        status, leg = response.status, todo.leg
        conversion = leg.response.for_status(status) if leg.response is not None else None
        drop = _REQUEST_ID if conversion is None else _REQUEST_ID | headers.ABOUT_BYTES
        fields = headers.end_to_end(response.fields, drop)
        if leg.content_type is not None and 200 <= status <= 299:
            fields = headers.retyped(fields, leg.content_type.encode())
        fields = self._dressed([*fields, (b"Via", b"1.1 " + headers.PSEUDONYM)])
        if self.request.method == "HEAD" or status in (204, 304):
            self._send(status, response.reason, fields)
        elif conversion is not None:
            limit = self.snapshot.limits.convert
            body = await bodies.convert_response(response, conversion, limit)
            self.exchange.converted = True
            fields.append((b"Content-Length", b"%d" % len(body)))
            self._send(status, response.reason, fields, body)
        elif response.complete:
            self._send(status, response.reason, fields, await response.read())
        else:
            await self._stream(status, fields, response)

    async def _stream(self, status: int, fields: Fields, response: Response) -> None:
        self.down.begin(status, response.reason, fields)
        while piece := await response.read():
            await self.down.write(piece)
        self.down.end()

    def _send(self, status: int, reason: bytes, fields: Fields, body: bytes = b"") -> None:
        if self.request.method == "HEAD" or status in (204, 304):
            self.down.send_head(status, reason, fields)
        else:
            self.down.send(status, reason, fields, body)

    def _dressed(self, fields: Fields) -> Fields:
        endpoint = self.exchange.endpoint
        names = endpoint.vary if endpoint is not None else ()
        fields = headers.vary(fields, names)
        return [*fields, (b"X-Request-Id", self.exchange.request_id.encode())]
