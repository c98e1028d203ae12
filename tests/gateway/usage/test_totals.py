"""Totals: sums of deltas in any order, in bounded memory."""

from collections import Counter
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.rollout.evidence import EvidenceRow
from gateway.usage import totals
from gateway.usage.delta import (
    BOUNDS,
    CounterDelta,
    CutoverDelta,
    Delta,
    LatencyDelta,
    SampleDelta,
    TrafficDelta,
    UpstreamDelta,
    UsageDelta,
)
from gateway.usage.totals import (
    MAX_ENDINGS,
    OTHERS,
    OVERFLOW,
    ClientUsage,
    Durations,
    Occurrences,
    StateRows,
    TopClients,
    Totals,
)

KEY = ("person", "1")
ENDING = ("GET", 200, "")
NOTHING = [0] * (len(BOUNDS) + 1)


def counted(at: float, kind: str, *labels: str, times: int = 1) -> Delta:
    return Delta(at, [], [], [CounterDelta(kind, labels, times)], [], [])


def test_the_order_of_deltas_does_not_change_the_totals() -> None:
    traffic = TrafficDelta(*KEY, "/p", "GET", 200, "", [2, *NOTHING[1:]], 0.5, 1)
    asked = UpstreamDelta(*KEY, "h:1", "GET", 200, "", [2, *NOTHING[1:]], 0.25)
    reports = [
        counted(1.0, "compared", *KEY, times=2),
        counted(2.0, "compared", *KEY),
        Delta(3.0, [], [traffic], [], [], [], upstream=[asked]),
        Delta(4.0, [], [traffic], [], [], [], upstream=[asked]),
    ]
    results = []
    for order in permutations(reports):
        totals = Totals()
        for report in order:
            totals.absorb(report)
        (total,), (upstream,) = totals.traffic.values(), totals.upstream.values()
        assert upstream.endings == {ENDING: Durations([4, *NOTHING[1:]], 0.5)}
        times = totals.counts["compared", KEY]
        results.append((total.endings, total.converted, times.count, times.last))
    expected = {ENDING: Durations([4, *NOTHING[1:]], 1.0)}
    assert all(result == (expected, 2, 3, 2.0) for result in results)


def test_statuses_beyond_the_maximum_are_counted_together() -> None:
    """Clients can invent methods, and services can invent statuses."""
    totals = Totals()
    for status in range(200, 500):
        traffic = TrafficDelta(*KEY, "/p", "GET", status, "", [1, *NOTHING[1:]], 0.5, 0)
        totals.absorb(Delta(1.0, [], [traffic, traffic], [], [], []))
    (total,) = totals.traffic.values()
    assert len(total.endings) == MAX_ENDINGS + 1
    assert total.endings["GET", 299, ""].buckets[0] == 2
    assert total.endings[OVERFLOW] == Durations([400, *NOTHING[1:]], 200.0)


def test_names_beyond_the_maximum_are_counted_together() -> None:
    totals = Totals()
    for number in range(300):
        totals.absorb(counted(1.0, "differences", *KEY, f"/field{number}"))
    names = [labels[-1] for labels, _ in totals.counted("differences", *KEY)]
    assert len(names) == 257
    assert totals.counts["differences", (*KEY, OTHERS)].count == 44
    # Known names are still counted separately. Each version has its own maximum.
    totals.absorb(counted(2.0, "differences", *KEY, "/field0"))
    totals.absorb(counted(2.0, "differences", "person", "2", "/field299"))
    assert totals.counts["differences", (*KEY, "/field0")] == Occurrences(2, 1.0, 2.0)
    assert ("differences", ("person", "2", "/field299")) in totals.counts
    # Names from a store count toward the maximum until they are deleted.
    stored = Totals(totals.changes())
    stored.absorb(counted(3.0, "differences", *KEY, "/field299"))
    assert stored.counts["differences", (*KEY, OTHERS)].count == 45
    stored.reset_shadow(KEY)
    stored.absorb(counted(3.0, "differences", *KEY, "/field299"))
    assert stored.counts["differences", (*KEY, "/field299")].count == 1


@pytest.mark.parametrize(
    ("labels", "expected"), [((), 3), (("person",), 2), (KEY, 1), (("users",), 0)]
)
def test_counters_are_found_by_their_first_labels(labels: tuple[str, ...], expected: int) -> None:
    totals = Totals()
    for api, version in (KEY, ("person", "2"), ("things", "1")):
        totals.absorb(counted(1.0, "compared", api, version))
        totals.absorb(counted(1.0, "differing", api, version))
    assert len(list(totals.counted("compared", *labels))) == expected


def test_samples_of_a_frequent_field_do_not_displace_samples_of_rare_fields() -> None:
    totals = Totals()
    fields = ["status", *["/title"] * 30, "/pages", *["/title"] * 30]
    for number, field in enumerate(fields):
        document = {"field": field, "old": str(number)}
        sample = SampleDelta("differences", *KEY, document, {})
        totals.absorb(Delta(1.0, [], [], [], [], [sample]))
    kept = [str(sample.document["field"]) for sample in totals.samples["differences", *KEY]]  # type: ignore[index]
    assert (kept.count("status"), kept.count("/pages"), kept.count("/title")) == (1, 1, 18)


def test_only_the_latest_distinct_samples_are_kept() -> None:
    totals = Totals()
    for index, number in enumerate([*range(25), 10]):
        sample = SampleDelta("differences", *KEY, {"n": number}, {"request_id": f"r{index}"})
        totals.absorb(Delta(1.0, [], [], [], [], [sample]))
    kept = totals.samples["differences", *KEY]
    assert [each.document for each in kept] == [
        {"n": n} for n in [*range(5, 10), *range(11, 25), 10]
    ]
    assert kept[-1].request == {"request_id": "r25"}


def test_the_number_of_counted_operations_is_not_limited() -> None:
    """The configuration already limits the number of operations."""
    totals = Totals()
    for number in range(300):
        totals.absorb(counted(1.0, "operations", *KEY, "GET", f"/{number}"))
        totals.absorb(counted(1.0, "differences", *KEY, f"/{number}"))
    assert len(list(totals.counted("operations", *KEY))) == 300
    assert len(list(totals.counted("differences", *KEY))) == 257


def test_latencies_of_a_shadow_are_summed_until_the_shadow_is_reset() -> None:
    totals = Totals()
    for key in (KEY, ("person", "2")):
        for buckets in ({3: 1, 7: 2}, {7: 1}):
            latency = LatencyDelta(*key, "old", buckets)
            totals.absorb(Delta(1.0, [], [], [], [], [], [latency]))
    assert totals.latencies[*KEY, "old"] == {3: 1, 7: 3}
    totals.reset_shadow(KEY)
    assert totals.latencies == {("person", "2", "old"): {3: 1, 7: 3}}


def test_the_counts_of_a_reset_shadow_are_deleted() -> None:
    totals = Totals()
    for kind in ("compared", "noise", "refusals"):
        totals.absorb(counted(1.0, kind, *KEY, "x"))
    totals.changes()
    totals.reset_shadow(KEY)
    changes = totals.changes()
    assert sorted(changes.deleted_counts) == [("compared", (*KEY, "x")), ("noise", (*KEY, "x"))]
    assert list(totals.counts) == [("refusals", (*KEY, "x"))]


@pytest.mark.parametrize(("kept", "since"), [(7, 7.0), (7.5, 7.5), ("x", None), (None, None)])
def test_the_stored_start_of_counting_is_used_if_it_is_a_number(
    kept: object, since: float | None
) -> None:
    found = Totals(StateRows(documents={"since": kept})).since
    assert found == since or (since is None and found > 1_000_000_000)


def test_the_order_of_merging_totals_does_not_change_the_result() -> None:
    parts = []
    for number in range(4):
        part = Totals()
        usage = UsageDelta(*KEY, "/p", f"client{number % 2}", number + 1, 0, 0, 1)
        counts = [CounterDelta("compared", KEY, number)]
        samples = [SampleDelta("differences", *KEY, {"n": number % 2}, {})]
        part.absorb(Delta(float(number + 1), [usage], [], counts, [], samples))
        parts.append(part)
    results = []
    for order in permutations(parts):
        merged = Totals()
        for part in order:
            merged.merge(part)
        rows = sorted((key, row) for key, row in merged.clients[KEY].rows.items())
        kept = [str(sample.document) for sample in merged.samples["differences", *KEY]]
        assert sorted(kept) == ["{'n': 0}", "{'n': 1}"]
        results.append((str(rows), merged.counts))
    assert all(result == results[0] for result in results)
    assert results[0][1]["compared", KEY] == Occurrences(6, 1.0, 4.0)
    assert "count=6" in results[0][0]


def of_cutover(route: str, *clients: str, requests: int = 1) -> Delta:
    rows = [EvidenceRow(client, "GET /p", 1) for client in clients]
    return Delta(1.0, outcomes=[CutoverDelta(*KEY, route, requests, rows=rows)])


def clients(totals: Totals, key: tuple[str, str] = KEY) -> dict[str, list[str]]:
    found = totals.route_counts(key).rows
    return {route: [row.client for row in rows] for route, rows in found.items()}


def test_rows_of_evidence_are_returned_once_by_version_and_route() -> None:
    """The counts of a cutover are sums, and are returned each time."""
    totals = Totals()
    for route, *names in (("old", "a", "b"), ("new", "c"), ("shadow", "d"), ("old", "a")):
        totals.absorb(of_cutover(route, *names))
    other = CutoverDelta("person", "2", "old", 1, rows=[EvidenceRow("x", "GET /p", 1)])
    totals.absorb(Delta(1.0, outcomes=[other]))
    assert clients(totals) == {"old": ["a", "b", "a"], "new": ["c"], "shadow": ["d"]}
    assert clients(totals) == {"old": [], "new": [], "shadow": []}
    assert clients(totals, ("person", "2"))["old"] == ["x"]
    totals.absorb(of_cutover("old", "e"))
    assert clients(totals)["old"] == ["e"]
    counts = totals.route_counts(KEY)
    assert (counts.old.requests, counts.new.requests) == (3, 1)


def test_the_latest_10000_rows_of_evidence_wait_for_the_gates() -> None:
    totals = Totals()
    for number in range(11):
        totals.absorb(of_cutover("new", *(f"{number}" for _ in range(1000)), requests=1000))
    assert Counter(clients(totals)["new"]) == {f"{number}": 1000 for number in range(1, 11)}
    assert totals.route_counts(KEY).new.requests == 11_000


def test_a_reset_shadow_has_no_rows_of_evidence() -> None:
    """The rows of both routes remain."""
    totals = Totals()
    for route in ("old", "new", "shadow"):
        totals.absorb(of_cutover(route, "a"))
    totals.reset_shadow(KEY)
    assert clients(totals) == {"old": ["a"], "new": ["a"], "shadow": []}


def test_compared_responses_are_no_outcomes_of_a_route() -> None:
    """The metrics of a cutover have only the routes `old` and `new`."""
    totals = Totals()
    totals.absorb(of_cutover("shadow", "a"))
    assert totals.outcomes == {}


FEW = 4


def add(to: TopClients, client: str, count: int = 1, at: float = 1.0, endpoint: str = "/p") -> None:
    to.add(UsageDelta("a", "1", endpoint, client, count, 0, 0, count), at)


def test_the_row_of_a_client_has_its_counts_and_times() -> None:
    rows = TopClients()
    rows.add(UsageDelta("a", "1", "/p", "acme", 3, 1, 0, 2), 10.0)
    rows.add(UsageDelta("a", "1", "/p", "acme", 2, 2, 0, 0), 20.0)
    rows.add(
        UsageDelta("a", "1", "/p", "acme", 1, 0, 1, 1), 15.0
    )  # deltas may arrive in a different order
    assert rows.rows == {("/p", "acme"): ClientUsage(6, 3, 1, 0, 10.0, 20.0, 15.0)}
    assert rows.changed == {("/p", "acme")}


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), max_size=120))
def test_each_client_is_counted_within_the_guaranteed_error(calls: list[tuple[int, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(totals, "ROWS_AFTER_CUT", FEW)
        rows, truth = TopClients(), Counter[str]()
        for at, (number, count) in enumerate(calls, 1):
            truth[str(number)] += count
            add(rows, str(number), count, at)
    assert max((row.last for row in rows.rows.values()), default=0) == len(calls)
    check_guarantees(rows, truth)


def of_client(rows: TopClients, client: str) -> list[ClientUsage]:
    return [row for (_, name), row in rows if name == client]


def check_guarantees(rows: TopClients, truth: Counter[str]) -> None:
    everything = sum(truth.values())
    assert sum(row.count for _, row in rows) == everything
    assert len(rows.rows) <= 3 * FEW + 1
    assert rows.floor * FEW <= 2 * everything
    for client, count in truth.items():
        counted = sum(row.count for row in of_client(rows, client))
        assert counted <= count <= counted + rows.floor


def test_many_random_client_names_do_not_displace_a_busy_client() -> None:
    rows = TopClients()
    for number in range(100_000):
        add(rows, f"random-{number}")
        if number % 20 == 0:
            add(rows, "acme")
    assert len(rows.rows) <= 3 * totals.ROWS_AFTER_CUT + 2
    assert rows.rows["/p", "acme"].count == 5_000
    assert rows.rows[OTHERS, None].count > 90_000
    assert sum(row.count for row in rows.rows.values()) == 105_000


def test_rejected_requests_do_not_displace_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(totals, "ROWS_AFTER_CUT", FEW)
    rows = TopClients()
    add(rows, "acme")
    for number in range(100):
        rows.add(UsageDelta("a", "1", "/p", f"scanner-{number}", 9, 0, 0, 0, 9), 2.0)
    assert of_client(rows, "acme")[0].served == 1.0
    others = rows.rows[OTHERS, None]
    assert (others.served, others.rejected_at) == (0.0, 2.0)


def test_a_client_with_many_operations_does_not_displace_other_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A busy client with many operations must not hide the last use of another client."""
    monkeypatch.setattr(totals, "ROWS_AFTER_CUT", FEW)
    rows = TopClients()
    add(rows, "quiet")
    for number in range(20 * FEW):
        add(rows, "acme", 2, endpoint=f"GET /{number}")
    assert of_client(rows, "quiet")[0].served == 1.0
    assert sum(row.count for row in of_client(rows, "acme")) == 40 * FEW
    assert None not in {client for _, client in rows.rows}


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(1, 9), st.integers(0, 3), st.integers(0, 5)),
        max_size=120,
    ),
    st.permutations(range(4)),
)
def test_merged_clients_of_replicas_are_counted_within_the_guaranteed_error(
    calls: list[tuple[int, int, int, int]], order: list[int]
) -> None:
    """The guarantees hold for any order of merging."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(totals, "ROWS_AFTER_CUT", FEW)
        parts, truth = [TopClients() for _ in order], Counter[str]()
        for number, count, replica, operation in calls:
            truth[str(number)] += count
            add(parts[replica], str(number), count, endpoint=f"/{operation}")
        merged = TopClients()
        for place in order:
            merged.merge(parts[place])
    check_guarantees(merged, truth)
