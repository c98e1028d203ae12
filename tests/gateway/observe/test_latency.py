"""Latency: quantiles within the error that is promised, of histograms added in any order."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.observe.latency import BUCKETS, bucket, quantile

TIMES = st.lists(st.floats(0.0002, 100.0), min_size=1)


@given(TIMES, st.sampled_from([0.5, 0.95, 0.99, 1.0]))
def test_a_quantile_is_at_most_five_percent_off(times: list[float], share: float) -> None:
    exact = sorted(times)[max(0, -int(-share * len(times) // 1) - 1)]
    assert quantile(Counter(map(bucket, times)), share) == pytest.approx(exact, rel=0.05)


@given(TIMES, TIMES)
def test_histograms_add_up(some: list[float], others: list[float]) -> None:
    added = Counter(map(bucket, some)) + Counter(map(bucket, others))
    assert added == Counter(map(bucket, some + others))


def test_the_ends() -> None:
    assert quantile({}, 0.5) == 0
    assert bucket(0) == bucket(-1.0) == bucket(0.0001) == 0
    assert quantile({0: 3}, 0.99) == 0.0001
    assert bucket(1e9) == BUCKETS - 1
    assert quantile({BUCKETS - 1: 1}, 0.5) == pytest.approx(140, rel=0.05)
