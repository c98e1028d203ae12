"""A report crosses from process to process as it is."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gateway.usage.delta import (
    BOUNDS,
    CounterDelta,
    CutoverDelta,
    Delta,
    SampleDelta,
    TrafficDelta,
    UsageDelta,
)
from tests.gateway.world import LAW

TEXT = st.text(max_size=8)
NUMBER = st.integers(0, 2**53)
NUMBERS = st.lists(NUMBER, max_size=4)
SECONDS = st.floats(0, 1e9)


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
                *(NUMBER, NUMBER, NUMBER, NUMBERS, SECONDS, SECONDS, NUMBERS, SECONDS),
            ),
            max_size=2,
        ),
        st.lists(st.builds(SampleDelta, TEXT, TEXT, TEXT, st.dictionaries(TEXT, TEXT)), max_size=2),
    )
)
def test_an_encoded_value_is_decoded_equal(delta: Delta) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(delta), type=Delta) == delta


def test_bounds_of_buckets_rise() -> None:
    assert list(BOUNDS) == sorted(set(BOUNDS))
