"""The asker: nobody in particular unless it is said."""

from gateway.core.asker import ANYONE, Asker
from gateway.core.orders import NO_ORDERS


def test_anyone_is_nobody_in_particular() -> None:
    assert Asker() == ANYONE
    assert (ANYONE.client, ANYONE.now, ANYONE.orders) == ("", 0.0, NO_ORDERS)


def test_nothing_happens_to_anyone_by_chance() -> None:
    assert not ANYONE.chance < 1.0
