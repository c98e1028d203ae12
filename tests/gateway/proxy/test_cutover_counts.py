"""A request of a cutover is counted when it ends or becomes overdue; its outcome, when it ends."""

import pytest

from gateway.base.path_templates import Router, parse_template
from gateway.proxy.cutover_counts import CutoverCounts
from gateway.proxy.record import Exchange
from gateway.rollout.cutover import CutoverRoute, StickyBy, VersionCutover
from gateway.rollout.gates import GateLimits
from gateway.rollout.route_outcomes import OUTCOMES
from gateway.routing.snapshot import Endpoint, Snapshot
from gateway.usage.delta import CutoverDelta, Delta
from gateway.usage.totals import StateRows, Totals
from gateway.versions.version import Version
from tests.gateway.proxy import wires

CUTOVER = VersionCutover(
    ("person", "1"), "2", 5.0, StickyBy.REQUEST, GateLimits(errors=0.01, overdue=4.0)
)


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


@pytest.mark.parametrize("followed", [True, False])
def test_a_request_is_counted_when_it_ends(followed: bool) -> None:
    """A request that cannot be converted ends without `begin`, and is counted too."""
    counts = CutoverCounts()
    for status in (200, 404):
        asked = exchange()
        if followed:
            counts.begin(asked)
        end(counts, asked, 0.5, status)
    assert not counts.waiting
    (delta,) = counts.take(101.0)
    assert (delta.api, delta.version, delta.route) == ("person", "1", "new")
    assert (delta.cell, delta.requests, delta.overdue) == (-1, 2, 0)
    assert (delta.seconds, delta.squares, delta.whole, sum(delta.buckets)) == (1.0, 0.5, 1.0, 2)
    assert ends(delta) == {"2xx": 1, "404": 1}
    assert counts.take(102.0) == []


def test_writes_and_failed_writes_are_counted() -> None:
    counts = CutoverCounts()
    for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"):
        for status in (200, 422):
            asked = exchange()
            asked.method = method
            end(counts, asked, 0.5, status)
    (delta,) = counts.take(101.0)
    assert (delta.requests, delta.writes, delta.failed_writes) == (12, 8, 4)
    assert ends(delta) == {"2xx": 6, "4xx": 6}
    totals = Totals(StateRows())
    totals.absorb(Delta(1.0, [], [], [], [delta, delta], []))
    outcomes = totals.outcomes["person", "1", "new"].outcomes
    assert (outcomes.writes, outcomes.failed_writes) == (16, 8)


def operations(delta: CutoverDelta) -> dict[str, tuple[int, int, dict[str, int]]]:
    return {
        name: (each.requests, each.overdue, {OUTCOMES[i]: n for i, n in enumerate(each.ends) if n})
        for name, each in delta.operations.items()
    }


def test_requests_are_counted_by_operation() -> None:
    """All unknown methods are counted as one operation."""
    counts = CutoverCounts()
    hanging = exchange(100.0)
    counts.begin(hanging)
    for method, status in (("GET", 200), ("GET", 404), ("POST", 200), ("BREW", 405), ("TEA", 405)):
        asked = exchange()
        asked.method = method
        end(counts, asked, 0.5, status)
    (delta,) = counts.take(104.5)
    assert operations(delta) == {
        "GET /person": (3, 1, {"2xx": 1, "404": 1}),
        "POST /person": (1, 0, {"2xx": 1}),
        "_OTHER /person": (2, 0, {"4xx": 2}),
    }
    end(counts, hanging, 6.0, 504)
    end(counts, exchange(), 5.0)
    (delta,) = counts.take(107.0)
    assert operations(delta) == {"GET /person": (1, 1, {"2xx": 1, "5xx": 1})}


def test_at_most_256_operations_are_counted_separately_in_a_delta() -> None:
    """Requests of further operations still count in the sums."""
    counts, place = CutoverCounts(), ("person", "1", "new", 34)
    for _ in range(2):
        for number in range(300):
            counts.check(place, ("GET", f"/{number}"), ())
        (delta,) = counts.take(101.0)
        assert (delta.checked, len(delta.operations)) == (300, 256)


def test_validated_responses_are_counted_by_operation_and_field() -> None:
    counts, place = CutoverCounts(), ("person", "1", "new", 34)
    counts.check(place, ("GET", "/p"), {"GET /p /a", "GET /p /b"})
    counts.check(place, ("POST", "/p"), {"GET /p /a"})
    counts.check(place, ("POST", "/p"), ())
    (delta,) = counts.take(101.0)
    assert (delta.checked, delta.violating) == (3, 2)
    assert (delta.checked_writes, delta.violating_writes) == (2, 1)
    assert delta.fields == {"GET /p /a": 2, "GET /p /b": 1}
    found = {name: (each.checked, each.violating) for name, each in delta.operations.items()}
    assert found == {"GET /p": (1, 1), "POST /p": (2, 1)}
    totals = Totals(StateRows())
    totals.absorb(Delta(1.0, [], [], [], [delta, delta], []))
    total = totals.outcomes["person", "1", "new"]
    assert total.fields == {"GET /p /a": 4, "GET /p /b": 2}
    for outcomes in (total.outcomes, total.cells[34]):
        assert (outcomes.checked, outcomes.violating) == (6, 4)
        assert (outcomes.checked_writes, outcomes.violating_writes) == (4, 2)


def test_a_hanging_request_is_counted_as_overdue_before_it_ends() -> None:
    counts = CutoverCounts()
    first, second = exchange(100.0), exchange(101.0)
    counts.begin(first)
    counts.begin(second)
    assert counts.take(103.9) == []
    (delta,) = counts.take(104.5)
    assert (delta.requests, delta.overdue, delta.seconds, delta.squares) == (1, 1, 4.0, 16.0)
    assert (ends(delta), sum(delta.buckets), counts.waiting) == ({}, 0, True)
    assert counts.take(104.9) == []
    end(counts, first, 20.0, 504)
    (delta,) = counts.take(104.95)
    assert (delta.requests, delta.overdue, delta.seconds) == (0, 0, 0.0)
    assert (ends(delta), delta.whole) == ({"5xx": 1}, 20.0)
    end(counts, second, 6.0)  # between two calls of take
    (delta,) = counts.take(107.0)
    assert (delta.requests, delta.overdue, delta.seconds, delta.whole) == (1, 1, 4.0, 6.0)
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
    counts.fall(("person", "1"), 105.0)
    counts.begin(later)
    (delta,) = counts.take(108.0)  # the second request is overdue too
    assert (delta.route, delta.requests, delta.overdue) == ("old", 1, 1)
    for each in (overdue, waiting, later):
        end(counts, each, 109.0 - each.began, 500)
    (delta,) = counts.take(109.0)
    assert (delta.route, delta.requests, ends(delta)) == ("new", 1, {"5xx": 1})
    end(counts, exchange(104), 1.0, 500)  # a request without `begin`
    assert counts.take(110.0) == []


def test_requests_are_counted_in_the_cell_of_their_client() -> None:
    counts = CutoverCounts()
    cutover = VersionCutover(("person", "1"), "2", 90.0, steps=(50.0, 90.0))
    for client in ("a", "b", ""):  # in bucket 3414, in bucket 7206, and without a bucket
        end(counts, exchange(cutover=cutover, client=client), 11.0)
    found = {delta.cell: (delta.requests, delta.seconds) for delta in counts.take(200.0)}
    assert found == {34: (1, 10.0), 72: (1, 10.0), -1: (1, 10.0)}
