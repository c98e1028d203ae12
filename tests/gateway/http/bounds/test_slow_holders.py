"""Slow clients: which of them are disconnected, when, and how many are tolerated."""

from collections.abc import Callable
from functools import partial

from gateway.http.bounds import SlowClients


class Holders:
    """Three slow clients, one of which is tolerated."""

    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.gone: list[str] = []
        self.slow = SlowClients(1, lambda: self.waiting)
        self.each: dict[str, Callable[[], None]] = {
            name: partial(self.gone.append, name) for name in ("first", "second", "third")
        }
        for give_way in self.each.values():
            self.slow.add(give_way)


def test_no_slow_client_is_disconnected_while_no_request_waits() -> None:
    holders = Holders()
    holders.slow.make_way()
    assert holders.gone == []


def test_one_slow_client_is_disconnected_for_each_waiting_request() -> None:
    holders = Holders()
    holders.waiting.append("x")
    for _ in range(2):  # the first client still occupies its place
        holders.slow.make_way()
        assert holders.gone == ["first"]
    holders.slow.add(holders.each["first"])  # it is still slow, and already being disconnected
    holders.slow.remove(holders.each["first"])
    holders.slow.make_way()
    assert holders.gone == ["first", "second"]


def test_the_tolerated_number_of_slow_clients_stays_connected() -> None:
    holders = Holders()
    holders.waiting.extend("xyz")
    holders.slow.make_way()
    assert holders.gone == ["first", "second"]


def test_a_client_that_is_no_longer_slow_is_not_disconnected() -> None:
    holders = Holders()
    holders.slow.remove(holders.each["first"])
    holders.waiting.append("x")
    holders.slow.make_way()
    assert holders.gone == ["second"]


def test_a_new_slow_client_makes_the_oldest_one_leave_while_requests_wait() -> None:
    holders = Holders()
    holders.waiting.append("x")
    holders.slow.add(partial(holders.gone.append, "fourth"))
    assert holders.gone == ["first"]
