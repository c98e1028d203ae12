"""Buffered bytes in tunnels, and which tunnel is closed if there are too many."""

import asyncio

from gateway.http.bounds import ByteBudget, pass_on


class Tunnel:
    """A tunnel whose receivers read buffered bytes only when the test calls `take`.

    Attributes:
        closed: how often the tunnel was closed.
    """

    def __init__(self, budget: ByteBudget) -> None:
        self.closed = 0
        self._budget = budget
        self._taken = asyncio.Event()
        self._directions: list[asyncio.Task[None]] = []

    async def pass_on(self, *sizes: int) -> None:
        pieces = [*map(bytes, sizes), b""]

        async def read() -> bytes:
            return pieces.pop(0)

        async def write(_: bytes) -> None:
            await self._taken.wait()

        task = asyncio.create_task(pass_on(self._budget, read, write, self.give_way))
        self._directions.append(task)
        await asyncio.sleep(0)

    async def take(self) -> None:
        self._taken.set()
        await asyncio.gather(*self._directions)

    def give_way(self) -> None:
        self.closed += 1
        for task in self._directions:
            task.cancel()


async def test_the_tunnel_that_has_waited_longest_is_closed_above_the_budget() -> None:
    room = ByteBudget(10)
    first, second, third, fourth = [Tunnel(room) for _ in range(4)]
    for each in (first, second):
        await each.pass_on(5)
    assert (first.closed, second.closed) == (0, 0)
    await third.pass_on(5)
    assert (first.closed, second.closed, third.closed) == (1, 0, 0)
    await fourth.pass_on(10)
    assert (second.closed, third.closed, fourth.closed) == (1, 1, 0)
    await fourth.take()


async def test_received_bytes_free_the_budget() -> None:
    room = ByteBudget(10)
    first, second = Tunnel(room), Tunnel(room)
    await first.pass_on(10, 10)
    await first.take()
    await second.pass_on(5)
    await second.pass_on(5)
    assert (first.closed, second.closed) == (0, 0)
    await second.take()


async def test_a_single_piece_may_exceed_the_budget() -> None:
    alone = Tunnel(ByteBudget(10))
    await alone.pass_on(11)
    assert not alone.closed
    await alone.take()
