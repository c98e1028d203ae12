"""Joined: several parameters in one, there and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.changes.join import Joined
from tests.gateway.world import LAW

RANGE = Joined(("from", "to"), "dates", "..", closed=True)
SORT = Joined(("sort", "order"), "by", ":")


@pytest.mark.parametrize(
    ("joined", "parts", "whole"),
    [
        (RANGE, {"from": "1", "to": "2"}, "1..2"),
        (RANGE, {"from": "1"}, "1.."),
        (RANGE, {"to": "2"}, "..2"),
        (SORT, {"sort": "a"}, "a"),
        (SORT, {"sort": "a", "order": "b:c"}, "a:b:c"),
        (SORT, {"order": "b"}, ":b"),
    ],
)
def test_both_ways(joined: Joined, parts: dict[str, str], whole: str) -> None:
    assert joined.join(parts) == {joined.whole: whole}
    assert joined.split({joined.whole: whole}) == parts


def test_a_part_with_the_separator_in_it() -> None:
    with pytest.raises(ValueError, match="has ':' in it, which separates the parts"):
        SORT.join({"sort": "a:b"})


texts = st.text("ab.", min_size=1, max_size=3).filter(lambda text: "." not in text)


@LAW
@given(
    st.fixed_dictionaries({"from": texts}, optional={"to": texts}),
    st.sampled_from([RANGE, Joined(("from", "to"), "dates", "..")]),
)
def test_there_and_back(parts: dict[str, str], joined: Joined) -> None:
    assert joined.split(joined.join(parts)) == parts
