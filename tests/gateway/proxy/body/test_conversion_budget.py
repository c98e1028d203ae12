"""The memory budget of conversions: its limits, and its fair distribution among networks."""

import asyncio

import pytest

from gateway.base.errors import FaultError
from gateway.proxy import conversion_budget
from gateway.proxy.conversion_budget import AT_ONCE, ConversionBudget, ConversionShare

MOST = 64 * 1024 * 1024
LITTLE = 8 * 1024 * 1024


def body(network: str = "192.0.2.1", limit: int = MOST // 4) -> ConversionShare:
    return ConversionShare(limit, 1, _network=network)


def test_bytes_that_a_body_gives_back_can_be_reserved_again() -> None:
    budget, first, second = ConversionBudget(), body(), body()
    assert budget.take(first, MOST)
    assert not budget.take(second, AT_ONCE + 1)
    budget.give_back(first)
    assert budget.take(second, MOST)


def test_a_small_body_has_room_while_large_bodies_use_the_whole_budget() -> None:
    budget, small = ConversionBudget(), body()
    assert budget.take(body(), MOST)
    assert budget.take(small, AT_ONCE)
    assert not budget.take(small, 1)


def test_a_single_body_may_use_as_many_bytes_as_its_limit() -> None:
    budget, large = ConversionBudget(), body(limit=2 * MOST)
    assert budget.take(large, 2 * MOST)
    assert not budget.take(large, 1)


def test_a_network_that_holds_few_bytes_has_room_beside_a_network_that_holds_many() -> None:
    budget, other = ConversionBudget(), body("192.0.2.2")
    assert budget.take(body(), MOST)
    assert not budget.take(body(), LITTLE)
    assert budget.take(other, LITTLE)
    assert not budget.take(other, 1)  # the network now holds many bytes itself
    assert budget.take(body("192.0.2.3"), LITTLE)
    assert not budget.take(body("192.0.2.4"), LITTLE)


async def test_a_waiting_body_gets_its_bytes_when_enough_are_free() -> None:
    budget, first, second, third = ConversionBudget(), body(), body(), body()
    assert budget.take(first, MOST)
    assert budget.take(second, 1)
    waiting = asyncio.create_task(budget.wait(third, MOST))
    await asyncio.sleep(0)
    budget.give_back(first)
    await asyncio.sleep(0)
    assert not waiting.done()  # the budget does not have enough free bytes yet
    budget.give_back(second)
    await waiting
    assert third.held == MOST
    assert not budget.take(second, MOST)


async def test_a_waiting_network_that_holds_fewer_bytes_comes_first() -> None:
    budget = ConversionBudget()
    held = [body(), body(), body("192.0.2.2")]
    for each, size in zip(held, (MOST // 2, MOST // 4, MOST // 4), strict=True):
        assert budget.take(each, size)
    much, less = body(), body("192.0.2.2", MOST)
    order = []

    async def wait(share: ConversionShare) -> None:
        await budget.wait(share, MOST // 4)
        order.append(share)

    tasks = [asyncio.create_task(wait(each)) for each in (much, less)]
    await asyncio.sleep(0)
    budget.give_back(held[1])
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert order == [less]
    assert not budget.take(body(), AT_ONCE + 1)
    budget.give_back(held[2])
    await asyncio.gather(*tasks)
    assert order == [less, much]


async def test_free_bytes_are_kept_for_a_waiting_network_that_holds_fewer() -> None:
    budget, first = ConversionBudget(), body()
    assert budget.take(first, MOST - LITTLE)
    waiting = asyncio.create_task(budget.wait(body("192.0.2.2"), 4 * LITTLE))
    await asyncio.sleep(0)
    assert not budget.take(body(), LITTLE)
    assert budget.take(body(), AT_ONCE)  # a small body does not delay large bodies
    budget.give_back(first)
    await waiting


async def test_a_cancelled_wait_frees_the_way_for_the_next_body() -> None:
    budget = ConversionBudget()
    assert budget.take(body(), MOST - LITTLE)
    first = asyncio.create_task(budget.wait(body("192.0.2.2"), 4 * LITTLE))
    await asyncio.sleep(0)
    second = asyncio.create_task(budget.wait(body(), LITTLE))
    await asyncio.sleep(0)
    first.cancel()
    await second
    assert first.cancelled()


async def test_one_body_fails_if_all_waiting_bodies_would_wait_for_each_other() -> None:
    budget = ConversionBudget()
    bodies = [body(), body("192.0.2.2"), body()]
    for each, size in zip(bodies, (MOST // 2, MOST // 4, MOST // 4), strict=True):
        assert budget.take(each, size)
    tasks = [asyncio.create_task(budget.wait(each, MOST // 4)) for each in bodies]
    with pytest.raises(FaultError, match="overloaded"):
        await tasks[2]  # the last waiting body of the network that holds most bytes
    budget.give_back(bodies[2])
    await tasks[1]
    budget.give_back(bodies[1])
    await tasks[0]


async def test_a_body_fails_if_it_waits_too_long_for_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion_budget, "PATIENCE", 0.01)
    budget, first, second = ConversionBudget(), body(), body()
    assert budget.take(first, MOST)
    with pytest.raises(FaultError, match="overloaded"):
        await budget.wait(second, MOST)
    budget.give_back(first)
    assert budget.take(second, MOST)
