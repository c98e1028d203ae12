"""A body that arrives slowly is aborted if other requests wait for the resource that it holds."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.base.errors import FaultError
from gateway.http import bounds
from gateway.http.bounds import SLOW_BYTES, SlowBody, SlowClients, overloaded


async def trickle(piece: bytes) -> AsyncIterator[bytes]:
    while True:
        await asyncio.sleep(0.002)
        yield piece


async def test_a_body_that_arrives_byte_by_byte_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "SLOW_SECONDS", 0.02)
    body = SlowBody(trickle(b"x"), SlowClients(0, lambda: ["someone"]), overloaded)
    assert await anext(body) == b"x"
    with pytest.raises(FaultError, match="overloaded"):
        _ = [piece async for piece in body]


async def test_a_fast_body_restarts_the_time_limit_with_each_share_of_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounds, "SLOW_SECONDS", 60.0)
    body = SlowBody(trickle(b"x" * (SLOW_BYTES // 2)), SlowClients(0, list), overloaded)
    await anext(body)
    assert body._left < 60
    await anext(body)
    assert body._left == 60


async def test_a_slow_body_continues_while_no_request_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounds, "SLOW_SECONDS", 0.001)
    body = SlowBody(trickle(b"x"), SlowClients(0, list), overloaded)
    assert [await anext(body) for _ in range(5)] == [b"x"] * 5


async def test_time_spent_processing_a_piece_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounds, "SLOW_SECONDS", 30.0)
    body = SlowBody(trickle(b"x"), SlowClients(0, list), overloaded)
    await anext(body)
    before = body._left
    await asyncio.sleep(0.05)
    assert body._left == before > 29
