"""Paced reading: expensive input is parsed over several event loop iterations, in order."""

import asyncio

from gateway.http.transport import SLICE, PacedReader


class Wire(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.flow: list[str] = []
        self.closing = False

    def pause_reading(self) -> None:
        self.flow.append("pause")

    def resume_reading(self) -> None:
        self.flow.append("resume")

    def is_closing(self) -> bool:
        return self.closing


class Reader:
    def __init__(self, *, costly: bool) -> None:
        self.wire = Wire()
        self.taken: list[tuple[bytes, bool]] = []
        self.reading = PacedReader(asyncio.get_running_loop(), self.take, lambda: costly)
        self.reading.transport = self.wire

    def take(self, data: bytes) -> None:
        self.taken.append((data, self.reading.more))


A, B, C = (letter * SLICE for letter in (b"a", b"b", b"c"))


async def test_cheap_slices_are_parsed_at_once() -> None:
    reader = Reader(costly=False)
    reader.reading.feed(A + B + b"b" + C)
    reader.reading.feed(A + B + C)
    assert reader.taken == [(A, True), (B + b"b" + C[1:], True), (b"c", False), (A + B + C, False)]
    assert reader.wire.flow == []


async def test_each_expensive_slice_gets_its_own_event_loop_iteration() -> None:
    reader = Reader(costly=True)
    reader.reading.feed(A + B)
    reader.reading.feed(C + b"d")
    assert reader.taken == [(A, True)]
    assert reader.wire.flow == ["pause", "pause"]
    for _ in range(3):
        assert "resume" not in reader.wire.flow
        await asyncio.sleep(0)
    assert reader.taken == [(A, True), (B, True), (C, True), (b"d", False)]
    assert reader.wire.flow[-1] == "resume"


async def test_a_pause_by_the_reader_lasts_until_it_resumes() -> None:
    reader = Reader(costly=True)
    reader.reading.feed(A + B)
    reader.reading.pause()
    await asyncio.sleep(0)
    assert [piece for piece, _ in reader.taken] == [A, B]
    assert "resume" not in reader.wire.flow
    reader.reading.resume()
    assert reader.wire.flow[-1] == "resume"


async def test_a_connection_that_closes_in_between_is_neither_paused_nor_resumed() -> None:
    reader = Reader(costly=True)
    reader.reading.feed(A + B)
    reader.wire.closing = True
    await asyncio.sleep(0)
    assert reader.wire.flow == ["pause"]
    reader.reading.transport = None
    reader.reading.pause()
    reader.reading.resume()
    assert reader.wire.flow == ["pause"]
