"""The gate: its bound, its line, and nobody lost on the way."""

import asyncio

import pytest

from gateway.core.errors import Code, Failed
from gateway.wire.gate import Gate


async def test_the_line_is_served_in_order() -> None:
    gate = Gate(1, 2, 5)
    await gate.enter()
    order: list[str] = []

    async def walk(name: str) -> None:
        await gate.enter()
        order.append(name)

    tasks = [asyncio.create_task(walk(name)) for name in ("first", "second")]
    await asyncio.sleep(0)
    for _ in range(2):
        gate.leave()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    assert order == ["first", "second"]


async def test_a_full_line_refuses_at_once() -> None:
    gate = Gate(1, 0, 5)
    await gate.enter()
    with pytest.raises(Failed) as refused:
        await gate.enter()
    assert refused.value.fault.code is Code.OVERLOADED
    assert refused.value.fault.fields == ((b"Retry-After", b"1"),)
    gate.leave()
    await gate.enter()


async def test_patience_ends() -> None:
    gate = Gate(1, 1, 0.01)
    await gate.enter()
    with pytest.raises(Failed):
        await gate.enter()
    gate.leave()
    await asyncio.wait_for(gate.enter(), 1)


@pytest.mark.parametrize("let_in", [False, True], ids=["waiting", "just let in"])
async def test_who_gives_up_leaves_no_place_taken(let_in: bool) -> None:
    gate = Gate(1, 2, 5)
    await gate.enter()
    one = asyncio.create_task(gate.enter())
    await asyncio.sleep(0)
    if let_in:
        gate.leave()
    one.cancel()
    await asyncio.gather(one, return_exceptions=True)
    if not let_in:
        gate.leave()
    await asyncio.wait_for(gate.enter(), 1)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(gate.enter(), 0.01)


def test_half_full() -> None:
    gate = Gate(3, 0, 5)
    seen = []
    for _ in range(3):
        seen.append(gate.half_full)
        assert gate.entered()
    gate.leave()
    gate.leave()
    assert [*seen, gate.half_full] == [False, False, True, False]
