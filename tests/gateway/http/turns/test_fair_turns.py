"""Fair turns: one at a time, and networks in turn."""

import asyncio

import pytest

from gateway.http.bounds import FairLock


async def test_networks_have_turns() -> None:
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
    await turns.take("a")  # it is free again


@pytest.mark.parametrize("late", [False, True], ids=["before", "as the turn comes"])
async def test_who_waits_no_more_has_no_turn(late: bool) -> None:
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
