"""Join list: a list of strings in the newer version, one string in the older version."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.change import inverse
from gateway.conversion.changes.join_list import join_list, split_text
from gateway.conversion.conversion_error import ConversionError
from tests.gateway.conversion.documents import Json, both, fails
from tests.gateway.world import LAW

TAGS = join_list((("i",),), ("m", "tags"), ", ")


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ({"m": {"tags": ["a", "b"], "x": 1}}, {"m": {"tags": "a, b", "x": 1}}),
        ({"m": {"tags": ["a"]}}, {"m": {"tags": "a"}}),
        ({"m": {"tags": []}}, {"m": {"tags": ""}}),
        ({"m": {"tags": ["", "", "a,b"]}}, {"m": {"tags": ", , a,b"}}),
        ({"m": {"tags": None}}, {"m": {"tags": None}}),
        ({"m": {}}, {"m": {}}),
        ({"m": None}, {"m": None}),
        (None, None),
    ],
)
def test_a_joined_list_survives_a_round_trip(newer: Json, older: Json) -> None:
    assert both(TAGS, {"i": [newer]}, upwards=False) == {"i": [older]}
    assert both(TAGS, {"i": [older]}, upwards=True) == {"i": [newer]}
    assert both(inverse(TAGS), {"i": [older]}, upwards=False) == {"i": [newer]}


@LAW
@given(st.text(st.sampled_from("a, ")))
def test_any_split_string_survives_a_round_trip(older: str) -> None:
    change = join_list((), ("a",), ",")
    newer = both(change, {"a": older}, upwards=True)
    assert both(change, newer, upwards=False) == {"a": older}


@LAW
@given(
    st.lists(st.text(st.sampled_from("ab "), max_size=2), max_size=3).filter(lambda t: t != [""])
)
def test_any_joined_list_survives_a_round_trip(newer: list[str]) -> None:
    change = join_list((), ("a",), ",")
    older = both(change, {"a": newer}, upwards=False)
    assert both(change, older, upwards=True) == {"a": newer}


@pytest.mark.parametrize(
    ("tags", "at", "reason"),
    [
        ("a", "", "expected an array, found a string"),
        ([1], "/0", "expected a string, found a number"),
        (["a", None], "/1", "expected a string, found null"),
        (["a", "b, c"], "/1", "a string that contains ', '"),
        ([""], "/0", "an empty string alone, which would become an empty list"),
    ],
)
def test_a_list_that_could_not_be_restored_is_refused(tags: Json, at: str, reason: str) -> None:
    with fails(f"/i/0/m/tags{at}", reason):
        both(TAGS, {"i": [{"m": {"tags": tags}}]}, upwards=False)


def test_an_element_that_would_form_a_separator_with_its_neighbour_is_refused() -> None:
    change = join_list((), ("a",), ";;")
    assert both(change, {"a": [";a", "b"]}, upwards=False) == {"a": ";a;;b"}
    with fails("/a", "an element begins or ends with a part of ';;'"):
        both(change, {"a": ["a;", "b"]}, upwards=False)


def test_splitting_a_value_that_is_not_a_string_is_refused() -> None:
    with fails("/i/0/m/tags", "expected a string, found an array"):
        both(TAGS, {"i": [{"m": {"tags": []}}]}, upwards=True)


def test_a_string_with_too_many_separators_is_refused() -> None:
    with pytest.raises(ConversionError, match="a string of more than 1000000 pieces"):
        split_text(";" * 1_000_000, ";")
