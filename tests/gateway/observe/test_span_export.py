"""Spans wait in bounded memory for a collector; what is lost is counted."""

import asyncio
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Thread

import pytest

from gateway.base.span import Span, SpanKind
from gateway.http.trace_parent import Tracing
from gateway.observe import span_export
from gateway.observe.span_export import SpanExport
from gateway.usage.delta import Delta
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


@dataclass
class Endless:
    """A collector that answers each request without end.

    Attributes:
        url: where.
        sent: how many bytes each answer had.
        cut: which answers were cut by who asked.
    """

    url: str
    sent: list[int] = field(default_factory=list)
    cut: list[int] = field(default_factory=list)


@contextmanager
def answering(head: bytes, repeated: bytes, pause: float) -> Iterator[Endless]:
    listener = socket.create_server(("127.0.0.1", 0))
    collector = Endless(f"http://127.0.0.1:{listener.getsockname()[1]}")

    def answer(connection: socket.socket) -> None:
        connection.recv(65536)
        place = len(collector.sent)
        collector.sent.append(0)
        with connection:
            try:
                connection.sendall(head)
                while collector.sent[place] < 64 * 1024 * 1024:
                    connection.sendall(repeated)
                    collector.sent[place] += len(repeated)
                    time.sleep(pause)
            except OSError:
                collector.cut.append(place)

    def accept() -> None:
        with suppress(OSError):  # it is closed
            while True:
                Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    Thread(target=accept, daemon=True).start()
    with listener:
        yield collector
        listener.shutdown(socket.SHUT_RDWR)


async def test_a_body_without_end_is_not_read() -> None:
    counted = Counted()
    with answering(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536, 0.0) as collector:
        export = SpanExport(lambda: Tracing(collector.url), counted, "a")
        task = asyncio.create_task(export.run())
        for times in (1, 2):
            export.absorb(delta(5))
            await soon(partial(lambda times: len(collector.sent) == times, times))
        async with asyncio.timeout(10):
            await export._idle.wait()
        await export.finish()
        task.cancel()
    assert max(collector.sent) < 32 * 1024 * 1024  # what the system keeps for a connection
    assert not counted.dropped


@pytest.mark.parametrize(
    ("head", "repeated"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"a: b\r\n"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 200 ", b"x"),
    ],
    ids=["fields", "interim", "bytes"],
)
async def test_a_head_without_end_is_cut(
    monkeypatch: pytest.MonkeyPatch, head: bytes, repeated: bytes
) -> None:
    monkeypatch.setattr(span_export, "_LONGEST", 0.2)
    counted = Counted()
    with answering(head, repeated, 0.02) as collector:
        export = SpanExport(lambda: Tracing(collector.url), counted, "a")
        task = asyncio.create_task(export.run())
        for times in (1, 2):
            export.absorb(delta(5))
            await soon(partial(lambda times: counted.dropped == {"collector": 5 * times}, times))
            await soon(partial(lambda times: len(collector.cut) == times, times))
            assert export._sending is not None
            await asyncio.wait([export._sending], timeout=10)
            assert export._sending.done()
        await export.finish()
        task.cancel()
    assert collector.cut == [0, 1]
