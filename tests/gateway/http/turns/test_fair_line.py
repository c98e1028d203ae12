"""Fair lines: networks have turns, and who has most gives way."""

import asyncio

import pytest

from gateway.http.bounds import FairQueue


class Named:
    """A line in which each place has a name.

    Args:
        names: each begins with its network.
    """

    def __init__(self, *names: str) -> None:
        self.line = FairQueue[None]()
        self.places = {name: self.line.join(name[0]) for name in names}

    def name(self, place: asyncio.Future[None] | None) -> str | None:
        """Return the name of a place."""
        return next((name for name, one in self.places.items() if one is place), None)

    def rest(self) -> list[str | None]:
        """Return those who are left, in turn."""
        return [self.name(self.line.pop()) for _ in range(len(self.line))]


async def test_networks_have_turns() -> None:
    named = Named("a1", "a2", "a3", "b1", "c1", "b2")
    assert named.rest() == ["a1", "b1", "c1", "a2", "b2", "a3"]
    assert named.line.pop() is None


async def test_who_waits_no_more_has_no_turn() -> None:
    named = Named("a1", "a2", "b1")
    named.line.leave("a", named.places["a1"])
    named.places["b1"].cancel()
    assert named.name(named.line.pop()) == "a2"
    assert named.line.pop() is None
    for name in ("a1", "b1"):  # they are gone
        named.line.leave(name[0], named.places[name])
    assert len(named.line) == 0


async def test_who_has_most_gives_way() -> None:
    named = Named("a1", "a2", "a3", "b1")
    assert named.line.displace("b", OSError())
    assert isinstance(named.places["a3"].exception(), OSError)
    assert not named.line.displace("b", OSError())  # it would have as many
    assert named.rest() == ["a1", "b1", "a2"]


@pytest.mark.parametrize("names", [(), ("a1",), ("b1", "b2")])
async def test_nobody_gives_way_to_one_who_has_as_many(names: tuple[str, ...]) -> None:
    named = Named(*names)
    assert not named.line.displace("b", OSError())
    assert named.rest() == list(names)


async def test_one_who_has_left_gives_way() -> None:
    named = Named("a1", "a2")
    named.places["a2"].cancel()
    assert named.line.displace("b", OSError())
    assert named.rest() == ["a1"]
