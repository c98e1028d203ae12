"""Small request bodies that are read completely before the request takes a place."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator

import pytest

from gateway.base.errors import FaultError
from gateway.base.headers import HeaderFields
from gateway.http import bounds
from gateway.http.bounds import ConcurrencyLimiter
from gateway.http.upstream.body_ahead import ArrivingBody, BodyReadAhead
from gateway.http.upstream.upstream import UpstreamRequest
from tests.gateway.talk import soon


async def comes(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def whole(body: bytes | AsyncIterator[bytes] | None) -> bytes:
    assert isinstance(body, AsyncIterator)
    pieces = [piece async for piece in body]
    assert all(pieces)
    return b"".join(pieces)


async def test_a_body_with_a_length_is_read_completely() -> None:
    request = UpstreamRequest("POST", "/", [], body=comes(b"ab", b"c"), length=3)
    assert (await BodyReadAhead().read(request)).body == b"abc"


@pytest.mark.parametrize("pieces", [[], [b"ab", b"c"], [b"a" * 60_000, b"b" * 60_000, b"c"]])
async def test_a_chunked_body_stays_chunked(pieces: list[bytes]) -> None:
    request = UpstreamRequest("POST", "/", [], body=comes(*pieces))
    ahead = await BodyReadAhead().read(request)
    assert ahead.length is None
    assert await whole(ahead.body) == b"".join(pieces)


async def test_a_large_body_is_not_read_ahead() -> None:
    request = UpstreamRequest("POST", "/", [], body=comes(), length=70_000)
    assert await BodyReadAhead().read(request) is request


async def test_a_client_that_waits_for_100_continue_gets_it() -> None:
    told: list[int] = []

    def inform(status: int, _: HeaderFields) -> None:
        told.append(status)

    fields = [(b"Expect", b"100-continue"), (b"X-A", b"1")]
    request = UpstreamRequest("POST", "/", fields, body=comes(b"a"), length=1, informational=inform)
    ahead = await BodyReadAhead().read(request)
    assert (told, ahead.fields) == ([100], [(b"X-A", b"1")])


async def test_a_body_beyond_the_memory_budget_is_streamed() -> None:
    bodies = BodyReadAhead()
    bodies._held = 16 * 1024 * 1024
    request = UpstreamRequest("POST", "/", [], body=comes(b"a", b"b"), length=2)
    assert await whole((await bodies.read(request)).body) == b"ab"
    assert bodies._held == 16 * 1024 * 1024
    bodies._held -= 2
    request = UpstreamRequest("POST", "/", [], body=comes(b"a", b"b"), length=2)
    assert (await bodies.read(request)).body == b"ab"
    assert bodies._held == 16 * 1024 * 1024 - 2


@pytest.mark.parametrize("piece", [b"", b"%02d"])
async def test_small_pieces_take_no_more_memory_than_their_bytes(piece: bytes) -> None:
    """The budget counts bytes, but an object with two bytes would take forty."""

    async def comes_slowly() -> AsyncIterator[bytes]:
        for number in range(10_000):
            await asyncio.sleep(0)
            yield piece % number if piece else piece
        held.append(tracemalloc.get_traced_memory()[0])

    held: list[int] = []
    tracemalloc.start()
    try:
        await BodyReadAhead().read(UpstreamRequest("POST", "/", [], body=comes_slowly()))
    finally:
        tracemalloc.stop()
    assert held[0] < 70_000


async def test_a_slow_body_is_aborted_for_one_beyond_the_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounds, "SLOW_SECONDS", 0.01)
    bodies = BodyReadAhead()

    async def stuck() -> AsyncIterator[bytes]:
        yield b"a"
        await asyncio.get_running_loop().create_future()

    slow = UpstreamRequest("POST", "/", [], body=stuck(), length=2)
    reading = asyncio.create_task(bodies.read(slow))
    await soon(lambda: bodies._slow._slow)
    bodies._held += 16 * 1024 * 1024 - 1
    await bodies.read(UpstreamRequest("POST", "/", [], body=comes(b"b"), length=1))
    with pytest.raises(FaultError, match="overloaded"):
        await reading
    assert bodies._held == 16 * 1024 * 1024 - 1


async def test_an_arriving_body_releases_its_place_once() -> None:
    places = ConcurrencyLimiter(1, 1, 1.0)
    assert places.entered()
    body = ArrivingBody(comes(b"a", b"b"), places.slow, places.leave)
    assert await anext(body) == b"a"
    assert not places.entered()
    assert [piece async for piece in body] == [b"b"]
    assert places.entered()
    body.leave()
    assert not places.entered()
