"""Traces of requests: continue the caller's trace or begin a trace, and forward it to services.

A request that is not sampled has only a trace id. A sampled request gets spans at its end: for the
request (SERVER), for each conversion (INTERNAL), and for the request to the service (CLIENT):
https://opentelemetry.io/docs/specs/semconv/http/http-spans/
"""

from collections.abc import Callable
from random import getrandbits, random
from time import perf_counter, time_ns
from typing import Final
from urllib.parse import urlsplit

# multidict: the type of aiohttp's mappings of header fields, which find `istr` names faster.
from multidict import MultiMapping, istr

from gateway.base.addresses import client_network
from gateway.base.headers import FieldLines
from gateway.base.request import RequestHead
from gateway.base.span import Span, SpanKind
from gateway.http.client.public_origin import public_origin
from gateway.http.trace_parent import (
    TraceParent,
    Tracing,
    is_not_sampled,
    parse_traceparent,
)
from gateway.proxy.exchange import Exchange, RequestSpan, new_span_id
from gateway.routing.plan import Plan
from gateway.usage.delta import METHODS, OTHER

# The maximum number of sampled traces per second and process. Callers may request any number.
_MOST = 500
_NAME: Final = istr("traceparent")
_STATE: Final = istr("tracestate")
_TRACEPARENT: Final = b"traceparent"
_TRACESTATE = b"tracestate"
_NONE: Final[list[str]] = []
# The end of `traceparent` for a request that is not sampled.
_NO_SPAN: Final = f"-{new_span_id()}-00"
# The maximum number of characters of User-Agent and tracestate in a span. They are limited because
# spans stay in memory until they are exported. All programs support a tracestate of this length
# (Trace Context, section 3.3.1.5).
_LONGEST_AGENT, _LONGEST_STATE = 256, 512


class RequestTraces:
    """`drop` is called for each request that is not traced because of the limit."""

    def __init__(self, drop: Callable[[], None]) -> None:
        self._drop = drop
        self._second = 0
        self._left = _MOST

    def begin(self, exchange: Exchange, tracing: Tracing) -> None:
        """Continue the trace that the caller's header fields name, or begin a trace."""
        headers = exchange.message.headers
        given, parent = headers.getall(_NAME, _NONE), None
        if given:
            text = given[0] if len(given) == 1 else ""
            if is_not_sampled(text):
                exchange.trace_id = text[3:35]
                return  # the client's traceparent and tracestate are forwarded unchanged
            parent = parse_traceparent(text)
        states: FieldLines = ()
        if parent is None:
            if random() >= tracing.ratio or not self._has_room(exchange.began):  # noqa: S311
                # No span of this request is exported, so the request id can be the trace id. All
                # such requests can share one span id, because each has its own trace.
                trace_id = _trace_id() if exchange.request_id_given else exchange.request_id
                exchange.trace_id = trace_id
                exchange.trace_fields = ((_TRACEPARENT, f"00-{trace_id}{_NO_SPAN}".encode()),)
                return
            trace_id, parent_id = _trace_id(), ""
        else:
            trace_id, parent_id, sampled = parent
            states = _states(headers)
            if not sampled or not self._has_room(exchange.began):
                exchange.trace_id = trace_id
                exchange.trace_fields = ((_TRACEPARENT, parent.field), *states)
                return
        exchange.trace_id = trace_id
        state = b",".join(value for _, value in states)
        kept = state.decode("ascii", "replace") if len(state) <= _LONGEST_STATE else ""
        span = exchange.span = RequestSpan(trace_id, parent_id, kept)
        value = TraceParent(trace_id, span.asked_id, sampled=True).field
        exchange.trace_fields = ((_TRACEPARENT, value), *states)

    def _has_room(self, now: float) -> bool:
        second = int(now)
        if second != self._second:
            self._second, self._left = second, _MOST
        self._left -= 1
        if self._left < 0:
            self._drop()
        return self._left >= 0


def _trace_id() -> str:
    return (getrandbits(128) | 1).to_bytes(16).hex()


def _states(headers: MultiMapping[str]) -> FieldLines:
    if _STATE not in headers:
        return ()
    given = headers.getall(_STATE)
    return tuple((_TRACESTATE, each.encode("utf-8", "surrogateescape")) for each in given)


class ShadowTrace:
    """The trace of a shadow's request: a new trace with a link to the trace of `exchange`."""

    def __init__(self, exchange: Exchange, plan: Plan) -> None:
        self._exchange = exchange
        self._plan = plan
        trace_id, sampled = _trace_id(), exchange.span is not None
        self._parent = TraceParent(trace_id, new_span_id(), sampled)

    @property
    def fields(self) -> FieldLines:
        """The trace fields of the request. They replace the client's trace fields."""
        return ((_TRACEPARENT, self._parent.field),)

    def span(self, began: float, target: str | None, status: int, error: str) -> Span | None:
        """Return the span of a request that has just ended, or None if it is not traced.

        `began` is in monotonic seconds, and `status` is 0 without a response.
        """
        request = self._exchange.span
        if request is None:
            return None
        attributes = _asked(self._exchange, self._plan, target, status, error)
        now, at = time_ns(), perf_counter()
        return Span(
            self._parent.trace_id,
            self._parent.span_id,
            "",
            f"shadow {attributes['http.request.method']}",
            SpanKind.CLIENT,
            now - int((at - began) * 1e9),
            now,
            attributes,
            "error.type" in attributes,
            ((request.trace_id, request.span_id),),
        )


def spans(exchange: Exchange, span: RequestSpan) -> list[Span]:
    now, at = time_ns(), perf_counter()

    def moment(seconds: float) -> int:
        return now - int((at - seconds) * 1e9)

    attributes = _served(exchange)
    method, route = attributes["http.request.method"], attributes.get("http.route")
    name = "HTTP" if method == OTHER else str(method)
    found = [
        Span(
            span.trace_id,
            span.span_id,
            span.parent_id,
            name if route is None else f"{name} {route}",
            SpanKind.SERVER,
            moment(exchange.began),
            moment(exchange.ended),
            attributes,
            "error.type" in attributes,
        )
    ]
    for stage, began, ended in span.stages:
        ids = span.trace_id, new_span_id(), span.span_id
        times = moment(began), moment(ended)
        found.append(Span(*ids, stage, SpanKind.INTERNAL, *times, _version(exchange)))
    if span.begun is not None:  # this conversion has failed
        stage, began = span.begun
        ids = span.trace_id, new_span_id(), span.span_id
        times = moment(began), moment(exchange.ended)
        why = _version(exchange) | {"error.type": exchange.code or "aborted"}
        found.append(Span(*ids, stage, SpanKind.INTERNAL, *times, why, failed=True))
    if exchange.sent and exchange.plan is not None:
        code = exchange.code or ("aborted" if exchange.aborted else "")
        status = exchange.service_status
        asked = _asked(exchange, exchange.plan, exchange.target, status, code)
        found.append(
            Span(
                *(span.trace_id, span.asked_id, span.span_id),
                str(asked["http.request.method"]),
                SpanKind.CLIENT,
                moment(exchange.sent),
                moment(exchange.answered or exchange.ended),
                asked,
                "error.type" in asked,
            )
        )
    return [each._replace(state=span.state) for each in found] if span.state else found


def _served(exchange: Exchange) -> dict[str, str | int]:
    found = _version(exchange)
    method = exchange.method
    found["http.request.method"] = method if method in METHODS else OTHER
    if method not in METHODS:
        found["http.request.method_original"] = method
    scheme, authority = public_origin(exchange)
    found["url.scheme"], found["url.path"] = scheme, exchange.path
    found["client.address"] = _client_address(exchange)
    found["network.peer.address"] = exchange.peer
    found["network.protocol.version"] = ".".join(map(str, exchange.message.version))
    if authority:
        found["server.address"] = urlsplit(f"//{authority}").hostname or ""
        port = authority.rpartition(":")[2]
        usual = 443 if scheme == "https" else 80
        found["server.port"] = int(port) if port.isdecimal() else usual
    if agent := exchange.message.headers.get("User-Agent"):
        found["user_agent.original"] = agent[:_LONGEST_AGENT].encode("ascii", "replace").decode()
    if exchange.endpoint is not None:
        found["http.route"] = exchange.endpoint.template.text
    status = exchange.status
    if status:
        found["http.response.status_code"] = status
    if exchange.aborted or status >= 500 or not status:
        found["error.type"] = exchange.code or (str(status) if status >= 500 else "aborted")
    return found


def _client_address(exchange: Exchange) -> str:
    """Return the client's address: the address that a trusted proxy reports, or the peer's."""
    head = RequestHead(exchange.method, "", None, exchange.message.headers)
    trusted = exchange.snapshot.trusted_proxies
    return client_network(head, exchange.peer, 32, 128, trusted) or exchange.peer


def _asked(
    exchange: Exchange, plan: Plan, target: str | None, status: int, code: str
) -> dict[str, str | int]:
    found = _version(exchange)
    method = plan.method(exchange.method)
    found["http.request.method"] = method if method in METHODS else OTHER
    found["gateway.service.name"] = plan.route.service.name
    if target is not None:
        host, _, port = target.rpartition(":")
        found["server.address"], found["server.port"] = host.strip("[]"), int(port)
        # Leave out the query, as in the log, because it may contain secrets.
        scheme = "http" if plan.route.service.tls is None else "https"
        found["url.full"] = f"{scheme}://{target}{plan.target.partition('?')[0]}"
    if status:
        found["http.response.status_code"] = status
    if status >= 400:
        found["error.type"] = str(status)
    elif not status:
        found["error.type"] = code or "aborted"
    return found


def _version(exchange: Exchange) -> dict[str, str | int]:
    found: dict[str, str | int] = {}
    if exchange.endpoint is not None:
        found["gateway.api.name"] = exchange.endpoint.api
    if exchange.version is not None:
        found["gateway.api.version"] = str(exchange.version)
    return found
