"""Overrides of brownouts and percentages."""

from gateway.base.overrides import NO_OVERRIDES, Overrides


def test_there_are_no_overrides_by_default() -> None:
    assert Overrides(frozenset(), {}) == NO_OVERRIDES


def test_overrides_are_keyed_by_api_and_version() -> None:
    overrides = Overrides(frozenset({("person", "1")}), {("person", "1"): 5.0})
    assert ("person", "1") in overrides.paused
    assert overrides.percents["person", "1"] == 5.0
