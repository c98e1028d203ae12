"""The fair queue: networks take turns, and the network with most requests can be displaced."""

import asyncio

import pytest

from gateway.http.bounds import FairQueue


class Named:
    """A queue whose requests have names; the first letter is the network."""

    def __init__(self, *names: str) -> None:
        self.line = FairQueue[None]()
        self.places = {name: self.line.join(name[0]) for name in names}

    def name(self, place: asyncio.Future[None] | None) -> str | None:
        return next((name for name, one in self.places.items() if one is place), None)

    def rest(self) -> list[str | None]:
        return [self.name(self.line.pop()) for _ in range(len(self.line))]


async def test_networks_take_turns() -> None:
    named = Named("a1", "a2", "a3", "b1", "c1", "b2")
    assert named.rest() == ["a1", "b1", "c1", "a2", "b2", "a3"]
    assert named.line.pop() is None


async def test_a_request_that_no_longer_waits_is_skipped() -> None:
    named = Named("a1", "a2", "b1")
    named.line.leave("a", named.places["a1"])
    named.places["b1"].cancel()
    assert named.name(named.line.pop()) == "a2"
    assert named.line.pop() is None
    for name in ("a1", "b1"):  # both have left already
        named.line.leave(name[0], named.places[name])
    assert len(named.line) == 0


async def test_the_network_with_most_requests_is_displaced() -> None:
    named = Named("a1", "a2", "a3", "b1")
    assert named.line.displace("b", OSError())
    assert isinstance(named.places["a3"].exception(), OSError)
    assert not named.line.displace("b", OSError())  # "a" and "b" would have the same number
    assert named.rest() == ["a1", "b1", "a2"]


@pytest.mark.parametrize("names", [(), ("a1",), ("b1", "b2")])
async def test_no_request_is_displaced_for_a_network_with_the_same_number(
    names: tuple[str, ...],
) -> None:
    named = Named(*names)
    assert not named.line.displace("b", OSError())
    assert named.rest() == list(names)


async def test_a_cancelled_request_can_be_displaced() -> None:
    named = Named("a1", "a2")
    named.places["a2"].cancel()
    assert named.line.displace("b", OSError())
    assert named.rest() == ["a1"]
