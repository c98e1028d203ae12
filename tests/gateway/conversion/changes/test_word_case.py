"""Case: names are converted between camel, Pascal, snake, kebab and upper-case snake."""

from itertools import permutations
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.changes import case
from gateway.conversion.changes.case import CaseName, rewrite_case
from tests.gateway.world import LAW

ROWS = [
    ("id", "Id", "id", "id", "ID"),
    ("orderLine", "OrderLine", "order_line", "order-line", "ORDER_LINE"),
    ("line1", "Line1", "line1", "line1", "LINE1"),
    ("customerID", "CustomerID", "customer_i_d", "customer-i-d", "CUSTOMER_I_D"),
    ("aB2cD", "AB2cD", "a_b2c_d", "a-b2c-d", "A_B2C_D"),
]


@pytest.mark.parametrize("row", ROWS)
def test_a_name_is_converted_between_all_cases(row: tuple[str, ...]) -> None:
    for (source, name), (target, expected) in permutations(
        zip(get_args(CaseName), row, strict=True), 2
    ):
        rewriting = rewrite_case(source, target)
        assert rewriting(name) == expected
        assert rewriting(name) == expected  # from the cache


@pytest.mark.parametrize("name", ["", "line_1", "_id", "$ref", "my key", "é", "a__b", "Http_x"])
def test_a_name_in_neither_case_is_unchanged(name: str) -> None:
    assert rewrite_case("snake", "camel")(name) == name
    assert rewrite_case("camel", "snake")(name) == name


def test_a_name_already_in_the_other_case_is_refused_or_kept() -> None:
    with pytest.raises(ValueError, match=r"^expected snake case, found camel case$"):
        rewrite_case("snake", "camel")("orderLine")
    assert rewrite_case("snake", "camel", keep=True)("orderLine") == "orderLine"


def test_the_cache_of_converted_names_is_bounded() -> None:
    rewriting = rewrite_case("snake", "camel")
    before = case._known.cache_info().currsize
    assert rewriting("a_" + "b" * 63) == "aB" + "b" * 62  # too long for the cache
    assert case._known.cache_info().currsize == before
    for number in range(5000):
        assert rewriting(f"a_b{number}") == f"aB{number}"
    assert case._known.cache_info().currsize == 4096


names = st.text(st.sampled_from("abAB1_-"), max_size=6)


@LAW
@given(names, st.sampled_from(get_args(CaseName)), st.sampled_from(get_args(CaseName)))
def test_a_converted_name_survives_a_round_trip(
    name: str, source: CaseName, target: CaseName
) -> None:
    try:
        there = rewrite_case(source, target)(name)
    except ValueError:
        return
    assert rewrite_case(target, source)(there) == name
