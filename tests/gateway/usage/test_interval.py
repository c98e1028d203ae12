"""An interval adds up, comes back from its row, and knows its quantiles."""

import pytest

from gateway.usage.delta import BOUNDS
from gateway.usage.interval import Interval, Resolution

NONE = [0] * (len(BOUNDS) + 1)


@pytest.mark.parametrize(
    ("by", "at", "start"),
    [
        (Resolution.MINUTE, 119.9, 60),
        (Resolution.MINUTE, 120.0, 120),
        (Resolution.DAY, 86_399.9, 0),
        (Resolution.DAY, 86_400.0, 86_400),
    ],
)
def test_when_intervals_begin(by: Resolution, at: float, start: int) -> None:
    assert by.start(at) == start


def test_a_row_comes_back() -> None:
    one = Interval(Resolution.DAY)
    one.add_counts(5, 2, 1)
    one.add_durations([5, *NONE[1:]], 0.25)
    one.callers.add([7, 8])
    twice = Interval(Resolution.DAY, *one.numbers())
    twice.add(one)
    assert (twice.requests, twice.errors, twice.refused, twice.seconds) == (10, 4, 2, 0.5)
    assert list(twice.buckets) == [10, *NONE[1:]]
    assert twice.callers.count == 2


def test_durations_of_another_release_are_left_out() -> None:
    """It may have had other bounds."""
    interval = Interval(Resolution.DAY, 5, 0, 0, 0.5, bytes(8 * 5), b"")
    assert list(interval.buckets) == NONE
    assert interval.quantile(0.5) is None
    assert interval.requests == 5


@pytest.mark.parametrize("parts", [0, 1, 3])
def test_a_total(parts: int) -> None:
    """It is that of adding one after the other, but for the callers."""
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
def test_quantiles(share: float, expected: float) -> None:
    interval = Interval(Resolution.MINUTE)
    interval.add_durations([4, 2, *NONE[2:-1], 2], 0.0)
    assert interval.quantile(share) == pytest.approx(expected)
