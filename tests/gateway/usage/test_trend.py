"""Usage trend: a line through the last days that ignores a few unusual ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.usage.history import UsageTrend, usage_trend

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
def test_the_trend_is_the_median_slope_of_28_days(
    callers: list[float], found: UsageTrend | None
) -> None:
    assert usage_trend(callers) == (found if found is None else pytest.approx(found))


@given(st.lists(st.integers(0, 1000).map(float), min_size=7, max_size=60))
def test_a_day_without_callers_is_predicted_only_from_a_decrease(callers: list[float]) -> None:
    found = usage_trend(callers)
    assert found is not None
    assert found.level >= 0
    if found.days is not None:
        assert found.days >= 0
        assert found.slope < 0 or not any(callers[-7:])
