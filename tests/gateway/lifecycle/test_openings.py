"""Openings: they are where the windows refuse, the earliest first."""

from itertools import islice
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.lifecycle.brownout import Growth, Window
from gateway.lifecycle.openings import Opening, openings
from tests.gateway.lifecycle.test_brownout import Every, brownout


class Never:
    """A schedule without a time."""

    def around(self, now: float) -> tuple[float, float]:
        return -inf, inf


CASES = {
    "one that is to come": ((Window(100, 200),), 0, [(100, 200, 100)]),
    "one that is open": ((Window(100, 200),), 150, [(100, 200, 100)]),
    "one that is over": ((Window(100, 200),), 200, []),
    "without an end": ((Window(percent=Growth(5, 5)),), 7, [(-inf, inf, 5)]),
    "a schedule that is open": (
        (Window(schedule=Every(100), seconds=Growth(10, 10)),),
        105,
        [(100, 110, 100), (200, 210, 100), (300, 310, 100)],
    ),
    "a schedule that has just closed": (
        (Window(schedule=Every(100), seconds=Growth(10, 10)),),
        110,
        [(200, 210, 100), (300, 310, 100), (400, 410, 100)],
    ),
    "a schedule between two dates, which grows": (
        (Window(0, 250, Every(100), Growth(10, 60), Growth(0, 50)),),
        50,
        [(100, 130, 20), (200, 250, 40)],
    ),
    "a schedule that opened before its first date": (
        (Window(105, 250, Every(100), Growth(20, 20)),),
        0,
        [(105, 120, 100), (200, 220, 100)],
    ),
    "a schedule without a time": ((Window(schedule=Never(), seconds=Growth(1, 1)),), 0, []),
    "two windows, the earliest first": (
        (Window(300, 400), Window(schedule=Every(200), seconds=Growth(10, 10))),
        210,
        [(300, 400, 100), (400, 410, 100), (600, 610, 100)],
    ),
}


@pytest.mark.parametrize(("windows", "now", "found"), CASES.values(), ids=CASES)
def test_openings(windows: tuple[Window, ...], now: float, found: list[Opening]) -> None:
    assert list(islice(openings(brownout(*windows), now), 3)) == found


@given(st.integers(0, 300), st.integers(1, 400), st.integers(1, 60), st.integers(0, 500), st.data())
def test_an_opening_is_where_the_window_is_open(
    begins: int, lasts: int, length: int, now: int, data: st.DataObject
) -> None:
    """At each moment from now on: within an opening if, and only if, requests are refused."""
    window = Window(begins, begins + lasts, Every(70), Growth(length, length))
    moment = data.draw(st.integers(now, now + 500))
    found = [each for each in openings(brownout(window), now) if each.begins <= moment < each.ends]
    assert bool(found) == (window.closes(moment) is not None)
