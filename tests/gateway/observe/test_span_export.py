"""Spans wait for a collector in limited memory; lost spans are counted."""

import asyncio
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Thread

import pytest

from gateway.base.span import Span, SpanKind
from gateway.http.trace_parent import Tracing
from gateway.observe import otlp_sender
from gateway.observe.otlp_sender import OtlpSender
from gateway.observe.tracing import SpanExport
from gateway.usage.delta import Delta
from tests.gateway.collector import collecting
from tests.gateway.talk import soon

SPAN = Span("1" * 32, "2" * 16, "", "GET", SpanKind.SERVER, 1, 2, {"http.request.method": "GET"})


class Counted:
    def __init__(self) -> None:
        self.dropped: Counter[str] = Counter()

    def export(self, tracing: Callable[[], Tracing | None]) -> SpanExport:
        return SpanExport(tracing, self, partial(OtlpSender, "a"))

    def __call__(self, delta: Delta) -> None:
        for count in delta.counts:
            self.dropped[count.labels[0]] += count.count


async def test_the_queue_of_spans_is_bounded() -> None:
    counted = Counted()
    export = counted.export(lambda: None)
    for _ in range(3):
        assert export.export([SPAN] * 4000)
    assert counted.dropped == {"queue": 3 * 4000 - 8192}


async def test_queued_spans_are_sent_before_the_export_finishes() -> None:
    counted = Counted()
    with collecting() as collector:
        export = counted.export(lambda: Tracing(f"{collector.url}/v1/traces"))
        await export.finish()  # there are no spans yet
        task = asyncio.create_task(export.run())
        export.export([SPAN] * 600)
        await soon(lambda: len(collector.spans) == 600)
        await export.finish()
        task.cancel()
    assert len(collector.paths) == 2
    assert collector.resources[0]["service.instance.id"] == "a"
    assert not counted.dropped


@pytest.mark.parametrize("on", [False, True], ids=["turned off", "gone"])
async def test_spans_that_no_collector_accepts_are_counted(on: bool) -> None:
    counted = Counted()
    with collecting() as collector:
        gone = collector.url  # the collector is gone when the first span is sent
    tracing = Tracing(gone) if on else None
    export = counted.export(lambda: tracing)
    task = asyncio.create_task(export.run())
    export.export([SPAN] * 5)
    await soon(lambda: counted.dropped == {"collector": 5})
    await export.finish()
    task.cancel()


async def test_spans_go_to_the_collector_of_the_configuration_in_force() -> None:
    counted, rules = Counted(), list[Tracing]()
    with collecting() as first, collecting() as second:
        rules[:] = [Tracing(f"{first.url}/v1/traces")]
        export = counted.export(lambda: rules[0])
        task = asyncio.create_task(export.run())
        export.export([SPAN] * 5)
        await asyncio.sleep(0)
        await soon(lambda: export._current is not None)
        rules[:] = [Tracing(f"{second.url}/v1/traces")]
        export.export([SPAN] * 7)
        await soon(lambda: (len(first.spans), len(second.spans)) == (5, 7))
        await export.finish()
        task.cancel()
    assert not counted.dropped


@dataclass
class Endless:
    """A collector whose responses never end.

    Attributes:
        sent: the number of bytes sent, by response.
        cut: the indices of the responses that the exporter aborted.
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
        with suppress(OSError):  # the socket was closed
            while True:
                Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    Thread(target=accept, daemon=True).start()
    with listener:
        yield collector
        listener.shutdown(socket.SHUT_RDWR)


async def test_an_endless_response_body_is_not_read() -> None:
    counted = Counted()
    with answering(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536, 0.0) as collector:
        export = counted.export(lambda: Tracing(collector.url))
        task = asyncio.create_task(export.run())
        for times in (1, 2):
            export.export([SPAN] * 5)
            await soon(partial(lambda times: len(collector.sent) == times, times))
        async with asyncio.timeout(10):
            await export._idle.wait()
        await export.finish()
        task.cancel()
    assert max(collector.sent) < 32 * 1024 * 1024  # the kernel's buffers can hold this much
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
async def test_an_endless_response_head_is_aborted(
    monkeypatch: pytest.MonkeyPatch, head: bytes, repeated: bytes
) -> None:
    monkeypatch.setattr(otlp_sender, "_LONGEST", 0.2)
    counted = Counted()
    with answering(head, repeated, 0.02) as collector:
        export = counted.export(lambda: Tracing(collector.url))
        task = asyncio.create_task(export.run())
        for times in (1, 2):
            export.export([SPAN] * 5)
            await soon(partial(lambda times: counted.dropped == {"collector": 5 * times}, times))
            await soon(partial(lambda times: len(collector.cut) == times, times))
        await export.finish()
        task.cancel()
    assert collector.cut == [0, 1]
