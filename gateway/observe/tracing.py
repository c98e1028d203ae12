"""`tracing` in gateway.yaml, and the export of spans in limited memory; lost spans are counted."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Annotated, Protocol
from urllib.parse import urlsplit

from pydantic import Field

from gateway.base.daemon_thread import in_daemon_thread
from gateway.base.extras import install, missing
from gateway.base.mistakes import Mistakes
from gateway.base.model import NonEmptyText, NumberText, SectionModel
from gateway.base.span import Span
from gateway.http.trace_parent import Tracing
from gateway.usage.delta import CounterDelta, Deliver, Delta

MOST = 8192
# The maximum spans per iteration of the event loop, which take a millisecond to queue.
_AT_ONCE = 100
# The maximum seconds to send the last spans when the gateway stops.
_AT_END = 1.0

Ended = Callable[[int, bool], None]
"""Receives a number of spans and whether the collector accepted them; called in any thread."""


class Sender(Protocol):
    """Sends spans to one collector in the background."""

    def send(self, spans: Sequence[Span]) -> None:
        """Queue spans; the caller keeps their number below MOST."""

    def end(self) -> None:
        """Send all queued spans; blocks."""


class SpanExport:
    """Exports the spans of all processes of a gateway.

    `connect` returns a new sender and is called in a thread: its first call imports the
    OpenTelemetry SDK, which takes 9 MB and a tenth of a second.
    """

    def __init__(
        self,
        tracing: Callable[[], Tracing | None],
        deliver: Deliver,
        connect: Callable[[Tracing, Ended], Sender],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._tracing = tracing
        self._deliver = deliver
        self._connect = connect
        self._waiting: list[Span] = []
        self._unsent = 0
        self._came = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._current: tuple[Tracing, Sender] | None = None

    def export(self, spans: Sequence[Span]) -> bool:
        """Queue spans and return True; spans beyond MOST are dropped and counted."""
        taken = spans[: MOST - self._unsent]
        if taken:
            self._unsent += len(taken)
            self._waiting += taken
            self._idle.clear()
            self._came.set()
        self._drop(len(spans) - len(taken), "queue")
        return True

    async def run(self) -> None:
        while True:
            await self._came.wait()
            self._came.clear()
            spans, self._waiting = self._waiting, []
            sender = await self._sender()
            if sender is None:
                self._count(len(spans), False)
                continue
            for begin in range(0, len(spans), _AT_ONCE):
                sender.send(spans[begin : begin + _AT_ONCE])
                await asyncio.sleep(0)

    async def finish(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_AT_END):
                await self._idle.wait()
        self._end()

    async def _sender(self) -> Sender | None:
        tracing = self._tracing()
        if self._current is not None and self._current[0] != tracing:
            self._end()
        if self._current is None and tracing is not None:
            try:
                sender = await in_daemon_thread(partial(self._connect, tracing, self._ended))
            except Exception:  # the SDK reads environment variables that may be invalid
                logging.getLogger(__name__).exception("spans cannot be exported")
            else:
                self._current = tracing, sender
        return None if self._current is None else self._current[1]

    def _end(self) -> None:
        if self._current is not None:
            Thread(target=self._current[1].end, daemon=True).start()
            self._current = None

    def _ended(self, spans: int, sent: bool) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._count, spans, sent)

    def _count(self, spans: int, sent: bool) -> None:
        self._unsent -= spans
        if not self._unsent:
            self._idle.set()
        if not sent:
            self._drop(spans, "collector")

    def _drop(self, spans: int, reason: str) -> None:
        if spans:
            dropped = CounterDelta("spans_dropped", (reason,), spans)
            self._deliver(Delta(time.time(), counts=[dropped]))


_PATH = "/v1/traces"
_DEFAULT = "http://localhost:4318"
# Variables of the OpenTelemetry specification that apply if the configuration does not set a value.
_DISABLED = "OTEL_SDK_DISABLED"
_OF_TRACES = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
_OF_ALL = "OTEL_EXPORTER_OTLP_ENDPOINT"
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_SAMPLER = "OTEL_TRACES_SAMPLER"
_ARGUMENT = "OTEL_TRACES_SAMPLER_ARG"


class TracingModel(SectionModel):
    """The requests to trace, and the collector that gets their spans."""

    endpoint: NonEmptyText | None = None
    """The URL of a collector that accepts OTLP over HTTP, such as http://collector:4318. The
    gateway appends /v1/traces. Without `endpoint`, OTEL_EXPORTER_OTLP_ENDPOINT applies, or
    http://localhost:4318."""
    ratio: Annotated[float, Field(ge=0, le=1), NumberText] | None = None
    """The share of requests to trace, from 0 to 1, among those without a caller's trace. Without
    `ratio`, OTEL_TRACES_SAMPLER_ARG applies, or all requests are traced."""

    def compile(self, environment: Mapping[str, str], mistakes: Mistakes) -> Tracing | None:
        if environment.get(_DISABLED, "").strip().lower() == "true":
            return None
        named = environment.get(_OF_TRACES) or _under(environment.get(_OF_ALL))
        if self is NO_TRACING and not named:
            return None
        if missing("opentelemetry"):
            text = f"needs the SDK of OpenTelemetry, {install('otlp')}"
            if self is NO_TRACING:
                mistakes.warn(f"warning: {_OF_ALL} {text}", "tracing")
            else:
                mistakes.add(text, "tracing")
            return None
        name = next((one for one in _PROTOCOLS if environment.get(one)), "")
        if name and environment[name] != "http/protobuf":
            text = f"{name} is '{environment[name]}', but spans are sent as http/protobuf; unset it"
            mistakes.add(f"{text}, and name the collector's port for HTTP, such as 4318", "tracing")
        endpoint = _under(self.endpoint) or named or _under(_DEFAULT)
        if not _is_url(endpoint):
            # The message does not repeat the URL, since it may contain a password.
            text = f"the endpoint is not a URL; write one like {_DEFAULT}"
            mistakes.add(text, "tracing", *(("endpoint",) if self.endpoint else ()))
        ratio = _ratio(environment, mistakes) if self.ratio is None else self.ratio
        return Tracing(endpoint, ratio)


NO_TRACING = TracingModel.model_construct(endpoint=None, ratio=None)
"""The value if gateway.yaml has no `tracing`: only environment variables apply."""


def _under(base: str | None) -> str:
    return f"{base.rstrip('/')}{_PATH}" if base else ""


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _ratio(environment: Mapping[str, str], mistakes: Mistakes) -> float:
    sampler = environment.get(_SAMPLER, "")
    if sampler.endswith("always_off"):
        return 0.0
    if not sampler.endswith("traceidratio"):
        return 1.0
    text = environment.get(_ARGUMENT) or "1"
    try:
        ratio = float(text)
    except ValueError:
        ratio = -1.0
    if not 0 <= ratio <= 1:
        mistakes.add(f"{_ARGUMENT} is '{text}'; must be a number from 0 to 1", "tracing")
        return 1.0
    return ratio
