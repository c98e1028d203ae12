"""The book of a version: bounded, and what it says of who is in it holds."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.usage import totals
from gateway.usage.delta import UsageDelta
from gateway.usage.totals import ClientUsage, TopClients

FEW = 4


def add(to: TopClients, client: str, count: int = 1, at: float = 1.0, endpoint: str = "/p") -> None:
    to.add(UsageDelta("a", "1", endpoint, client, count, 0, 0, count), at)


def test_a_row_has_counts_and_times() -> None:
    rows = TopClients()
    rows.add(UsageDelta("a", "1", "/p", "acme", 3, 1, 0, 2), 10.0)
    rows.add(UsageDelta("a", "1", "/p", "acme", 2, 2, 0, 0), 20.0)
    rows.add(
        UsageDelta("a", "1", "/p", "acme", 1, 0, 1, 1), 15.0
    )  # reports may overtake each other
    assert rows.rows == {("/p", "acme"): ClientUsage(6, 3, 1, 0, 10.0, 20.0, 15.0)}
    assert rows.changed == {("/p", "acme")}


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), max_size=120))
def test_the_guarantees_hold(calls: list[tuple[int, int]]) -> None:
    """Whatever the order: nothing is uncounted, no row says too much or too little."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(totals, "KEPT", FEW)
        rows, truth = TopClients(), Counter[str]()
        for at, (number, count) in enumerate(calls, 1):
            truth[str(number)] += count
            add(rows, str(number), count, at)
    everything = sum(truth.values())
    assert sum(row.count for row in rows.rows.values()) == everything
    assert max((row.last for row in rows.rows.values()), default=0) == len(calls)
    assert len(rows.rows) <= 2 * FEW + 2
    assert rows.floor * FEW <= everything
    for client, count in truth.items():
        row = rows.rows.get(("/p", client))
        if row is None:
            assert count <= rows.floor
        else:
            assert row.count <= count <= row.count + row.slack


def test_a_flood_of_names_takes_bounded_memory_and_hides_nobody_busy() -> None:
    rows = TopClients()
    for number in range(100_000):
        add(rows, f"random-{number}")
        if number % 20 == 0:
            add(rows, "acme")
    assert len(rows.rows) <= 2 * totals.KEPT + 2
    acme, others = rows.rows["/p", "acme"], rows.rows["/p", None]
    assert acme.count == 5_000
    assert others.count > 90_000
    assert sum(row.count for row in rows.rows.values()) == 105_000


def test_the_others_of_each_endpoint_stand_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(totals, "KEPT", FEW)
    rows = TopClients()
    for number in range(20):
        add(rows, f"{number}", endpoint=f"/{number % 2}")
    assert {endpoint for endpoint, client in rows.rows if client is None} == {"/0", "/1"}


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9), st.integers(0, 3)), max_size=120),
    st.permutations(range(4)),
)
def test_summaries_of_several_replicas_keep_the_guarantees(
    calls: list[tuple[int, int, int]], order: list[int]
) -> None:
    """Whoever counted what, and in whatever order they are merged."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(totals, "KEPT", FEW)
        parts, truth = [TopClients() for _ in order], Counter[str]()
        for number, count, replica in calls:
            truth[str(number)] += count
            add(parts[replica], str(number), count)
        merged = TopClients()
        for place in order:
            merged.merge(parts[place])
    everything = sum(truth.values())
    assert sum(row.count for row in merged.rows.values()) == everything
    assert len(merged.rows) <= 2 * FEW + 2
    assert merged.floor * FEW <= everything
    for client, count in truth.items():
        row = merged.rows.get(("/p", client))
        if row is None:
            assert count <= merged.floor
        else:
            assert row.count <= count <= row.count + row.slack
