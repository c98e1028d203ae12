"""Orders: none to begin with."""

from gateway.core.orders import NO_ORDERS, Orders


def test_nothing_is_ordered_to_begin_with() -> None:
    assert Orders(frozenset(), {}) == NO_ORDERS


def test_orders_are_of_a_version_of_an_api() -> None:
    orders = Orders(frozenset({("person", "1")}), {("person", "1"): 5.0})
    assert ("person", "1") in orders.paused
    assert orders.percents["person", "1"] == 5.0
