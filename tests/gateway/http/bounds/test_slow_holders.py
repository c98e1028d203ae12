"""Slow holders: who gives way, to whom, and who is spared."""

from collections.abc import Callable
from functools import partial

from gateway.http.bounds import SlowClients


class Holders:
    """Three slow holders, of whom one is spared."""

    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.gone: list[str] = []
        self.slow = SlowClients(1, lambda: self.waiting)
        self.each: dict[str, Callable[[], None]] = {
            name: partial(self.gone.append, name) for name in ("first", "second", "third")
        }
        for give_way in self.each.values():
            self.slow.add(give_way)


def test_nobody_gives_way_while_nobody_waits() -> None:
    holders = Holders()
    holders.slow.make_way()
    assert holders.gone == []


def test_one_gives_way_to_each_who_waits() -> None:
    holders = Holders()
    holders.waiting.append("x")
    for _ in range(2):  # the place of the first is not free yet
        holders.slow.make_way()
        assert holders.gone == ["first"]
    holders.slow.add(holders.each["first"])  # it is still slow, and on its way out
    holders.slow.remove(holders.each["first"])
    holders.slow.make_way()
    assert holders.gone == ["first", "second"]


def test_some_are_spared() -> None:
    holders = Holders()
    holders.waiting.extend("xyz")
    holders.slow.make_way()
    assert holders.gone == ["first", "second"]


def test_who_is_slow_no_more_stays() -> None:
    holders = Holders()
    holders.slow.remove(holders.each["first"])
    holders.waiting.append("x")
    holders.slow.make_way()
    assert holders.gone == ["second"]


def test_who_becomes_slow_while_others_wait_has_the_oldest_go() -> None:
    holders = Holders()
    holders.waiting.append("x")
    holders.slow.add(partial(holders.gone.append, "fourth"))
    assert holders.gone == ["first"]
