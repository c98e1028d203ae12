"""The gate: its bound, its line, and nobody lost on the way."""

import asyncio
from collections.abc import Callable
from functools import partial

import pytest

from gateway.core.errors import FaultCode, FaultError
from gateway.proxy.upstream.limiter import ConcurrencyLimiter, SlowHolders


async def test_the_line_is_served_in_order() -> None:
    limiter = ConcurrencyLimiter(1, 2, 5)
    await limiter.enter()
    order: list[str] = []

    async def walk(name: str) -> None:
        await limiter.enter()
        order.append(name)

    tasks = [asyncio.create_task(walk(name)) for name in ("first", "second")]
    await asyncio.sleep(0)
    for _ in range(2):
        limiter.leave()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    assert order == ["first", "second"]


async def test_a_full_line_refuses_at_once() -> None:
    limiter = ConcurrencyLimiter(1, 0, 5)
    await limiter.enter()
    with pytest.raises(FaultError) as refused:
        await limiter.enter()
    assert refused.value.fault.code is FaultCode.OVERLOADED
    assert refused.value.fault.fields == ((b"Retry-After", b"1"),)
    limiter.leave()
    await limiter.enter()


async def test_patience_ends() -> None:
    limiter = ConcurrencyLimiter(1, 1, 0.01)
    await limiter.enter()
    with pytest.raises(FaultError):
        await limiter.enter()
    limiter.leave()
    await asyncio.wait_for(limiter.enter(), 1)


@pytest.mark.parametrize("let_in", [False, True], ids=["waiting", "just let in"])
async def test_who_gives_up_leaves_no_place_taken(let_in: bool) -> None:
    limiter = ConcurrencyLimiter(1, 2, 5)
    await limiter.enter()
    one = asyncio.create_task(limiter.enter())
    await asyncio.sleep(0)
    if let_in:
        limiter.leave()
    one.cancel()
    await asyncio.gather(one, return_exceptions=True)
    if not let_in:
        limiter.leave()
    await asyncio.wait_for(limiter.enter(), 1)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(limiter.enter(), 0.01)


def test_half_full() -> None:
    limiter = ConcurrencyLimiter(3, 0, 5)
    seen = []
    for _ in range(3):
        seen.append(limiter.half_full)
        assert limiter.entered()
    limiter.leave()
    limiter.leave()
    assert [*seen, limiter.half_full] == [False, False, True, False]


class Holders:
    """Three slow holders, of whom one is spared."""

    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.gone: list[str] = []
        self.slow = SlowHolders(1, lambda: self.waiting)
        self.each: dict[str, Callable[[], None]] = {
            name: partial(self.gone.append, name) for name in ("first", "second", "third")
        }
        for give_way in self.each.values():
            self.slow.add(give_way)


def test_nobody_gives_way_while_nobody_waits() -> None:
    holders = Holders()
    holders.slow.make_way()
    assert holders.gone == []


def test_one_gives_way_to_each_who_waits() -> None:
    holders = Holders()
    holders.waiting.append("x")
    for _ in range(2):  # the place of the first is not free yet
        holders.slow.make_way()
        assert holders.gone == ["first"]
    holders.slow.add(holders.each["first"])  # it is still slow, and on its way out
    holders.slow.remove(holders.each["first"])
    holders.slow.make_way()
    assert holders.gone == ["first", "second"]


def test_some_are_spared() -> None:
    holders = Holders()
    holders.waiting.extend("xyz")
    holders.slow.make_way()
    assert holders.gone == ["first", "second"]


def test_who_is_slow_no_more_stays() -> None:
    holders = Holders()
    holders.slow.remove(holders.each["first"])
    holders.waiting.append("x")
    holders.slow.make_way()
    assert holders.gone == ["second"]


def test_who_becomes_slow_while_others_wait_has_the_oldest_go() -> None:
    holders = Holders()
    holders.waiting.append("x")
    holders.slow.add(partial(holders.gone.append, "fourth"))
    assert holders.gone == ["first"]
