"""Requests of cutovers are counted by client and operation: when they end or become overdue."""

from math import log

import pytest

from gateway.base.errors import FaultCode
from gateway.base.path_templates import Router, parse_template
from gateway.proxy.cutover_counts import CutoverCounts
from gateway.proxy.exchange import Exchange
from gateway.rollout.cutover import CutoverRoute, VersionCutover
from gateway.rollout.evidence import EvidenceRow, unnamed
from gateway.rollout.gates import GateLimits
from gateway.rollout.route_outcomes import OUTCOMES
from gateway.routing.snapshot import Endpoint, Snapshot
from gateway.usage.delta import CutoverDelta, Delta
from gateway.usage.totals import StateRows, Totals
from gateway.versions.version import Version
from tests.gateway.proxy import wires

CUTOVER = VersionCutover(("person", "1"), "2", 5.0, "request", GateLimits(errors=0.01, overdue=4.0))


def exchange(began: float = 100.0, cutover: VersionCutover = CUTOVER, client: str = "") -> Exchange:
    found = wires.exchange()
    found.began, found.client = began, client
    found.snapshot = Snapshot(Router([]), {}, cutovers={("person", "1"): cutover})
    found.endpoint = Endpoint("person", parse_template("/person"), None, None, {}, ())
    found.version, found.cutover_route = Version(1, "1"), CutoverRoute.NEW
    return found


def end(counts: CutoverCounts, ended: Exchange, seconds: float, status: int = 200) -> None:
    ended.status = status
    counts.end(ended, seconds)


def ends(delta: CutoverDelta) -> dict[str, int]:
    return {name: count for name, count in zip(OUTCOMES, delta.ends, strict=True) if count}


def rows(delta: CutoverDelta) -> dict[tuple[str, str], EvidenceRow]:
    return {(row.client, row.operation): row for row in delta.rows}


@pytest.mark.parametrize("followed", [True, False])
def test_a_request_is_counted_when_it_ends(followed: bool) -> None:
    """A request that cannot be converted ends without `begin`, and is counted too."""
    counts = CutoverCounts()
    for status in (200, 404):
        asked = exchange(client="acme")
        if followed:
            counts.begin(asked)
        end(counts, asked, 0.5, status)
    assert not counts.waiting
    (delta,) = counts.take(101.0)
    assert (delta.api, delta.version, delta.route) == ("person", "1", "new")
    assert (delta.requests, delta.overdue) == (2, 0)
    assert (delta.seconds, delta.whole, sum(delta.buckets)) == (1.0, 1.0, 2)
    assert ends(delta) == {"2xx": 1, "404": 1}
    assert delta.rows == [
        EvidenceRow("acme", "GET /person", 2, {"404": 1}, timed=2, log_seconds=2 * log(0.5))
    ]
    assert counts.take(102.0) == []


@pytest.mark.parametrize(
    ("status", "code", "measures"),
    [
        (200, None, {}),
        (302, None, {"3xx": 1}),
        (401, None, {"401": 1}),
        (422, None, {"other 4xx": 1}),
        (503, None, {"5xx": 1}),
        (422, FaultCode.UNCONVERTIBLE_REQUEST, {"conversion": 1}),
    ],
)
def test_a_row_of_evidence_has_the_measure_of_a_bad_outcome(
    status: int, code: str | None, measures: dict[str, int]
) -> None:
    counts, asked = CutoverCounts(), exchange(client="acme")
    asked.code = code
    end(counts, asked, 0.5, status)
    (delta,) = counts.take(101.0)
    assert [(row.requests, row.counts) for row in delta.rows] == [(1, measures)]


def test_requests_are_counted_by_client_and_operation() -> None:
    """All unknown methods are counted as one operation."""
    counts = CutoverCounts()
    for client, method in (("a", "GET"), ("a", "GET"), ("b", "GET"), ("a", "BREW"), ("a", "TEA")):
        asked = exchange(client=client)
        asked.method = method
        end(counts, asked, 0.5)
    (delta,) = counts.take(101.0)
    assert {name: row.requests for name, row in rows(delta).items()} == {
        ("a", "GET /person"): 2,
        ("b", "GET /person"): 1,
        ("a", "_OTHER /person"): 2,
    }
    assert delta.requests == 5


def test_requests_without_a_client_are_divided_into_64_groups() -> None:
    counts = CutoverCounts()
    for _ in range(640):
        end(counts, exchange(), 0.5)
    (delta,) = counts.take(101.0)
    found = {client: row.requests for (client, _), row in rows(delta).items()}
    assert found == {unnamed(number): 10 for number in range(64)}


def test_clients_beyond_2048_rows_are_counted_in_groups() -> None:
    """The next delta has room for other clients."""
    counts = CutoverCounts()
    for _ in range(2):
        for number in range(3000):
            end(counts, exchange(client=f"client{number}"), 0.5)
        (delta,) = counts.take(101.0)
        named = [row for row in delta.rows if row.client.startswith("client")]
        groups = [row for row in delta.rows if row not in named]
        assert (delta.requests, len(named), len(groups)) == (3000, 2048, 64)
        assert sum(row.requests for row in groups) == 3000 - 2048


def test_a_known_client_has_its_own_row_when_there_are_many_others() -> None:
    counts = CutoverCounts()
    for number in (*range(3000), 7):
        end(counts, exchange(client=f"client{number}"), 0.5)
    (delta,) = counts.take(101.0)
    assert rows(delta)["client7", "GET /person"].requests == 2


def test_comparisons_of_a_shadow_are_counted_in_rows_of_its_route() -> None:
    counts = CutoverCounts()
    for client, differs in (("a", True), ("a", False), ("b", False)):
        counts.compare(exchange(client=client), differs=differs)
    (delta,) = counts.take(101.0)
    assert (delta.route, delta.requests, sum(delta.ends)) == ("shadow", 0, 0)
    assert delta.rows == [
        EvidenceRow("a", "GET /person", counts={"differs": 1}, compared=2),
        EvidenceRow("b", "GET /person", compared=1),
    ]


def test_validated_responses_are_counted_by_client_operation_and_field() -> None:
    counts, place = CutoverCounts(), ("person", "1", "new", "acme")
    counts.check(place, ("GET", "/p"), {"GET /p /a", "GET /p /b"})
    counts.check(place, ("POST", "/p"), {"GET /p /a"})
    counts.check(place, ("POST", "/p"), ())
    (delta,) = counts.take(101.0)
    assert (delta.checked, delta.violating) == (3, 2)
    assert delta.fields == {"GET /p /a": 2, "GET /p /b": 1}
    found = {name: (row.checked, row.counts) for name, row in rows(delta).items()}
    assert found == {
        ("acme", "GET /p"): (1, {"answers": 1}),
        ("acme", "POST /p"): (2, {"answers": 1}),
    }
    totals = Totals(StateRows())
    totals.absorb(Delta(1.0, [], [], [], [delta, delta], []))
    total = totals.outcomes["person", "1", "new"]
    assert total.fields == {"GET /p /a": 4, "GET /p /b": 2}
    assert (total.outcomes.checked, total.outcomes.violating) == (6, 4)


def test_a_hanging_request_is_counted_as_overdue_before_it_ends() -> None:
    counts = CutoverCounts()
    first, second = exchange(100.0, client="acme"), exchange(101.0, client="acme")
    counts.begin(first)
    counts.begin(second)
    assert counts.take(103.9) == []
    (delta,) = counts.take(104.5)
    assert (delta.requests, delta.overdue, delta.seconds) == (1, 1, 4.0)
    assert delta.rows == [EvidenceRow("acme", "GET /person", 1, {"overdue": 1})]
    assert (ends(delta), sum(delta.buckets), counts.waiting) == ({}, 0, True)
    assert counts.take(104.9) == []
    end(counts, first, 20.0, 504)
    (delta,) = counts.take(104.95)
    assert (delta.requests, delta.overdue, delta.seconds) == (0, 0, 0.0)
    assert (ends(delta), delta.whole) == ({"5xx": 1}, 20.0)
    assert [(row.requests, row.counts, row.timed) for row in delta.rows] == [(0, {"5xx": 1}, 1)]
    end(counts, second, 6.0)  # between two calls of take
    (delta,) = counts.take(107.0)
    assert (delta.requests, delta.overdue, delta.seconds, delta.whole) == (1, 1, 4.0, 6.0)
    assert [(row.requests, row.counts) for row in delta.rows] == [(1, {"overdue": 1})]
    assert not counts.waiting


def test_requests_in_progress_when_the_percentage_falls_are_not_counted() -> None:
    """Otherwise, they would count against the new route after an operator clears the cutover."""
    counts = CutoverCounts()
    overdue, waiting, on_the_old, later = exchange(100), exchange(103), exchange(103), exchange(106)
    on_the_old.cutover_route = CutoverRoute.OLD
    for each in (overdue, waiting, on_the_old):
        counts.begin(each)
    (delta,) = counts.take(104.5)
    assert (delta.requests, delta.overdue) == (1, 1)
    counts.percentage_fell(("person", "1"), 105.0)
    counts.begin(later)
    (delta,) = counts.take(108.0)  # the second request is overdue too
    assert (delta.route, delta.requests, delta.overdue) == ("old", 1, 1)
    for each in (overdue, waiting, later):
        end(counts, each, 109.0 - each.began, 500)
    (delta,) = counts.take(109.0)
    assert (delta.route, delta.requests, ends(delta)) == ("new", 1, {"5xx": 1})
    end(counts, exchange(104), 1.0, 500)  # a request without `begin`
    assert counts.take(110.0) == []
