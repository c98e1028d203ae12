"""Overrides are kept first, then applied, and come back as they were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.overrides import NO_OVERRIDES, Overrides
from gateway.store.active_overrides import ActiveOverrides, as_json, overrides_of
from gateway.store.ledger import Order
from gateway.store.state_writer import StateWriter
from tests.gateway.world import LAW

ANN = Order("ann", "192.0.2.7", "a test")
KEYS = st.tuples(st.text(), st.text())


@LAW
@given(st.frozensets(KEYS), st.dictionaries(KEYS, st.floats(0, 100)))
def test_there_and_back(
    paused: frozenset[tuple[str, str]], percents: dict[tuple[str, str], float]
) -> None:
    overrides = Overrides(paused, percents)
    assert overrides_of({"overrides": as_json(overrides)}) == overrides


@pytest.mark.parametrize(
    "kept", [{}, {"overrides": {"paused": "person"}}, {"overrides": []}, {"overrides": None}]
)
def test_what_cannot_be_read_overrides_nothing(kept: dict[str, object]) -> None:
    assert overrides_of(kept) == NO_OVERRIDES


async def test_each_change_is_applied() -> None:
    overrides, applied = ActiveOverrides(StateWriter(None)), list[Overrides]()

    async def apply(now: Overrides) -> None:
        applied.append(now)

    key = ("person", "1")
    await overrides.pause(key, ANN)
    overrides.follow(apply)
    await overrides.set_percent(key, 25.0, "a test")
    await overrides.set_percent(key, 50.0, "a test")
    await overrides.resume(key, ANN)
    await overrides.set_percent(key, None, "a test")
    await overrides.apply_again()
    assert applied == [
        Overrides(frozenset({key}), {key: 25.0}),
        Overrides(frozenset({key}), {key: 50.0}),
        Overrides(frozenset(), {key: 50.0}),
        NO_OVERRIDES,
        NO_OVERRIDES,
    ]
    assert overrides.in_force == NO_OVERRIDES


async def test_they_outlive_who_set_them() -> None:
    writer = StateWriter(None)
    await ActiveOverrides(writer).pause(("person", "1"), ANN)
    assert ActiveOverrides(writer).in_force == Overrides(frozenset({("person", "1")}), {})


GONE = "the rules have no such cutover any more"


async def test_each_change_is_in_the_audit_log() -> None:
    writer = StateWriter(None)
    overrides, key = ActiveOverrides(writer), ("person", "1")
    await overrides.pause(key, ANN)
    await overrides.set_percent(key, 25.0, "an operator has set it", ANN, by_rules=5.0)
    await overrides.set_percent(key, 0.0, "errors: too many", by_rules=5.0)
    await overrides.set_percent(key, None, "it goes on", ANN, by_rules=5.0)
    await overrides.set_percent(key, None, GONE)
    await overrides.resume(key, ANN._replace(why=""))
    assert [entry[1:] for entry in writer.audit] == [
        ("ann", "192.0.2.7", "brownout pause", *key, "a test", "by the rules", "paused"),
        ("ann", "192.0.2.7", "cutover", *key, "a test", "5% by the rules", "25%"),
        ("gateway", "", "cutover", *key, "errors: too many", "25%", "0%"),
        ("ann", "192.0.2.7", "cutover", *key, "a test", "0%", "5% by the rules"),
        ("gateway", "", "cutover", *key, GONE, "by the rules", "by the rules"),
        ("ann", "192.0.2.7", "brownout resume", *key, "", "paused", "by the rules"),
    ]
