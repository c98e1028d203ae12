"""The evidence for gates: from the window, from earlier requests, and from before a move."""

from dataclasses import replace
from itertools import pairwise

from gateway.rollout.cutover import VersionCutover
from gateway.rollout.evidence import CutoverEvidence
from gateway.rollout.gates import GateEvidence, GateLimits
from gateway.rollout.route_outcomes import OUTCOMES
from gateway.usage.delta import CounterDelta, CutoverDelta, Delta, OperationDelta
from gateway.usage.totals import Totals

KEY = ("person", "1")
CUTOVER = VersionCutover(
    KEY, "2", 90.0, gates=GateLimits(errors=0.01, minimum=10), steps=(5.0, 90.0)
)


class Case:
    def __init__(self, cutover: VersionCutover = CUTOVER) -> None:
        self.totals = Totals()
        self.known = CutoverEvidence()
        self.now = self.set_at = 1000.0
        self.cutover = cutover

    def count(
        self, route: str, requests: int, bad: int = 0, cell: int = 4, operation: str = "GET /r"
    ) -> None:
        ends = [0] * len(OUTCOMES)
        ends[OUTCOMES.index("2xx")], ends[OUTCOMES.index("404")] = requests - bad, bad
        outcome = CutoverDelta(
            *(*KEY, route, cell, requests, 0, ends, 0.0, 0.0, [requests], 0.0),
            operations={operation: OperationDelta(requests, 0, ends)},
        )
        self.totals.absorb(Delta(self.now, [], [], [], [outcome], []))

    def seen(self, window: float = 30.0, percent: float = 5.0, passed: float = 1.0) -> GateEvidence:
        self.now += passed
        begin = self.now - window
        return self.known.since(
            begin,
            self.now,
            self.cutover,
            percent,
            self.totals.route_counts(KEY),
            set_at=self.set_at,
        )


def test_requests_before_the_window_do_not_count() -> None:
    case = Case()
    case.seen()
    case.count("new", 7)
    case.count("old", 70)
    found = case.seen()
    assert (found.new.requests, found.old.requests) == (7, 70)
    for _ in range(28):
        assert case.seen().new.requests == 7
    case.count("new", 1)
    assert [case.seen().new.requests for _ in range(3)] == [8, 1, 1]


def test_earlier_requests_count_if_the_old_route_has_few_requests_in_the_window() -> None:
    """Enough of the latest requests count to reach the minimum of the gates."""
    case = Case(replace(CUTOVER, every=0.0))
    case.count("old", 30, 30)
    case.seen()
    for _ in range(9):
        case.count("old", 4, 1)
        case.seen()
    for _ in range(100):
        found = case.seen()
    assert found.new.requests == 0
    assert 10 <= found.old.requests < 25
    assert found.old.count("404") * 4 == found.old.requests
    case.count("old", 10)
    found = case.seen()
    assert (found.old.requests, found.old.count("404")) == (10, 0)


def test_the_last_step_is_compared_with_1000_earlier_requests() -> None:
    """This holds for the minimum time of the step. After a restart, the stored requests count."""
    case = Case(replace(CUTOVER, every=200.0))
    for _ in range(40):
        case.count("old", 50)
        case.seen(passed=3.0)
    case.set_at = case.now
    seen = [case.seen(percent=100.0, passed=1.0) for _ in range(310)]
    found = [each.old.requests for each in seen]
    assert found[0] == 10 * 50  # the window has enough requests
    assert found[20] == 150
    assert 1000 <= found[40] < 2000
    assert found[198] == found[40]
    assert 10 <= found[200] < 110
    assert [seen[at].old_ceased for at in (0, 198, 200)] == [False, False, True]
    assert [seen[at].outlasts for at in (0, 298 - 1, 300)] == [False, False, True]
    restarted = CutoverEvidence(case.known.latest_old)
    none = Totals().route_counts(KEY)
    again = restarted.since(case.now, case.now, case.cutover, 100.0, none, set_at=case.now)
    assert again.old == case.known.latest_old


def test_moved_clients_are_compared_with_their_own_outcomes_before_the_move() -> None:
    case = Case()
    case.seen()
    case.count("old", 40, 20, cell=4)
    case.count("old", 60, 0, cell=89)
    for percent, requests, bad in ((0.0, 0, 0), (5.0, 40, 20), (50.0, 40, 20), (90.0, 100, 20)):
        found = case.seen(percent=percent)
        assert (found.before.requests, found.before.count("404")) == (requests, bad)
        assert [cell.requests for cell in found.cells] == [40, 60]
    case.count("old", 7, 7)
    assert case.seen(percent=90.0).before.requests == 100
    by_chance = Case()
    by_chance.count("old", 40, cell=-1)
    found = by_chance.seen(percent=90.0)
    assert (found.before.requests, found.cells) == (0, ())


def test_moved_clients_are_compared_by_cell_once_a_window_has_passed() -> None:
    """Requests on the new route at an earlier percentage do not count."""
    case = Case(replace(CUTOVER, gates=GateLimits(errors=0.01, window=30.0)))
    case.count("old", 40, 2, cell=4)
    case.count("old", 60, 0, cell=89)
    case.count("new", 5, 5, cell=4)
    assert case.seen(percent=90.0).moved == ()
    case.count("new", 9, 9, cell=4)
    assert case.seen(percent=90.0, passed=20.0).moved == ()
    moved = case.seen(percent=90.0, passed=20.0).moved
    for (before, since, operation), name in zip(moved, ("", "GET /r"), strict=True):
        assert (before.requests, before.count("404")) == (40, 2)
        assert (since.requests, since.count("404"), operation) == (9, 9, name)
    case.count("new", 3, cell=89)
    assert [each.since.requests for each in case.seen(percent=90.0).moved] == [9, 3, 9]


def test_violations_are_counted_by_field_since_the_percentage_was_set() -> None:
    case = Case()

    def violate(route: str, **fields: int) -> None:
        ends = [0] * len(OUTCOMES)
        outcome = CutoverDelta(*KEY, route, 4, 0, 0, ends, 0.0, 0.0, [], 0.0, fields=fields)
        case.totals.absorb(Delta(case.now, [], [], [], [outcome], []))

    violate("new", a=5)
    violate("old", a=5)
    assert case.seen().fields == ()
    violate("new", a=1, b=7)
    violate("old", a=2, c=9)
    assert case.seen(passed=99.0).fields == (("b", 0, 7), ("a", 2, 1))
    for number in range(300):
        violate("new", **{f"f{number}": 1})
    assert case.totals.outcomes[*KEY, "new"].fields["(others)"] == 46
    assert len(case.seen().fields) == 32


def test_a_window_that_begins_in_the_future_has_no_evidence() -> None:
    case = Case()
    case.count("new", 5)
    assert case.seen(window=-2.5).new.requests == 0
    case.count("new", 3)
    assert case.seen(window=-1.5).new.requests == 0
    case.count("new", 2)
    assert case.seen(window=0.5).new.requests == 2


def test_comparisons_are_counted_from_zero_after_a_reset_of_the_shadow() -> None:
    case = Case()
    case.totals.absorb(Delta(1.0, [], [], [CounterDelta("compared", KEY, 50)], [], []))
    case.seen()
    case.totals.reset_shadow(KEY)
    case.known.reset_shadow()
    assert case.seen().compared == 0
    case.totals.absorb(Delta(1.0, [], [], [CounterDelta("differing", KEY, 2)], [], []))
    assert case.seen().differing == 2


def test_all_requests_since_the_percentage_was_set_are_counted() -> None:
    case = Case()
    case.count("old", 3)
    case.seen()
    case.count("old", 4)
    case.count("new", 7, 1)
    case.seen()
    for _ in range(100):
        found = case.seen()
    assert found.new.requests == 0
    assert (found.served_old.requests, found.served_new.requests) == (4, 7)
    assert found.served_new.count("404") == 1
    case.set_at = case.now
    assert case.seen(percent=90.0).served_new.requests == 0
    case.count("new", 2)
    assert case.seen(percent=90.0).served_new.requests == 2


def test_failures_are_found_for_one_operation_and_for_all_requests_together() -> None:
    """The failures are compared with all requests on the old route, in the best time span."""
    case = Case()
    for _ in range(40):
        case.count("old", 10)
        case.count("old", 2, operation="POST /r")
        case.count("new", 9)
        case.count("new", 1, operation="POST /r")
        assert case.seen().failing == ()
    for _ in range(8):
        case.count("old", 12)
        case.count("new", 9)
        case.count("new", 1, 1, operation="POST /r")
        found = {(each.operation, each.measure): each for each in case.seen().failing}
    assert found.keys() == {("", "404"), ("POST /r", "404")}
    of_it = found["POST /r", "404"]
    (bad, total), usual = of_it.new, of_it.usual
    assert (bad, of_it.lone, usual) == (total, total - 3, (0, 80))
    assert 6 <= total <= of_it.span <= 8
    assert found["", "404"].usual == (0, 576)


def test_few_earlier_counts_by_operation_are_kept_including_the_oldest() -> None:
    case = Case()
    for _ in range(600):
        case.count("new", 1)
        case.seen()
    ages = [case.now - at for at, _ in case.known._operations]
    assert len(ages) < 20
    assert (ages[0], ages[-1]) == (599.0, 0.0)
    assert all(longer <= 2.5 * shorter + 2 for longer, shorter in pairwise(ages))
    case.set_at = case.now
    case.seen(window=-2.5)
    assert len(case.known._operations) == 1


def test_a_failing_operation_of_moved_clients_is_found() -> None:
    case = Case(replace(CUTOVER, gates=GateLimits(errors=0.01, window=30.0)))
    for operation in ("GET /r", "POST /r", "PUT /r"):
        case.count("old", 40, cell=4, operation=operation)
        case.count("old", 40, cell=89, operation=operation)
    case.seen(percent=90.0)
    for operation, bad in (("GET /r", 0), ("POST /r", 9)):
        case.count("new", 9, bad, cell=4, operation=operation)
        case.count("new", 9, cell=89, operation=operation)
    case.count("new", 9, 9, cell=90, operation="POST /r")
    found = case.seen(percent=90.0, passed=40.0).moved
    assert [(each.operation, each.since.requests) for each in found] == [
        *(("", 18), ("", 18), ("POST /r", 9)),
    ]


def test_a_window_without_requests_on_the_old_route_is_split_into_parts() -> None:
    case = Case()
    case.count("old", 30)
    for _ in range(40):
        case.count("new", 2)
        found = case.seen(percent=90.0)
    assert 10 <= len(found.parts) <= 15
    assert sum(each.requests for each in found.parts) == found.new.requests == 60
    case.count("old", 1)
    assert case.seen(percent=90.0).parts == ()
