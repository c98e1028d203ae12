"""Copies of bodies: they stay within a memory budget, and do not affect the forwarded bodies."""

import tracemalloc
from collections.abc import AsyncIterator, Callable

import pytest

from gateway.base.headers import HeaderFields
from gateway.http.bounds import SlowClients
from gateway.proxy.body_capture import CaptureBudget, CapturedBody, CapturingResponse


class Arriving:
    status = 200
    reason = b"OK"
    sized = True
    switched = False
    target = "here"
    address: str | None = None
    holders: SlowClients | None = None

    def __init__(self, *pieces: bytes) -> None:
        self.fields: HeaderFields = [(b"A", b"b")]
        self.pieces = list(pieces)
        self.abandoned = False
        self.written = b""
        self.trailers: HeaderFields = [(b"T", b"u")]

    @property
    def complete(self) -> bool:
        return not self.pieces

    async def read(self) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""

    def unread(self, data: bytes) -> None:
        self.pieces.insert(0, data)

    async def write(self, data: bytes) -> None:
        self.written += data

    def release(self) -> None:
        raise AssertionError

    def abandon(self) -> None:
        self.abandoned = True


@pytest.fixture
def budget() -> CaptureBudget:
    return CaptureBudget(10)


def left(budget: CaptureBudget) -> int:
    return next(size for size in range(100, -1, -1) if budget.take(size))


def test_a_copy_contains_all_pieces_and_gives_its_bytes_back_when_dropped(
    budget: CaptureBudget,
) -> None:
    copy = CapturedBody(budget, 6)
    for piece in (b"abc", b"", b"def"):
        copy.keep(piece)
    assert (copy.whole(), copy.lost) == (b"abcdef", None)
    copy.drop("done")
    assert (copy.whole(), copy.lost, left(budget)) == (b"", "done", 10)


@pytest.mark.parametrize(("most", "lost"), [(6, "large"), (50, "memory")])
def test_a_copy_over_a_limit_is_discarded_completely(
    budget: CaptureBudget, most: int, lost: str
) -> None:
    copy = CapturedBody(budget, most)
    for piece in (b"abcdef", b"ghijkl", b"m"):
        copy.keep(piece)
    assert (copy.whole(), copy.lost) == (b"", lost)
    copy.drop("done")
    assert (copy.lost, left(budget)) == (lost, 10)


def test_a_copy_of_many_small_pieces_uses_little_more_memory_than_their_bytes() -> None:
    copy = CapturedBody(CaptureBudget(100_000), 100_000)
    tracemalloc.start()
    try:
        for number in range(10_000):
            copy.keep(b"%02d" % number)
        assert tracemalloc.get_traced_memory()[0] < 70_000
    finally:
        tracemalloc.stop()


def test_several_copies_share_one_budget(budget: CaptureBudget) -> None:
    one, other = CapturedBody(budget, 8), CapturedBody(budget, 8)
    one.keep(b"abcdefgh")
    other.keep(b"abc")
    assert (one.lost, other.lost) == (None, "memory")
    one.drop("done")
    assert left(budget) == 10


async def test_a_request_body_is_forwarded_even_if_its_copy_is_discarded(
    budget: CaptureBudget,
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"abc"
        yield b"def"

    copy = CapturedBody(budget, 4)
    assert [piece async for piece in copy.of(pieces())] == [b"abc", b"def"]
    assert copy.lost == "large"


def watched(
    budget: CaptureBudget, *pieces: bytes
) -> tuple[Arriving, CapturedBody, CapturingResponse, list[bool]]:
    ends: list[bool] = []
    over: Callable[[bool], None] = ends.append
    response, copy = Arriving(*pieces), CapturedBody(budget, 8)
    return response, copy, CapturingResponse(response, copy, over), ends


async def test_a_response_is_forwarded_unchanged_and_copied(budget: CaptureBudget) -> None:
    response, copy, teed, ends = watched(budget, b"abc", b"def")
    assert (teed.status, teed.reason, teed.fields) == (200, b"OK", [(b"A", b"b")])
    assert (teed.sized, teed.switched, teed.target, teed.complete) == (True, False, "here", False)
    assert [await teed.read(), await teed.read(), await teed.read()] == [b"abc", b"def", b""]
    await teed.write(b"x")
    assert teed.trailers == [(b"T", b"u")]
    teed.abandon()
    assert (response.abandoned, response.written) == (True, b"x")
    assert (copy.whole(), ends) == (b"abcdef", [True])


async def test_bytes_that_are_given_back_are_copied_only_once(budget: CaptureBudget) -> None:
    _, copy, teed, _ = watched(budget, b"abc", b"def")
    begun = await teed.read() + await teed.read()
    teed.unread(begun)
    assert [await teed.read(), await teed.read()] == [b"abcdef", b""]
    assert copy.whole() == b"abcdef"


async def test_a_response_that_is_abandoned_early_is_reported_as_incomplete(
    budget: CaptureBudget,
) -> None:
    _, _, teed, ends = watched(budget, b"abc", b"def")
    await teed.read()
    teed.abandon()
    assert ends == [False]
