"""Spans wait in bounded memory for a collector; what is lost is counted."""

import asyncio
from collections import Counter

import pytest

from gateway.core.tracing.span import Span, SpanKind
from gateway.core.tracing.trace_parent import Tracing
from gateway.telemetry.delta import Delta
from gateway.telemetry.span_export import SpanExport
from tests.gateway.collector import collecting
from tests.gateway.talk import soon

SPAN = Span("1" * 32, "2" * 16, "", "GET", SpanKind.SERVER, 1, 2, {"http.request.method": "GET"})


def delta(spans: int) -> Delta:
    return Delta(1.0, [], [], [], [], [], spans=[SPAN] * spans)


class Counted:
    """Takes deltas, and counts what they say was dropped, by reason."""

    def __init__(self) -> None:
        self.deltas = 0
        self.dropped: Counter[str] = Counter()

    def __call__(self, delta: Delta) -> None:
        self.deltas += bool(delta.spans)
        for count in delta.counts:
            self.dropped[count.labels[0]] += count.count


async def test_the_queue_is_bounded() -> None:
    counted = Counted()
    export = SpanExport(lambda: None, counted, "a")
    for _ in range(3):
        export.absorb(delta(4000))
    assert counted.deltas == 3
    assert counted.dropped == {"queue": 3 * 4000 - 8192}


async def test_the_last_spans_are_sent_at_the_end() -> None:
    counted = Counted()
    with collecting() as collector:
        export = SpanExport(lambda: Tracing(f"{collector.url}/v1/traces"), counted, "a")
        await export.finish()  # there are none
        task = asyncio.create_task(export.run())
        export.absorb(delta(600))
        await soon(lambda: len(collector.spans) == 600)
        await export.finish()
        task.cancel()
    assert len(collector.paths) == 2
    assert collector.resources[0]["service.instance.id"] == "a"
    assert not counted.dropped


@pytest.mark.parametrize("on", [False, True], ids=["turned off", "gone"])
async def test_spans_that_nobody_takes(on: bool) -> None:
    counted = Counted()
    with collecting() as collector:
        gone = collector.url  # by the time of the first span
    tracing = Tracing(gone) if on else None
    export = SpanExport(lambda: tracing, counted, "a")
    task = asyncio.create_task(export.run())
    export.absorb(delta(5))
    await soon(lambda: counted.dropped == {"collector": 5})
    await export.finish()
    task.cancel()
