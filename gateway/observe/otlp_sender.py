"""Sends spans to a collector by OTLP over HTTP, with the OpenTelemetry SDK.

The SDK queues and batches spans, and sends them in a separate thread, so an unreachable collector
delays no request.
"""

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from socket import SHUT_RDWR, socket
from threading import Event, Thread
from typing import Any
from weakref import WeakSet

# opentelemetry: its SDK and exporter are the reference implementation of OTLP.
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    Link,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
)

# requests: the exporter uses it, and accepts a session that handles responses differently.
from requests import RequestException, Response, Session
from requests.adapters import HTTPAdapter

from gateway import __version__
from gateway.base.span import Span
from gateway.http.trace_parent import Tracing
from gateway.observe.tracing import MOST, Ended

# The maximum number of spans per request to the collector, and the milliseconds to collect them.
_AT_ONCE = 512
_GATHER = 500
# The maximum seconds to wait for the next bytes from the collector, and until the head of its final
# response is complete, including interim responses (1xx).
_SECONDS = 5.0
_LONGEST = 2 * _SECONDS
_AGAIN = 0.1

_SCOPE = InstrumentationScope("version-gateway", __version__)
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


class OtlpSender:
    """The SDK calls `ended` in its thread, with a number of spans and whether they were sent."""

    def __init__(self, replica: str, tracing: Tracing, ended: Ended) -> None:
        # The exporter would log each failure. The gateway counts failures instead.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        self._processor = BatchSpanProcessor(
            _CountedExporter(tracing.endpoint, ended),
            max_queue_size=MOST,
            schedule_delay_millis=_GATHER,
            max_export_batch_size=_AT_ONCE,
        )
        named = {"service.version": __version__, "service.instance.id": replica}
        if "OTEL_SERVICE_NAME" not in os.environ:
            named["service.name"] = "version-gateway"
        self._resource = Resource.create(named)

    def send(self, spans: Sequence[Span]) -> None:
        for span in spans:
            self._processor.on_end(self._readable(span))

    def end(self) -> None:
        self._processor.force_flush()
        self._processor.shutdown()  # type: ignore[no-untyped-call]  # the SDK has no annotation

    def _readable(self, span: Span) -> ReadableSpan:
        state = TraceState.from_header([span.state]) if span.state else TraceState()
        remote = span.kind == SpanKind.SERVER.value  # the parent span belongs to the caller
        parent = None
        if span.parent_id:
            parent = _context(span.trace_id, span.parent_id, TraceState(), remote)
        return ReadableSpan(
            span.name,
            _context(span.trace_id, span.span_id, state),
            parent,
            self._resource,
            span.attributes,
            links=[Link(_context(*link, TraceState())) for link in span.links],
            kind=SpanKind(span.kind),
            status=Status(StatusCode.ERROR if span.failed else StatusCode.UNSET),
            start_time=span.began,
            end_time=span.ended,
            instrumentation_scope=_SCOPE,
        )


def _context(trace_id: str, span_id: str, state: TraceState, remote: bool = False) -> SpanContext:
    return SpanContext(int(trace_id, 16), int(span_id, 16), remote, _SAMPLED, state)


class _CountedExporter(OTLPSpanExporter):
    def __init__(self, endpoint: str, ended: Ended) -> None:
        super().__init__(endpoint, timeout=_SECONDS, session=_CollectorSession())
        self._ended = ended

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = SpanExportResult.FAILURE
        try:
            result = super().export(spans)
        finally:
            self._ended(len(spans), result is SpanExportResult.SUCCESS)
        return result


class _CollectorSession(Session):
    """Skips response bodies, which may be endless, and limits the time for the response head."""

    def __init__(self) -> None:
        super().__init__()
        self._connections: WeakSet[Any] = WeakSet()
        for scheme in ("http://", "https://"):
            self.mount(scheme, _Adapter(self._connections))

    def request(self, *args: Any, **named: Any) -> Response:
        over, cut = Event(), Event()
        Thread(target=self._watch, args=(over, cut), daemon=True).start()
        try:
            response = super().request(*args, **{**named, "stream": True})
            response.close()
        except RequestException:
            if not cut.is_set():
                raise
        finally:
            over.set()
        if cut.is_set():
            # Aborting the connection can look like the end of a response head. The exporter retries
            # after a connection error, but not after a TimeoutError.
            raise TimeoutError("the collector takes too long")
        return response

    def _watch(self, over: Event, cut: Event) -> None:
        """Once the request exceeds its time limit, shut down all connections, also new ones."""
        seconds = _LONGEST
        while not over.wait(seconds):
            seconds = _AGAIN
            cut.set()
            for connection in tuple(self._connections):
                if connection.sock is not None:
                    with suppress(OSError):
                        socket.shutdown(connection.sock, SHUT_RDWR)


class _Adapter(HTTPAdapter):
    """Adds each new connection to a set."""

    def __init__(self, connections: WeakSet[Any]) -> None:
        super().__init__()
        self._made = connections

    def get_connection_with_tls_context(self, *args: Any, **named: Any) -> Any:
        pool: Any = super().get_connection_with_tls_context(*args, **named)
        if not isinstance(pool.ConnectionCls, partial):
            pool.ConnectionCls = partial(self._connection, pool.ConnectionCls)
        return pool

    def _connection(self, kind: Callable[..., Any], *args: Any, **named: Any) -> Any:
        connection = kind(*args, **named)
        self._made.add(connection)
        return connection
