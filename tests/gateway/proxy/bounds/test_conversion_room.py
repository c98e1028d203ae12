"""The room for conversions: all bodies together hold no more than the budget, and give it back."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from gateway.core.errors import FaultError
from gateway.proxy.bounds import conversion_room
from gateway.proxy.bounds.conversion_room import AT_ONCE, ConversionRoom

MOST = 64 * 1024 * 1024

Rooms = Callable[..., ConversionRoom]


@pytest.fixture
def room() -> Iterator[Rooms]:
    """Return a function that makes rooms, which are released in the end."""
    made: list[ConversionRoom] = []

    def make(limit: int = MOST // 4) -> ConversionRoom:
        made.append(ConversionRoom(limit, 10))
        return made[-1]

    yield make
    for each in made:
        each.release()


def test_what_is_held_is_given_back(room: Rooms) -> None:
    first, second = room(), room()
    assert first.take(MOST)
    assert not second.take(AT_ONCE + 1)
    first.release()
    assert second.take(MOST)


def test_small_bodies_have_room_beside_large_ones(room: Rooms) -> None:
    large, small = room(), room()
    assert large.take(MOST)
    assert small.take(AT_ONCE)
    assert not small.take(1)


def test_a_single_body_may_be_as_large_as_the_limit(room: Rooms) -> None:
    large = room(2 * MOST)
    assert large.take(2 * MOST)
    assert not large.take(1)


async def test_waiting_for_room(room: Rooms) -> None:
    first, second, third = room(), room(), room()
    assert first.take(MOST)
    assert second.take(1)
    waiting = asyncio.create_task(third.wait(MOST))
    await asyncio.sleep(0)
    first.release()
    await asyncio.sleep(0)
    assert not waiting.done()  # there is not enough yet
    second.release()
    await waiting
    assert not second.take(MOST)


async def test_waiting_in_vain(room: Rooms, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion_room, "_PATIENCE", 0.01)
    first, second = room(), room()
    assert first.take(MOST)
    with pytest.raises(FaultError, match="overloaded"):
        await second.wait(MOST)
    first.release()
    assert second.take(MOST)
