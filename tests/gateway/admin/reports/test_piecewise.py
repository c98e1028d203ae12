"""Responses in pieces: the event loop runs other tasks between the pieces."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from itertools import count

import pytest
from aiohttp import ClientPayloadError, web
from aiohttp.test_utils import TestClient, TestServer

from gateway.admin.piecewise import batches, send_pieces
from gateway.http.cooperative import turns
from gateway.store.state import StateError


def test_batches_have_a_maximum_length() -> None:
    assert list(batches(iter("abcde"), 2)) == [["a", "b"], ["c", "d"], ["e"]]
    assert list(batches("", 2)) == []


async def test_other_tasks_run_between_the_pieces_of_a_response() -> None:
    turns, seen = 0, list[int]()

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    def pieces() -> Iterator[bytes]:
        for _ in range(5):
            seen.append(turns)
            yield b"x"

    async def answer(request: web.Request) -> web.StreamResponse:
        return await send_pieces(request, pieces(), {"Content-Type": "text/plain"})

    app = web.Application()
    app.add_routes([web.get("/", answer)])
    taking = asyncio.create_task(take_turns())
    async with TestClient(TestServer(app)) as client:
        async with client.head("/") as answered:
            assert answered.headers["Content-Type"] == "text/plain"
        assert not seen  # a response to HEAD does not need any piece
        async with client.get("/") as answered:
            assert await answered.read() == b"xxxxx"
    taking.cancel()
    assert len(set(seen)) == 5


async def seen_in_turns(answers: int, pieces: int, *, views: bool) -> Counter[int]:
    """Return the number of pieces made in each iteration of the event loop."""
    turn, seen = 0, Counter[int]()

    async def take_turns() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    def made() -> Iterator[bytes]:
        for _ in range(pieces):
            seen[turn] += 1
            yield b"x"

    async def answer(request: web.Request) -> web.StreamResponse:
        if views:
            return web.Response(body=b"".join([piece async for piece in turns(made())]))
        return await send_pieces(request, made(), {"Content-Type": "text/plain"})

    async def ask() -> None:
        async with client.get("/") as answered:
            assert await answered.read() == b"x" * pieces

    app = web.Application()
    app.add_routes([web.get("/", answer)])
    taking = asyncio.create_task(take_turns())
    async with TestClient(TestServer(app)) as client:
        await asyncio.gather(*(ask() for _ in range(answers)))
    taking.cancel()
    return seen


async def test_concurrent_responses_make_one_piece_per_iteration_of_the_event_loop() -> None:
    """Otherwise, one iteration of the event loop would make a piece for every response."""
    seen = await seen_in_turns(20, 20, views=False)
    assert seen.total() == 400
    assert max(seen.values()) == 1


async def test_concurrent_views_make_one_piece_per_iteration_of_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = count(0, 0.001)
    monkeypatch.setattr("gateway.http.cooperative.perf_counter", lambda: next(clock))
    seen = await seen_in_turns(20, 20, views=True)
    assert seen.total() == 400
    assert max(seen.values()) == 1


async def test_the_connection_is_closed_if_a_piece_fails() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"x"
        raise StateError("the store was lost")

    async def answer(request: web.Request) -> web.StreamResponse:
        return await send_pieces(request, pieces(), {"Content-Type": "text/plain"})

    app = web.Application()
    app.add_routes([web.get("/", answer)])
    async with TestClient(TestServer(app)) as client, client.get("/") as answered:
        assert await answered.content.readany() == b"x"
        with pytest.raises(ClientPayloadError):
            await answered.read()


async def test_other_tasks_run_after_each_millisecond_of_a_view() -> None:
    seen = list[int]()
    taken = 0

    async def take_turns() -> None:
        nonlocal taken
        while True:
            taken += 1
            await asyncio.sleep(0)

    def slow() -> Iterator[int]:
        for number in range(5):
            begun = time.perf_counter()
            while time.perf_counter() - begun < 0.001:
                pass
            yield number

    taking = asyncio.create_task(take_turns())
    async for _ in turns(slow()):
        seen.append(taken)
    taking.cancel()
    assert len(set(seen)) == 5
