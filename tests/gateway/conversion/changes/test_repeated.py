"""Join list of parameters: a repeated parameter becomes one parameter with separators."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.changes.join_list import join_repeated
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.parameter_change import QUERY, in_direction, rewrite_query
from tests.gateway.world import LAW

LIST = join_repeated("tag", ",")


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("tag=a&tag=b&x=1", "tag=a%2Cb&x=1"),
        ("x=1&tag=%41&y", "x=1&tag=%41&y"),
        ("tag=&tag=", "tag=%2C"),
        ("tag", "tag"),
        ("x=a,b", "x=a,b"),
        (None, None),
    ],
)
def test_repeated_parameters_are_joined_and_split(newer: str | None, older: str | None) -> None:
    assert rewrite_query(newer, in_direction([LIST], upwards=False)) == older
    assert rewrite_query(older, in_direction([LIST], upwards=True)) == newer


def test_parameters_separated_by_others_are_joined_at_the_first_position() -> None:
    assert rewrite_query("tag=a&x=1&tag=b", in_direction([LIST], upwards=False)) == "tag=a%2Cb&x=1"
    assert rewrite_query("tag=a,b&tag=c", in_direction([LIST], upwards=True)) == "tag=a&tag=b&tag=c"


def test_a_value_that_contains_the_separator_is_refused() -> None:
    with pytest.raises(ConversionError, match="'tag': contains ',', which separates the values"):
        rewrite_query("tag=a%2Cb", in_direction([LIST], upwards=False))


def test_a_string_with_too_many_values_is_refused() -> None:
    with pytest.raises(ConversionError, match="'tag': would be more than 10000 of them"):
        rewrite_query(f"tag={',' * 10_000}", in_direction([LIST], upwards=True))


@LAW
@given(st.lists(st.text(st.sampled_from("ab &=%"), max_size=2)))
def test_repeated_parameters_survive_a_round_trip(texts: list[str]) -> None:
    query = "&".join(f"tag={QUERY.write(text)}" for text in texts) or None
    assert (
        rewrite_query(
            rewrite_query(query, in_direction([LIST], upwards=False)),
            in_direction([LIST], upwards=True),
        )
        == query
    )
