"""The export of spans: to a collector, by OTLP over HTTP, from the one process that has them all.

Spans wait in a queue; when that is full, or the collector takes none, they are dropped and counted.
The SDK of OpenTelemetry sends them in a thread, so that a collector that is gone holds nothing up.
"""

import asyncio
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from socket import SHUT_RDWR, socket
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from gateway import __version__
from gateway.base.daemon_thread import in_daemon_thread
from gateway.base.span import Span
from gateway.http.trace_parent import Tracing
from gateway.usage.delta import CounterDelta, Deliver, Delta

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

# The spans that wait, those of one request to the collector, and for how long it may take one.
_MOST = 8192
_AT_ONCE = 512
_SECONDS = 5.0
# Spans that have just come wait for others so long; at the end, the last wait for the collector.
_GATHER = 0.5
_AT_END = 1.0
# The exporter bounds each wait for bytes; this is the time until all of a head is there, with all
# that only announce another one (1xx).
_LONGEST = 2 * _SECONDS


class SpanExport:
    """Sends the spans of all processes of a gateway.

    Args:
        tracing: returns where they go.
        deliver: takes the counts.
        replica: the name of this gateway.
    """

    def __init__(
        self, tracing: Callable[[], Tracing | None], deliver: Deliver, replica: str
    ) -> None:
        self._tracing = tracing
        self._deliver = deliver
        self._replica = replica
        self._waiting: deque[Span] = deque()
        self._came = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._sender: _Sender | None = None
        self._sending: asyncio.Task[bool] | None = None

    def absorb(self, delta: Delta) -> None:
        """Take the spans of a delta, and hand the delta on."""
        spans = delta.spans[: _MOST - len(self._waiting)]
        if spans:
            self._waiting += spans
            self._idle.clear()
            self._came.set()
        self._deliver(delta)
        self._drop(len(delta.spans) - len(spans), "queue")

    async def run(self) -> None:
        """Send what comes, until cancelled."""
        while True:
            await self._came.wait()
            await asyncio.sleep(_GATHER)
            while self._waiting:
                size = min(len(self._waiting), _AT_ONCE)
                batch = [self._waiting.popleft() for _ in range(size)]
                if not await self._sent(batch):
                    self._drop(len(batch), "collector")
            self._came.clear()
            self._idle.set()

    async def finish(self) -> None:
        """Wait a moment for the last spans to be sent, and drop what is left."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_AT_END):
                await self._idle.wait()
        if self._sender is not None:
            self._sender.end()

    def _drop(self, spans: int, reason: str) -> None:
        if spans:
            dropped = CounterDelta("spans_dropped", (reason,), spans)
            self._deliver(Delta(time.time(), counts=[dropped]))

    async def _sent(self, batch: Sequence[Span]) -> bool:
        """Send spans, in a thread; return whether the collector took them."""
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(in_daemon_thread(partial(self._send, batch)))
            try:
                done, _ = await asyncio.wait([self._sending], timeout=_LONGEST)
                if done:
                    return self._sending.result()
            except Exception:  # whatever the SDK raises
                logging.getLogger(__name__).exception("spans could not be sent")
                return False
        # A thread cannot be ended, but it ends with its connections; there is no second one before.
        if self._sender is not None:
            self._sender.end()
        return False

    def _send(self, batch: Sequence[Span]) -> bool:
        tracing = self._tracing()
        if tracing is None:  # it was on when the spans were made
            return False
        # opentelemetry: the SDK and its exporter are the reference of OTLP. Imported with the first
        # spans: it takes memory that a gateway without traces saves.
        from opentelemetry.sdk.trace.export import SpanExportResult

        if self._sender is None or self._sender.ended or self._sender.tracing != tracing:
            self._sender = _Sender(tracing)
        sent = self._sender.exporter.export(_readable(batch, self._replica))
        return sent is SpanExportResult.SUCCESS


class _Sender:
    """What sends to one collector, and can be ended while it waits for its answer.

    It reads no body of an answer, which may have no end.
    """

    def __init__(self, tracing: Tracing) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        # requests: the exporter sends with it, and takes a session for what is to be otherwise.
        from requests import Response, Session
        from requests.adapters import HTTPAdapter

        self.tracing = tracing
        self.ended = False
        self._connections: WeakSet[Any] = WeakSet()
        sender = self

        class Adapter(HTTPAdapter):
            def get_connection_with_tls_context(self, *args: Any, **named: Any) -> Any:
                pool: Any = super().get_connection_with_tls_context(*args, **named)
                if not isinstance(pool.ConnectionCls, partial):
                    pool.ConnectionCls = partial(sender._connection, pool.ConnectionCls)
                return pool

        class HeadsAlone(Session):
            def request(self, *args: Any, **named: Any) -> Response:
                response = super().request(*args, **{**named, "stream": True})
                response.close()
                return response

        session = HeadsAlone()
        session.mount("http://", Adapter())
        session.mount("https://", Adapter())
        # It would report each of its failures, which are counted.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        self.exporter = OTLPSpanExporter(tracing.endpoint, timeout=_SECONDS, session=session)

    def end(self) -> None:
        """Send nothing more, and end what is being sent; once more, if it goes on."""
        if not self.ended:
            self.ended = True
            self.exporter.shutdown()  # type: ignore[no-untyped-call]  # the SDK leaves it out
        for connection in tuple(self._connections):
            if connection.sock is not None:
                with suppress(OSError):
                    socket.shutdown(connection.sock, SHUT_RDWR)

    def _connection(self, kind: Callable[..., Any], *args: Any, **named: Any) -> object:
        if self.ended:
            raise ConnectionAbortedError("the collector takes too long")
        connection = kind(*args, **named)
        self._connections.add(connection)
        return connection


def _readable(batch: Sequence[Span], replica: str) -> "list[ReadableSpan]":
    """Return spans as the SDK has them."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
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

    flags = TraceFlags(TraceFlags.SAMPLED)

    def context(trace_id: str, span_id: str, state: str = "", *, remote: bool) -> SpanContext:
        states = TraceState.from_header([state])
        return SpanContext(int(trace_id, 16), int(span_id, 16), remote, flags, states)

    def parent(each: Span) -> SpanContext | None:
        remote = SpanKind(each.kind) is SpanKind.SERVER  # its parent is the caller's
        return context(each.trace_id, each.parent_id, remote=remote) if each.parent_id else None

    named = {"service.version": __version__, "service.instance.id": replica}
    if "OTEL_SERVICE_NAME" not in os.environ:
        named["service.name"] = "version-gateway"
    resource, scope = Resource.create(named), InstrumentationScope("version-gateway", __version__)
    return [
        ReadableSpan(
            each.name,
            context(each.trace_id, each.span_id, each.state, remote=False),
            parent(each),
            resource,
            each.attributes,
            links=[Link(context(*link, remote=False)) for link in each.links],
            kind=SpanKind(each.kind),
            status=Status(StatusCode.ERROR if each.failed else StatusCode.UNSET),
            start_time=each.began,
            end_time=each.ended,
            instrumentation_scope=scope,
        )
        for each in batch
    ]
