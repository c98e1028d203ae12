"""The usage history: intervals, sketches of callers, and trends."""

from array import array
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.usage import history
from gateway.usage.delta import BOUNDS, Delta, TrafficDelta, UsageDelta
from gateway.usage.history import (
    DistinctSketch,
    History,
    HistoryQuery,
    HistoryView,
    Interval,
    Resolution,
    UsageTrend,
    name_hash,
    usage_trend,
)
from tests.gateway.world import LAW

DAY, MINUTE = Resolution.DAY, Resolution.MINUTE
NOON = 20_000 * 86_400 + 43_200.0
NONE = [0] * (len(BOUNDS) + 1)


def delta(at: float, *clients: str, version: str = "1", api: str = "person") -> Delta:
    """Return one request of each client and two more requests of the first client.

    One of the two has failed, and one was refused.
    """
    usages = [UsageDelta(api, version, "/p", client, 1, 0, 0, 1) for client in clients]
    usages.append(UsageDelta(api, version, "/q", clients[0], 2, 1, 1, 1))
    count = len(clients) + 2
    traffic = [
        TrafficDelta(api, version, "/p", "GET", 200, "", [count, *NONE[1:]], count * 0.5, 0),
        TrafficDelta(api, "", "/p", "GET", 404, "not_found", [9, *NONE[1:]], 9.0, 0),
    ]
    return Delta(at, usages, traffic, [], [], [])


def told(view: HistoryView) -> dict[tuple[str, str, int], tuple[int, ...]]:
    return {
        (*key, start): (
            *(each.requests, each.errors, each.refused, each.callers.count),
            *(sum(each.buckets), int(each.seconds * 2)),
        )
        for key, series in view.series.items()
        for start, each in series.items()
    }


def asked(
    found: History, by: Resolution, now: float = NOON + 600, **more: float
) -> dict[tuple[str, str, int], tuple[int, ...]]:
    return told(found.view(HistoryQuery(by, **more), now))  # type: ignore[arg-type]  # a span


DELTAS = [
    delta(NOON, "acme", "initech"),
    delta(NOON + 1, "acme"),
    delta(NOON + 60, "", "acme"),
    delta(NOON, "acme", version="2"),
]
MINUTES = {
    ("person", "1", int(NOON)): (7, 2, 2, 2, 7, 7),
    ("person", "1", int(NOON) + 60): (4, 1, 1, 2, 4, 4),
    ("person", "2", int(NOON)): (3, 1, 1, 1, 3, 3),
}
DAYS = {
    ("person", "1", int(NOON) - 43_200): (11, 3, 3, 3, 11, 11),
    ("person", "2", int(NOON) - 43_200): (3, 1, 1, 1, 3, 3),
}


def test_the_order_of_deltas_does_not_change_the_history() -> None:
    for order in permutations(DELTAS):
        first, second = History(), History()
        for place, one in enumerate(order):
            (first, second)[place % 2].absorb(one)
        both = History(first.take())
        both.add(second.rows())
        assert asked(both, MINUTE) == MINUTES
        assert asked(both, DAY) == DAYS
        assert first.rows() == []


def test_a_query_restricts_the_api_and_the_time_span() -> None:
    found = History()
    for one in (*DELTAS, delta(NOON, "acme", api="users", version="")):
        found.absorb(one)
    assert {key[0] for key in asked(found, MINUTE)} == {"person", "users"}
    view = found.view(HistoryQuery(MINUTE, "person"), NOON, "a")
    assert told(view) == MINUTES
    assert (view.now, view.replica) == (NOON, "a")
    assert asked(found, MINUTE, NOON + 60, span=1.0) == {
        key: numbers for key, numbers in MINUTES.items() if key[2] > NOON
    }
    assert asked(found, MINUTE, NOON + 86_400 + 61) == {}
    assert len(asked(found, DAY, NOON + 399 * 86_400)) == 3


def test_intervals_are_returned_in_ascending_order() -> None:
    found = History()
    for one in reversed(DELTAS):
        found.absorb(one)
    view = found.view(HistoryQuery(MINUTE), NOON + 600)
    assert [*view.series["person", "1"]] == [int(NOON), int(NOON) + 60]


def test_setting_the_clock_does_not_delete_the_latest_intervals() -> None:
    found = History()
    for minute in range(1441):
        found.absorb(delta(NOON + 60 * minute, "acme"))
    ahead = NOON + 5_000_000_000.0
    found.absorb(delta(ahead, "acme"))
    kept = sorted(row.start for row in found.rows() if row.by == "minute")
    assert len(kept) == 1440
    assert (kept[0], kept[-2]) == (NOON + 120, NOON + 60 * 1440)
    days = [row for row in found.rows() if row.by == "day"]
    assert len(days) == 3


def test_all_versions_share_the_maximum_number_of_intervals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(history, "_MAX_INTERVALS", {MINUTE: 100, DAY: 100})
    found = History()
    for minute in range(20):
        for version in range(50):
            found.absorb(delta(NOON + 60 * minute, "acme", version=str(version)))
    assert sum(row.by == "minute" for row in found.rows()) == 100
    assert sum(row.by == "minute" for row in History(found.rows(), bounded=False).rows()) == 100


@pytest.mark.parametrize(
    ("by", "at", "start"),
    [
        (Resolution.MINUTE, 119.9, 60),
        (Resolution.MINUTE, 120.0, 120),
        (Resolution.DAY, 86_399.9, 0),
        (Resolution.DAY, 86_400.0, 86_400),
    ],
)
def test_intervals_start_at_full_minutes_and_utc_days(
    by: Resolution, at: float, start: int
) -> None:
    assert by.start(at) == start


def test_an_interval_is_restored_from_its_row() -> None:
    one = Interval(Resolution.DAY)
    one.add_counts(5, 2, 1)
    one.add_durations([5, *NONE[1:]], 0.25)
    one.callers.add([7, 8])
    twice = Interval(Resolution.DAY, *one.numbers())
    twice.add(one)
    assert (twice.requests, twice.errors, twice.refused, twice.seconds) == (10, 4, 2, 0.5)
    assert list(twice.buckets) == [10, *NONE[1:]]
    assert twice.callers.count == 2


def test_stored_durations_with_other_bounds_are_ignored() -> None:
    """Another release may use other bounds."""
    interval = Interval(Resolution.DAY, 5, 0, 0, 0.5, bytes(8 * 5), b"")
    assert list(interval.buckets) == NONE
    assert interval.quantile(0.5) is None
    assert interval.requests == 5


@pytest.mark.parametrize("parts", [0, 1, 3])
def test_a_total_is_the_sum_of_intervals_without_callers(parts: int) -> None:
    some, expected = [], Interval(Resolution.DAY)
    for part in range(parts):
        one = Interval(Resolution.MINUTE)
        one.add_counts(5 + part, 2, 1)
        one.add_durations([5, part, *NONE[2:]], 0.25)
        one.callers.add([part])
        some.append(one)
        expected.add_counts(5 + part, 2, 1)
        expected.add_durations([5, part, *NONE[2:]], 0.25)
    assert Interval.total(Resolution.DAY, some).numbers() == expected.numbers()


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.25, 0.0025),
        (0.5, 0.005),
        (0.625, 0.0075),
        (0.75, 0.01),
        (0.95, BOUNDS[-1]),
        (1.0, BOUNDS[-1]),
    ],
)
def test_quantiles_are_interpolated_between_bounds(share: float, expected: float) -> None:
    interval = Interval(Resolution.MINUTE)
    interval.add_durations([4, 2, *NONE[2:-1], 2], 0.0)
    assert interval.quantile(share) == pytest.approx(expected)


HASHES = st.lists(st.integers(0, 2**64 - 1))


def seen(hashes: list[int], kept: int = 8) -> DistinctSketch:
    found = DistinctSketch(kept)
    found.add(hashes)
    return found


@LAW
@given(HASHES, HASHES)
def test_the_order_of_merging_sketches_does_not_change_the_result(
    first: list[int], second: list[int]
) -> None:
    merged = seen(first)
    merged.merge(seen(second))
    assert merged.content == seen(second + first).content
    assert array("Q", merged.content).tolist() == sorted({*first, *second})[:8]
    assert DistinctSketch(8, merged.content).count == merged.count


def test_a_sketch_counts_few_names_exactly_and_estimates_many() -> None:
    for number in (0, 1, 255):
        assert seen([name_hash(str(n)) for n in range(number)] * 2, 256).count == number
    for number in (256, 10_000, 100_000):
        found = seen([name_hash(str(n)) for n in range(number)], 256)
        assert 0.8 * number < found.count < 1.2 * number  # three standard errors
        assert len(found.content) == 2048


def test_the_hash_of_a_name_is_the_same_in_every_process() -> None:
    assert name_hash("acme") == 0x3026_57B3_3C4D_A281
    assert name_hash("\udcff") != name_hash("")
    assert seen([1]).content == b"\1" + bytes(7)


CASES = {
    "too few days": ([5.0] * 6, None),
    "constant": ([5.0] * 10, UsageTrend(5, 0, None)),
    "increasing": ([float(day) for day in range(10)], UsageTrend(9, 1, None)),
    "decreasing": ([20.0 - day for day in range(10)], UsageTrend(11, -1, 11)),
    "with a holiday": ([20.0, 19, 18, 17, 0, 15, 14, 13, 12, 11], UsageTrend(11, -1, 11)),
    "only the last 28 days": (
        [900.0] * 99 + [40.0 - day for day in range(28)],
        UsageTrend(13, -1, 13),
    ),
    "no caller for a week": ([9.0] * 3 + [0.0] * 7, UsageTrend(0, 0, 0)),
}


@pytest.mark.parametrize(("callers", "found"), CASES.values(), ids=CASES)
def test_the_trend_of_callers_is_the_median_slope_of_28_days(
    callers: list[float], found: UsageTrend | None
) -> None:
    assert usage_trend(callers) == (found if found is None else pytest.approx(found))


@given(st.lists(st.integers(0, 1000).map(float), min_size=7, max_size=60))
def test_a_day_without_callers_is_predicted_only_if_the_number_of_callers_decreases(
    callers: list[float],
) -> None:
    found = usage_trend(callers)
    assert found is not None
    assert found.level >= 0
    if found.days is not None:
        assert found.days >= 0
        assert found.slope < 0 or not any(callers[-7:])
