"""Totals add up what processes report, in any order, and bound what has many names."""

from itertools import permutations

import pytest

from gateway.state.state_changes import StateChanges
from gateway.state.totals import OTHERS, Occurrences, Totals
from gateway.telemetry.delta import BOUNDS, CounterDelta, Delta, SampleDelta, TrafficDelta

KEY = ("person", "1")
NOTHING = [0] * (len(BOUNDS) + 1)


def counted(at: float, kind: str, *labels: str, times: int = 1) -> Delta:
    return Delta(at, [], [], [CounterDelta(kind, labels, times)], [], [])


def test_the_order_of_reports_does_not_matter() -> None:
    traffic = TrafficDelta(*KEY, "/p", [0, 0, 1, 0, 0, 1], [2, *NOTHING[1:]], 0.5, 1)
    reports = [
        counted(1.0, "compared", *KEY, times=2),
        counted(2.0, "compared", *KEY),
        Delta(3.0, [], [traffic], [], [], []),
        Delta(4.0, [], [traffic], [], [], []),
    ]
    results = []
    for order in permutations(reports):
        totals = Totals(StateChanges())
        for report in order:
            totals.absorb(report)
        (total,) = totals.traffic.values()
        times = totals.counts["compared", KEY]
        results.append((total.statuses, total.seconds, total.converted, times.count, times.last))
    assert all(result == ([0, 0, 2, 0, 0, 2], 1.0, 2, 3, 2.0) for result in results)


def test_so_many_names_are_counted_apart_and_the_rest_together() -> None:
    totals = Totals(StateChanges())
    for number in range(300):
        totals.absorb(counted(1.0, "differences", *KEY, f"/field{number}"))
    names = [labels[-1] for labels, _ in totals.counted("differences", *KEY)]
    assert len(names) == 257
    assert totals.counts["differences", (*KEY, OTHERS)].count == 44
    # Names that are known are counted on; another version has room of its own.
    totals.absorb(counted(2.0, "differences", *KEY, "/field0"))
    totals.absorb(counted(2.0, "differences", "person", "2", "/field299"))
    assert totals.counts["differences", (*KEY, "/field0")] == Occurrences(2, 1.0, 2.0)
    assert ("differences", ("person", "2", "/field299")) in totals.counts


@pytest.mark.parametrize(
    ("labels", "expected"), [((), 3), (("person",), 2), (KEY, 1), (("users",), 0)]
)
def test_counts_by_their_first_labels(labels: tuple[str, ...], expected: int) -> None:
    totals = Totals(StateChanges())
    for api, version in (KEY, ("person", "2"), ("things", "1")):
        totals.absorb(counted(1.0, "compared", api, version))
        totals.absorb(counted(1.0, "differing", api, version))
    assert len(list(totals.counted("compared", *labels))) == expected


def test_the_latest_samples_are_kept_and_none_twice() -> None:
    totals = Totals(StateChanges())
    for number in [*range(25), 24]:
        sample = SampleDelta("differences", *KEY, {"n": number})
        totals.absorb(Delta(1.0, [], [], [], [], [sample]))
    assert list(totals.samples["differences", *KEY]) == [{"n": n} for n in range(5, 25)]


def test_a_shadow_that_is_forgotten_is_taken_out_of_the_state() -> None:
    totals = Totals(StateChanges())
    for kind in ("compared", "noise", "refusals"):
        totals.absorb(counted(1.0, kind, *KEY, "x"))
    totals.changes()
    totals.reset_shadow(KEY)
    changes = totals.changes()
    assert sorted(changes.uncounted) == [("compared", (*KEY, "x")), ("noise", (*KEY, "x"))]
    assert list(totals.counts) == [("refusals", (*KEY, "x"))]


@pytest.mark.parametrize(("kept", "since"), [(7, 7.0), (7.5, 7.5), ("x", None), (None, None)])
def test_since_when_it_was_counted(kept: object, since: float | None) -> None:
    found = Totals(StateChanges(documents={"since": kept})).since
    assert found == since or (since is None and found > 1_000_000_000)
