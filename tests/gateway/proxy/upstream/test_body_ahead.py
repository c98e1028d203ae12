"""Small request bodies that are read before their service is asked."""

from collections.abc import AsyncIterator

import pytest

from gateway.core.headers import HeaderFields
from gateway.proxy.upstream.body_ahead import ArrivingBody, BodiesAhead
from gateway.proxy.upstream.upstream import UpstreamRequest


async def comes(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def whole(body: bytes | AsyncIterator[bytes] | None) -> bytes:
    assert isinstance(body, AsyncIterator)
    pieces = [piece async for piece in body]
    assert all(pieces)
    return b"".join(pieces)


async def test_a_body_of_a_length_is_whole() -> None:
    request = UpstreamRequest("POST", "/", [], body=comes(b"ab", b"c"), length=3)
    assert (await BodiesAhead().read(request)).body == b"abc"


@pytest.mark.parametrize("pieces", [[], [b"ab", b"c"], [b"a" * 60_000, b"b" * 60_000, b"c"]])
async def test_chunks_stay_chunks(pieces: list[bytes]) -> None:
    """However much of them is read ahead."""
    request = UpstreamRequest("POST", "/", [], body=comes(*pieces))
    ahead = await BodiesAhead().read(request)
    assert ahead.length is None
    assert await whole(ahead.body) == b"".join(pieces)


async def test_what_is_large_stays_as_it_is() -> None:
    request = UpstreamRequest("POST", "/", [], body=comes(), length=70_000)
    assert await BodiesAhead().read(request) is request


async def test_who_waits_for_100_is_told() -> None:
    told: list[int] = []

    def inform(status: int, _: HeaderFields) -> None:
        told.append(status)

    fields = [(b"Expect", b"100-continue"), (b"X-A", b"1")]
    request = UpstreamRequest("POST", "/", fields, body=comes(b"a"), length=1, informational=inform)
    ahead = await BodiesAhead().read(request)
    assert (told, ahead.fields) == ([100], [(b"X-A", b"1")])


async def test_the_budget() -> None:
    """As many as have room are read at a time; what is over makes room again."""
    bodies = BodiesAhead()
    bodies._held = 16 * 1024 * 1024
    request = UpstreamRequest("POST", "/", [], body=comes(b"a"), length=1)
    assert await bodies.read(request) is request
    bodies._held = 0
    assert (await bodies.read(request)).body == b"a"
    assert bodies._held == 0


async def test_an_arriving_body_leaves_its_place_once() -> None:
    left: list[str] = []
    body = ArrivingBody(comes(b"a", b"b"), lambda: left.append("left"))
    assert await anext(body) == b"a"
    assert left == []
    assert [piece async for piece in body] == [b"b"]
    assert left == ["left"]
    body.leave()
    assert left == ["left"]
