"""Decline: the day of zero is where the line leads, whatever a few days are like."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.lifecycle.decline import Decline, decline

CASES = {
    "too few days": ([5.0] * 6, None),
    "steady": ([5.0] * 10, Decline(5, 0, None)),
    "more and more": ([float(day) for day in range(10)], Decline(9, 1, None)),
    "fewer and fewer": ([20.0 - day for day in range(10)], Decline(11, -1, 11)),
    "with a holiday": ([20.0, 19, 18, 17, 0, 15, 14, 13, 12, 11], Decline(11, -1, 11)),
    "long ago": ([900.0] * 99 + [40.0 - day for day in range(28)], Decline(13, -1, 13)),
    "nobody for a week": ([9.0] * 3 + [0.0] * 7, Decline(0, 0, 0)),
}  # fmt: skip


@pytest.mark.parametrize(("callers", "found"), CASES.values(), ids=CASES)
def test_decline(callers: list[float], found: Decline | None) -> None:
    assert decline(callers) == (found if found is None else pytest.approx(found))


@given(st.lists(st.integers(0, 1000).map(float), min_size=7, max_size=60))
def test_a_day_is_named_only_if_they_become_fewer(callers: list[float]) -> None:
    found = decline(callers)
    assert found is not None
    assert found.level >= 0
    if found.days is not None:
        assert found.days >= 0
        assert found.slope < 0 or not any(callers[-7:])
