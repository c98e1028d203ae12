"""The fair lock: one holder at a time; networks take turns."""

import asyncio

import pytest

from gateway.http.bounds import FairLock


async def test_networks_take_turns() -> None:
    turns, order = FairLock(), []

    async def take(network: str, name: str) -> None:
        await turns.take(network)
        order.append(name)
        turns.end()

    await turns.take("a")
    many = [asyncio.create_task(take("a", f"a{number}")) for number in range(3)]
    await asyncio.sleep(0)
    one = asyncio.create_task(take("b", "b"))
    await asyncio.sleep(0)
    turns.end()
    await asyncio.gather(*many, one)
    assert order == ["a0", "b", "a1", "a2"]
    await turns.take("a")  # the lock is free again


@pytest.mark.parametrize("late", [False, True], ids=["before", "as the turn comes"])
async def test_a_cancelled_wait_is_skipped(late: bool) -> None:
    turns = FairLock()
    await turns.take("a")
    gone = asyncio.create_task(turns.take("b"))
    next_one = asyncio.create_task(turns.take("c"))
    await asyncio.sleep(0)
    if late:
        turns.end()
        gone.cancel()
    else:
        gone.cancel()
        await asyncio.sleep(0)
        turns.end()
    await next_one
    assert gone.cancelled()
