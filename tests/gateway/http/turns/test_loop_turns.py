"""The cooperative runner: expensive calls leave iterations of the event loop to others."""

import asyncio

import pytest

from gateway.base.errors import FaultError
from gateway.http import cooperative
from gateway.http.cooperative import CooperativeRunner
from gateway.proxy.conversion_budget import overloaded


class Costly:
    """Calls that each take some fake seconds, and the event loop iteration in which each ran."""

    def __init__(self, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1.0
        self.made: list[tuple[str, int]] = []
        self.turns = CooperativeRunner(60.0, overloaded)
        self._seconds = seconds
        self._turn = 0
        monkeypatch.setattr(cooperative, "perf_counter", lambda: self.now)

    async def call(self, network: str) -> None:
        def call() -> None:
            self.now += self._seconds
            self.made.append((network, self._turn))

        await self.turns.run(call, lambda: network)

    async def all(self, networks: str) -> list[tuple[str, int]]:
        calls = asyncio.gather(*map(self.call, networks))
        while not calls.done():
            self._turn += 1
            await asyncio.sleep(0)
        return self.made


async def test_each_expensive_call_gets_its_own_event_loop_iteration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = await Costly(0.01, monkeypatch).all("aaaaa")
    assert len({turn for _, turn in made}) == 5


async def test_cheap_calls_share_an_event_loop_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    made = await Costly(0.0001, monkeypatch).all("aaaaa")
    assert len({turn for _, turn in made}) == 1


async def test_networks_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    made = await Costly(0.01, monkeypatch).all("aaaab")
    assert [network for network, _ in made] == ["a", "a", "b", "a", "a"]


async def test_a_failing_call_releases_the_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    costly = Costly(0.01, monkeypatch)

    def fail() -> None:
        costly.now += 1.0
        raise ValueError("no JSON")

    with pytest.raises(ValueError, match="no JSON"):
        await costly.turns.run(fail, lambda: "a")
    assert [network for network, _ in await costly.all("bb")] == ["b", "b"]


async def test_a_call_that_waits_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    costly = Costly(0.01, monkeypatch)
    costly.turns = turns = CooperativeRunner(0.0, overloaded)
    await costly.call("a")
    with pytest.raises(FaultError, match="overloaded"):
        await turns.run(lambda: pytest.fail("it was called"), lambda: "a")
    await asyncio.sleep(0)
    await costly.call("a")
