"""Deltas: their encoding between processes, and the histograms of durations."""

from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.rollout.evidence import EvidenceRow
from gateway.usage.delta import (
    BOUNDS,
    LATENCY_BUCKETS,
    CounterDelta,
    CutoverDelta,
    Delta,
    SampleDelta,
    TrafficDelta,
    UsageDelta,
    latency_bucket,
    latency_quantile,
)
from tests.gateway.world import LAW

TEXT = st.text(max_size=8)
NUMBER = st.integers(0, 2**53)
NUMBERS = st.lists(NUMBER, max_size=4)
SECONDS = st.floats(0, 1e9)
COUNTS = st.dictionaries(TEXT, NUMBER, max_size=2)
ROWS = st.builds(EvidenceRow, TEXT, TEXT, NUMBER, COUNTS, *[NUMBER] * 3, SECONDS)


@LAW
@given(
    st.builds(
        Delta,
        SECONDS,
        st.lists(st.builds(UsageDelta, TEXT, TEXT, TEXT, TEXT, *[NUMBER] * 4), max_size=2),
        st.lists(
            st.builds(TrafficDelta, *[TEXT] * 4, NUMBER, TEXT, NUMBERS, SECONDS, NUMBER), max_size=2
        ),
        st.lists(st.builds(CounterDelta, TEXT, st.tuples(TEXT, TEXT), NUMBER), max_size=2),
        st.lists(
            st.builds(
                CutoverDelta,
                *[TEXT] * 3,
                *(NUMBER, NUMBER, NUMBERS, SECONDS, NUMBERS, SECONDS, NUMBER, NUMBER),
                COUNTS,
                st.lists(ROWS, max_size=2),
            ),
            max_size=2,
        ),
        st.lists(st.builds(SampleDelta, TEXT, TEXT, TEXT, st.dictionaries(TEXT, TEXT)), max_size=2),
    )
)
def test_an_encoded_delta_is_decoded_to_an_equal_delta(delta: Delta) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(delta), type=Delta) == delta


def test_the_bounds_of_duration_buckets_are_ascending_and_distinct() -> None:
    assert list(BOUNDS) == sorted(set(BOUNDS))


TIMES = st.lists(st.floats(0.0002, 100.0), min_size=1)


@given(TIMES, st.sampled_from([0.5, 0.95, 0.99, 1.0]))
def test_the_error_of_a_latency_quantile_is_at_most_five_percent(
    times: list[float], share: float
) -> None:
    exact = sorted(times)[max(0, -int(-share * len(times) // 1) - 1)]
    assert latency_quantile(Counter(map(latency_bucket, times)), share) == pytest.approx(
        exact, rel=0.05
    )


@given(TIMES, TIMES)
def test_the_sum_of_two_histograms_is_the_histogram_of_all_times(
    some: list[float], others: list[float]
) -> None:
    added = Counter(map(latency_bucket, some)) + Counter(map(latency_bucket, others))
    assert added == Counter(map(latency_bucket, some + others))


def test_times_beyond_the_bounds_are_counted_in_the_first_or_last_bucket() -> None:
    assert latency_quantile({}, 0.5) == 0
    assert latency_bucket(0) == latency_bucket(-1.0) == latency_bucket(0.0001) == 0
    assert latency_quantile({0: 3}, 0.99) == 0.0001
    assert latency_bucket(1e9) == LATENCY_BUCKETS - 1
    assert latency_quantile({LATENCY_BUCKETS - 1: 1}, 0.5) == pytest.approx(140, rel=0.05)
