"""The export of spans: bounded in memory, with every loss counted."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Protocol

from gateway.base.daemon_thread import in_daemon_thread
from gateway.base.span import Span
from gateway.http.trace_parent import Tracing
from gateway.usage.delta import CounterDelta, Deliver, Delta

MOST = 8192
"""The maximum number of spans that wait for the collector."""
# The spans that are handed over between two turns of the event loop; they take a millisecond.
_AT_ONCE = 100
# Seconds in which the last spans can reach the collector when the gateway stops.
_AT_END = 1.0

Ended = Callable[[int, bool], None]
"""Takes a number of spans that the collector took, or did not; may be called in any thread."""


class Sender(Protocol):
    """Sends spans to one collector in the background."""

    def send(self, spans: Sequence[Span]) -> None:
        """Queue spans; the caller counts those that have not ended, so that there is room."""

    def end(self) -> None:
        """Send all that is queued; blocks."""


class SpanExport:
    """Exports the spans of all processes of a gateway.

    Args:
        tracing: returns where spans go; None if nothing is traced.
        deliver: takes the counts of spans that are dropped.
        connect: returns a new sender; called in a thread, since it imports the SDK of OpenTelemetry
            with the first spans, which takes 9 MB and a tenth of a second.
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
        """Queue spans, and count those that have no room; returns True."""
        taken = spans[: MOST - self._unsent]
        if taken:
            self._unsent += len(taken)
            self._waiting += taken
            self._idle.clear()
            self._came.set()
        self._drop(len(spans) - len(taken), "queue")
        return True

    async def run(self) -> None:
        """Hand queued spans to the sender for the rules in force, until cancelled."""
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
        """Wait a moment for the last spans to be sent."""
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
            except Exception:  # the SDK reads environment variables of its own
                logging.getLogger(__name__).exception("spans cannot be exported")
            else:
                self._current = tracing, sender
        return None if self._current is None else self._current[1]

    def _end(self) -> None:
        if self._current is not None:
            Thread(target=self._current[1].end, daemon=True).start()
            self._current = None

    def _ended(self, spans: int, sent: bool) -> None:
        with suppress(RuntimeError):  # the loop has ended
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
