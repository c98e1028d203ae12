"""Requests that have ended are recorded later, each once, in their order, and never too many."""

import asyncio
from collections.abc import Sequence

from gateway.proxy.exchange import Exchange
from gateway.proxy.record_queue import RecordQueue
from tests.gateway.proxy import wires


class Records:
    """A queue, and what it has recorded."""

    def __init__(self) -> None:
        self.seen: list[Exchange] = []
        self.queue = RecordQueue(asyncio.get_running_loop(), self.seen.extend)

    def add(self, count: int) -> list[Exchange]:
        """Let so many requests end; return them."""
        added = [wires.exchange() for _ in range(count)]
        for exchange in added:
            self.queue.add(exchange)
        return added


async def test_all_of_a_turn_are_recorded_at_its_end() -> None:
    records = Records()
    first = records.add(3)
    assert records.seen == []
    await asyncio.sleep(0)
    assert records.seen == first
    second = records.add(1)
    await asyncio.sleep(0)
    assert records.seen == first + second


async def test_no_more_wait_than_are_bounded() -> None:
    records = Records()
    added = records.add(130)
    assert records.seen == added[:128]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert records.seen == added


async def test_what_waits_at_the_end_is_recorded() -> None:
    records = Records()
    added = records.add(5)
    records.queue.flush()
    assert records.seen == added
    records.queue.flush()
    await asyncio.sleep(0)
    assert records.seen == added


async def test_a_request_that_ends_meanwhile_waits_for_the_next_turn() -> None:
    late = wires.exchange()
    seen: list[Exchange] = []

    def record(exchanges: Sequence[Exchange]) -> None:
        seen.extend(exchanges)
        if late not in exchanges:
            queue.add(late)

    queue = RecordQueue(asyncio.get_running_loop(), record)
    early = wires.exchange()
    queue.add(early)
    await asyncio.sleep(0)
    assert seen == [early]
    await asyncio.sleep(0)
    assert seen == [early, late]
