"""The concurrency limiter: its limit, its fair queue, and the release of places on cancellation."""

import asyncio

import pytest

from gateway.base.errors import FaultCode, FaultError
from gateway.http.bounds import ConcurrencyLimiter


async def test_waiting_requests_are_admitted_in_order() -> None:
    limiter = ConcurrencyLimiter(1, 2, 5)
    await limiter.enter("a")
    order: list[str] = []

    async def walk(name: str) -> None:
        await limiter.enter("a")
        order.append(name)

    tasks = [asyncio.create_task(walk(name)) for name in ("first", "second")]
    await asyncio.sleep(0)
    for _ in range(2):
        limiter.leave()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    assert order == ["first", "second"]


async def test_a_full_queue_refuses_a_request_at_once() -> None:
    limiter = ConcurrencyLimiter(1, 0, 5)
    await limiter.enter("a")
    with pytest.raises(FaultError) as refused:
        await limiter.enter("a")
    assert refused.value.fault.code is FaultCode.OVERLOADED
    assert refused.value.fault.fields == ((b"Retry-After", b"1"),)
    limiter.leave()
    await limiter.enter("a")


async def test_a_request_that_waits_too_long_is_refused() -> None:
    limiter = ConcurrencyLimiter(1, 1, 0.01)
    await limiter.enter("a")
    with pytest.raises(FaultError):
        await limiter.enter("a")
    limiter.leave()
    await asyncio.wait_for(limiter.enter("a"), 1)


async def test_networks_take_turns_and_the_largest_one_loses_a_request_when_the_queue_is_full() -> (
    None
):
    limiter = ConcurrencyLimiter(1, 3, 5)
    await limiter.enter("a")
    order: list[str] = []

    async def walk(name: str) -> None:
        await limiter.enter(name[0])
        order.append(name)

    tasks = [asyncio.create_task(walk(name)) for name in ("a1", "a2", "a3", "b1")]
    for _ in range(3):
        await asyncio.sleep(0)
        limiter.leave()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    done = await asyncio.gather(*tasks, return_exceptions=True)
    assert order == ["a1", "b1", "a2"]
    assert isinstance(done[2], FaultError)


@pytest.mark.parametrize("let_in", [False, True], ids=["waiting", "just let in"])
async def test_a_cancelled_wait_occupies_no_place(let_in: bool) -> None:
    limiter = ConcurrencyLimiter(1, 2, 5)
    await limiter.enter("a")
    one = asyncio.create_task(limiter.enter("a"))
    await asyncio.sleep(0)
    if let_in:
        limiter.leave()
    one.cancel()
    await asyncio.gather(one, return_exceptions=True)
    if not let_in:
        limiter.leave()
    await asyncio.wait_for(limiter.enter("a"), 1)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(limiter.enter("a"), 0.01)


def test_half_full_is_true_while_half_of_the_places_are_taken() -> None:
    limiter = ConcurrencyLimiter(3, 0, 5)
    seen = []
    for _ in range(3):
        seen.append(limiter.half_full)
        assert limiter.entered()
    limiter.leave()
    limiter.leave()
    assert [*seen, limiter.half_full] == [False, False, True, False]
