"""The log output: no line is lost while a reader reads, and writing never blocks."""

import asyncio
import errno
import os
import socket
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from gateway.observe import log
from gateway.observe.log import LogOutput
from gateway.proxy.record import request_line
from tests.gateway.kit import DEADLINE
from tests.gateway.proxy.wires import exchange

LINE = b"x" * 999 + b"\n"


def test_lines_are_written_to_a_file_at_once(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        output = LogOutput(file.fileno())
        assert output.most == 65536
        for _ in range(3000):
            output.write(LINE, "request", 1)
    assert (tmp_path / "log").read_bytes() == LINE * 3000


@pytest.mark.parametrize("kind", ["pipe", "socket"])
async def test_lines_are_buffered_for_a_slow_reader_and_stay_in_order(kind: str) -> None:
    if kind == "pipe":
        reading, writing = os.pipe()
        ends: list[socket.socket] = []
    else:
        ends = list(socket.socketpair())
        reading, writing = ends[0].fileno(), ends[1].fileno()
    output = LogOutput(writing)
    assert output.most == 4096
    assert os.get_blocking(writing)  # other processes may share the descriptor
    count = 800
    for number in range(count):
        output.write(b"%0999d\n" % number, "request", 1)
    text = b""
    while text.count(b"\n") < count:
        text += await asyncio.to_thread(os.read, reading, 100_000)
    assert [int(line) for line in text.split()] == list(range(count))
    output.write(LINE, "request", 1)
    assert os.read(reading, 2000) == LINE
    output.finish()
    for end in ends:
        end.close()
    if not ends:
        os.close(reading)
        os.close(writing)


async def test_lines_beyond_the_buffer_are_dropped_and_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log, "_INTERVAL", 0.01)
    reading, writing = os.pipe()
    output = LogOutput(writing)
    reported: asyncio.Queue[Counter[str]] = asyncio.Queue()
    output.report = reported.put_nowait
    for _ in range(500):
        output.write(LINE * 4, "request", 4)
    for _ in range(100):
        output.write(LINE, "event", 1)
    dropped = await reported.get()
    assert set(dropped) == {"request", "event"}
    received = 0
    os.set_blocking(reading, False)
    while received < 2_100_000 - dropped.total() * 1000:
        try:
            received += len(os.read(reading, 1_000_000))
        except BlockingIOError:
            await asyncio.sleep(0.001)
    assert received == 2_100_000 - dropped.total() * 1000
    output.finish()
    os.close(reading)
    os.close(writing)


async def test_request_lines_do_not_displace_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """When even the shortest request line is dropped, the event that reports this still fits."""
    monkeypatch.setattr(log, "_INTERVAL", 0.01)
    reading, writing = os.pipe()
    output = LogOutput(writing)
    for size in (4096, 1):
        reported: asyncio.Queue[Counter[str]] = asyncio.Queue()
        output.report = reported.put_nowait
        while reported.empty():
            output.write(b"x" * (size - 1) + b"\n", "request", 1)
            await asyncio.sleep(0)
    output.write(b"what happened\n", "event", 1)
    text = b""
    os.set_blocking(reading, False)
    async with asyncio.timeout(DEADLINE):
        while not text.endswith(b"what happened\n"):
            with suppress(BlockingIOError):
                text += os.read(reading, 100_000)
            await asyncio.sleep(0.001)
    output.finish()
    os.close(reading)
    os.close(writing)


def test_finish_waits_until_the_last_lines_are_read() -> None:
    reading, writing = os.pipe()
    output = LogOutput(writing)
    for _ in range(60):
        output.write(LINE * 4, "request", 4)
    os.read(reading, 1_000_000)
    output.write(LINE, "event", 1)
    output.finish()
    assert len(os.read(reading, 1_000_000)) > 0
    os.close(reading)
    os.close(writing)


def test_finish_returns_soon_if_nobody_reads_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "_AT_END", 0.01)
    reading, writing = os.pipe()
    output = LogOutput(writing)
    for _ in range(60):
        output.write(LINE * 4, "request", 4)
    output.finish()
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize("kind", ["pipe", "disk"])
async def test_lines_to_a_failing_output_are_dropped_and_reported(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The reader has closed the pipe, or writing fails."""
    monkeypatch.setattr(log, "_INTERVAL", 0.01)
    if kind == "pipe":
        reading, writing = os.pipe()
        os.close(reading)
    else:
        writing = os.open("/dev/full", os.O_WRONLY)
    output = LogOutput(writing)
    reported: asyncio.Queue[Counter[str]] = asyncio.Queue()

    def report(dropped: Counter[str]) -> None:
        output.write(LINE, "event", 1)  # also dropped, but not reported, to avoid a loop
        reported.put_nowait(dropped)

    output.report = report
    output.write(LINE * 2, "request", 2)
    assert await reported.get() == {"request": 2}
    output.write(LINE, "event", 1)
    assert await reported.get() == {"event": 1}
    output.finish()
    os.close(writing)


class Disk:
    """A fake `os.write` to a disk with little free space."""

    def __init__(self, room: int) -> None:
        self.room = room
        self._write = os.write

    def write(self, descriptor: int, text: bytes) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = self._write(descriptor, text[: self.room])
        self.room -= written
        return written


async def test_lines_are_buffered_while_the_disk_is_full(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The disk accepts half a line. When it has space again, no line is cut or missing."""
    monkeypatch.setattr(log, "_INTERVAL", 0.01)
    disk = Disk(2500)
    monkeypatch.setattr(os, "write", disk.write)
    reported: asyncio.Queue[Counter[str]] = asyncio.Queue()
    with (tmp_path / "log").open("wb") as file:
        output = LogOutput(file.fileno())
        output.report = reported.put_nowait
        for number in range(5):
            output.write(b"%0999d\n" % number, "request", 1)
        await asyncio.sleep(0.05)  # a failing attempt to write
        disk.room = 100
        await until(lambda: not disk.room)
        disk.room = 10_000_000
        await until(lambda: (tmp_path / "log").stat().st_size == 5000)
        disk.room = 500
        for number in range(5, 2000):
            output.write(b"%0999d\n" % number, "request", 1)
        dropped = (await reported.get())["request"]
        disk.room = 10_000_000
        output.finish()
    lines = [int(line) for line in (tmp_path / "log").read_bytes().split()]
    assert lines == list(range(len(lines)))
    assert len(lines) + dropped == 2000


async def test_a_full_disk_does_not_prevent_the_process_from_exiting(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    disk = Disk(500)
    monkeypatch.setattr(os, "write", disk.write)
    with (tmp_path / "log").open("wb") as file:
        output = LogOutput(file.fileno())
        output.write(LINE, "request", 1)
        output.finish()
    assert (tmp_path / "log").read_bytes() == LINE[:500]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not condition():  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0.01)


async def test_a_single_timer_flushes_the_lines_of_all_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timer that a full batch left behind would flush a later batch too early."""
    timers: list[Callable[[], None]] = []

    def call_later(_: float, flush: Callable[[], None]) -> object:
        timers.append(flush)
        return flush

    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", call_later)
    path = tmp_path / "log"
    with path.open("wb") as file:
        output = LogOutput(file.fileno())
        for _ in range(1000):
            output.write_soon(request_line(exchange(), log.now()))
        assert len(timers) == 1
        assert 200 < path.read_bytes().count(b"\n") < 1000
        timers[0]()
        assert path.read_bytes().count(b"\n") == 1000
        output.write_soon(request_line(exchange(), log.now()))
        assert len(timers) == 2
