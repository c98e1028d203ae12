"""The share of an exchange in the memory budget, from the first byte of a body to its release."""

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest

from gateway.base.errors import FaultError
from gateway.http import bounds
from gateway.http.client.message import ClientExchange
from gateway.proxy.conversion_budget import ConversionShare

PIECE = bytes(60_000)
MOST = 64 * 1024 * 1024


async def pieces(number: int) -> AsyncIterator[bytes]:
    for _ in range(number):
        yield PIECE


async def test_a_gathered_body_holds_its_bytes_until_it_is_released() -> None:
    room = ConversionShare(MOST, 10)
    assert await room.gather(pieces(5)) == PIECE * 5
    assert room.held == 5 * len(PIECE)
    await room.grow(6 * len(PIECE))
    assert room.held == 6 * len(PIECE)
    room.release()
    assert room.held == 0


async def test_a_large_declared_length_is_reserved_before_the_first_piece() -> None:
    room = ConversionShare(MOST, 10)
    await room.grow(7)  # bytes reserved before this body

    async def come() -> AsyncIterator[bytes]:
        assert room.held == 7 + 3 * len(PIECE)
        async for piece in pieces(3):
            yield piece
            assert room.held == 7 + 3 * len(PIECE)

    assert await room.gather(come(), 3 * len(PIECE)) == PIECE * 3
    room.release()


async def test_a_body_that_arrives_slowly_gives_its_bytes_to_a_waiting_body(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounds, "SLOW_SECONDS", 0.01)
    slow, other = ConversionShare(MOST, 10), ConversionShare(MOST, 10)
    await slow.grow(MOST)

    async def stuck() -> AsyncIterator[bytes]:
        yield b""
        await asyncio.get_running_loop().create_future()

    waiting = asyncio.create_task(other.grow(MOST))
    with pytest.raises(FaultError, match="overloaded"):
        await slow.gather(stuck())
    slow.release()
    await waiting
    other.release()


async def test_clients_of_one_network_share_the_share_of_that_network() -> None:
    class Sender:
        def network(self) -> str:
            return "2001:db8::/64"

    room = ConversionShare(MOST, 10, cast(ClientExchange, Sender()))
    assert room.network == "2001:db8::/64"
    assert ConversionShare(MOST, 10).network == ""
