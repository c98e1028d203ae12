"""Overrides: none to begin with."""

from gateway.base.overrides import NO_OVERRIDES, Overrides


def test_nothing_is_ordered_to_begin_with() -> None:
    assert Overrides(frozenset(), {}) == NO_OVERRIDES


def test_orders_are_of_a_version_of_an_api() -> None:
    overrides = Overrides(frozenset({("person", "1")}), {("person", "1"): 5.0})
    assert ("person", "1") in overrides.paused
    assert overrides.percents["person", "1"] == 5.0
