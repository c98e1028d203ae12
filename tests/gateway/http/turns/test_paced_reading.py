"""Paced reading: costly bytes have several turns of the loop, in order, and others theirs."""

import asyncio

from gateway.http.transport import SLICE, PacedReader


class Wire(asyncio.Transport):
    """Notes how reading is paused and resumed."""

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
    """Notes the slices, and whether more had come."""

    def __init__(self, *, costly: bool) -> None:
        self.wire = Wire()
        self.taken: list[tuple[bytes, bool]] = []
        self.reading = PacedReader(asyncio.get_running_loop(), self.take, lambda: costly)
        self.reading.transport = self.wire

    def take(self, data: bytes) -> None:
        self.taken.append((data, self.reading.more))


A, B, C = (letter * SLICE for letter in (b"a", b"b", b"c"))


async def test_what_costs_little_is_handed_on_at_once() -> None:
    reader = Reader(costly=False)
    reader.reading.feed(A + B + b"b" + C)
    reader.reading.feed(A + B + C)
    assert reader.taken == [(A, True), (B + b"b" + C[1:], True), (b"c", False), (A + B + C, False)]
    assert reader.wire.flow == []


async def test_what_costs_much_has_a_turn_a_slice() -> None:
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


async def test_the_reader_pauses_as_well() -> None:
    reader = Reader(costly=True)
    reader.reading.feed(A + B)
    reader.reading.pause()
    await asyncio.sleep(0)
    assert [piece for piece, _ in reader.taken] == [A, B]
    assert "resume" not in reader.wire.flow
    reader.reading.resume()
    assert reader.wire.flow[-1] == "resume"


async def test_an_end_meanwhile() -> None:
    reader = Reader(costly=True)
    reader.reading.feed(A + B)
    reader.wire.closing = True
    await asyncio.sleep(0)
    assert reader.wire.flow == ["pause"]
    reader.reading.transport = None
    reader.reading.pause()
    reader.reading.resume()
    assert reader.wire.flow == ["pause"]
