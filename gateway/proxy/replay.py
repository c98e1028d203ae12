"""Replay: repeats a captured request in the background with another plan, or only validates it.

`gateway.proxy.message_rewriting` converts the request and its response as for a client. The
compared responses are therefore the responses that a client would receive.
"""

from collections.abc import Awaitable, Callable
from time import perf_counter

import msgspec

from gateway.base.errors import Blame, Fault, FaultCode, FaultError
from gateway.base.headers import HeaderFields
from gateway.base.span import Span
from gateway.conversion.document import Document
from gateway.conversion.formats import json_body
from gateway.conversion.formats.body_format import BodyFormat, described
from gateway.conversion.formats.streams import events
from gateway.http import content_coding
from gateway.http.client.message import bodiless
from gateway.http.trace_parent import TRACE_FIELDS
from gateway.http.upstream.upstream import NoRoomError, Upstream, UpstreamHead, UpstreamRequest
from gateway.proxy.conversion_budget import ConversionShare
from gateway.proxy.exchange import Exchange
from gateway.proxy.message_rewriting import rewrite_request, rewrite_response
from gateway.proxy.request_trace import ShadowTrace
from gateway.rollout.differences import ComparedAnswer, RefusedField, refused_fields
from gateway.rollout.shadow import DryRunMark, VersionShadow
from gateway.routing.plan import Plan, Refusal

# The maximum size of a replayed response is this multiple of the maximum size of a captured body.
GROWTH = 4
# Marks a request as sent in the background, so that services can recognize it.
_MARK = (b"X-Shadow", b"1")
_JSON = BodyFormat.JSON  # reading the member from its class is ten times slower


class ShedError(Exception):
    """A comparison is skipped. The message is the reason, a label of the `shed` counter."""


class CapturedResponse(msgspec.Struct):
    """A complete response, either of a service or converted for a client.

    Attributes:
        target: The address of the target that responded; empty without a response.
        seconds: The seconds from the request to the head of the response; 0 without a response.
        fault: The reason why the gateway refused the request or failed; None if a service
            responded.
    """

    status: int
    fields: HeaderFields
    body: bytes
    target: str = ""
    seconds: float = 0.0
    span: Span | None = None
    fault: Fault | None = None

    @property
    def complete(self) -> bool:
        return True

    async def read(self) -> bytes:
        return self.body

    def unread(self, data: bytes) -> None:
        """Do nothing, because every read returns the whole body."""

    def compared(
        self, rule: VersionShadow, method: str, link: Callable[[str], str] = str
    ) -> ComparedAnswer:
        """Return the parts to compare. For `link`, see `ComparedAnswer`."""
        if self.fault is not None:
            why = f"{self.fault.code}: {self.fault.detail}"
            return ComparedAnswer(self.status, {}, b"", why)
        chosen: dict[str, tuple[str, ...]] = {}
        for name, value in self.fields if rule.headers else ():
            key = name.decode("latin-1").lower()
            if key in rule.headers:
                chosen[key] = (*chosen.get(key, ()), value.decode("latin-1"))
        if bodiless(method, self.status):
            return ComparedAnswer(self.status, chosen, b"")
        kind, named, _ = described(self.fields)
        try:
            body = content_coding.decode(
                self.body, content_coding.codings(named), rule.body * GROWTH
            )
        except content_coding.DecodedTooLargeError:
            raise ShedError("large") from None
        except content_coding.ContentCodingError:
            return ComparedAnswer(self.status, chosen, self.body)
        return ComparedAnswer(self.status, chosen, _parsed(body, kind), link=link)


def _parsed(body: bytes, kind: BodyFormat) -> Document:
    """Parse a body for comparison. The documents of a stream become the elements of an array."""
    if kind is _JSON:
        return json_body.parse(body)
    if kind in (BodyFormat.JSON_LINES, BodyFormat.JSON_SEQUENCE):
        lines = body.replace(b"\x1e", b"\n").split(b"\n")
        return [json_body.parse(line) for line in lines if line.strip()]
    if kind is BodyFormat.EVENT_STREAM:
        return [
            {
                field: json_body.parse(value)
                if field == "data"
                else value.decode("utf-8", "replace")
                for field, value in event.items()
            }
            for event in events(body)
        ]
    return body


async def replay(
    upstream: Upstream,
    exchange: Exchange,
    plan: Plan,
    body: bytes | None,
    rule: VersionShadow,
    dry_run: DryRunMark | None = None,
) -> CapturedResponse:
    """Repeat a request with a plan, and return the response that a client would receive.

    If the gateway refuses the request or fails, the response has the status of the fault. `rule`
    limits the size of bodies. Raises ShedError if no response can be compared.
    """
    limit = rule.body * GROWTH
    room = ConversionShare(limit, exchange.snapshot.limits.elements)
    trace = None if exchange.trace_id is None else ShadowTrace(exchange, plan)
    span: Span | None = None
    began = perf_counter()
    try:
        request = await rewrite_request(exchange, plan, body, room)
        # Add the mark last, so that neither a conversion nor the client's fields can remove it.
        fields, target = request.fields, request.target
        if dry_run is not None:
            fields, target = dry_run.fields(fields), dry_run.target(target)
        if trace is not None:
            kept = (line for line in fields if line[0].lower() not in TRACE_FIELDS)
            fields = [*kept, *trace.fields]
        request = msgspec.structs.replace(
            request, target=target, fields=[*fields, _MARK], informational=None
        )
        began = perf_counter()
        response = await upstream.send(plan.route.service, request, background=True)
        seconds = perf_counter() - began
        if trace is not None:
            span = trace.span(began, response.target, response.status, "")
        try:
            pieces: list[bytes] = []
            size = 0
            while piece := await response.read():
                size += len(piece)
                if size > limit:
                    raise ShedError("large")
                pieces.append(piece)
        finally:
            response.abandon()
    except NoRoomError:
        raise ShedError("capacity") from None
    except FaultError as error:
        if error.fault.code is FaultCode.GATEWAY_EXHAUSTED:
            raise ShedError("connect") from None
        if error.fault.blame is Blame.UPSTREAM:  # an outage is an error, not a difference
            raise ShedError("unavailable") from None
        if trace is not None and span is None:
            span = trace.span(began, error.target, 0, error.fault.code)
        return _failed(error.fault, span)
    finally:
        if room.held:
            room.release()
    captured = CapturedResponse(response.status, response.fields, b"".join(pieces), response.target)
    made = await for_client(exchange, plan, captured, rule)
    made.seconds, made.span = seconds, span
    return made


async def refuse(refusal: Refusal) -> CapturedResponse:
    """Return the response for a refused request. Only its status is compared."""
    return _failed(refusal.fault)


def _failed(fault: Fault, span: Span | None = None) -> CapturedResponse:
    return CapturedResponse(fault.status, [], b"", span=span, fault=fault)


async def for_client(
    exchange: Exchange, plan: Plan, captured: UpstreamHead, rule: VersionShadow
) -> CapturedResponse:
    """Convert a service's response for the client, as described by a plan.

    If the conversion fails, the response has the status of the fault.
    """
    room = ConversionShare(rule.body * GROWTH, exchange.snapshot.limits.elements)
    try:
        status, fields, converted, _ = await rewrite_response(exchange, plan, captured, room)
        if converted is None:
            body = await captured.read()
        elif isinstance(converted, bytes):
            body = converted
        else:
            body = b"".join([piece async for piece in converted])
    except FaultError as error:
        return _failed(error.fault)
    finally:
        if room.held:
            room.release()
    if bodiless(exchange.method, status):
        body = b""
    return CapturedResponse(status, fields, body)


ValidateRequest = Callable[[str, Plan, UpstreamRequest], Awaitable[list[RefusedField] | None]]
"""A function that validates a request with a complete body, and returns the fields that violate
the OpenAPI document at a location. It returns None if the document is not available. The
implementation is `JobQueue.validate` in `gateway.verify.live.document_jobs`."""


async def trial(
    validate: ValidateRequest,
    exchange: Exchange,
    plan: Plan,
    body: bytes | None,
    rule: VersionShadow,
) -> tuple[RefusedField, ...]:
    """Return the invalid fields of a request that is not sent; raises ShedError."""
    assert rule.document is not None
    room = ConversionShare(rule.body * GROWTH, exchange.snapshot.limits.elements)
    try:
        request = await rewrite_request(exchange, plan, body, room)
    except FaultError as error:
        # The size limit of shadows is lower than the size limit of live requests.
        if error.fault.code is FaultCode.BODY_TOO_LARGE:
            raise ShedError("large") from None
        return (unconverted(error.fault),)
    finally:
        if room.held:
            room.release()
    found = await validate(rule.document, plan, request)
    if found is None:
        raise ShedError("document")
    return refused_fields(found, rule.ignored)


def unconverted(fault: Fault) -> RefusedField:
    """Describe a request that cannot be converted as a RefusedField.

    The detail of the fault contains no values of the request.
    """
    return RefusedField("conversion", fault.code, fault.detail)
