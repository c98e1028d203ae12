"""Join pairs: an object in the newer version, one string with its members in the older version."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.conversion.change import Change, inverse
from gateway.conversion.changes.join_list import join_pairs
from gateway.conversion.conversion_error import ConversionError
from tests.gateway.conversion.documents import Json, both, down, fails, up
from tests.gateway.world import LAW

PAIRS = join_pairs((("i",),), ("m", "attrs"), ";", "=")


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ({"color": "red", "size": "5"}, "color=red;size=5"),
        ({"a": "b=c", "": ""}, "a=b=c;="),
        ({}, ""),
        (None, None),
    ],
)
def test_joined_pairs_survive_a_round_trip(newer: Json, older: Json) -> None:
    newer, older = {"i": [{"m": {"attrs": newer}}, {}]}, {"i": [{"m": {"attrs": older}}, {}]}
    assert both(PAIRS, newer, upwards=False) == older
    assert both(PAIRS, older, upwards=True) == newer
    assert both(inverse(PAIRS), older, upwards=False) == newer


separators = st.sampled_from([(";", "="), ("; ", ": "), (";;", "=="), ("==", "="), ("=", "==")])


@LAW
@given(
    separators, st.dictionaries(*[st.text(st.sampled_from("a;= :"), max_size=3)] * 2, max_size=3)
)
def test_any_object_survives_a_round_trip_as_joined_pairs_or_is_refused(
    words: tuple[str, str], newer: Json
) -> None:
    change = join_pairs((), ("a",), *words)
    try:
        older = down(change, {"a": newer})
    except ConversionError:
        assume(False)
    assert up(change, older) == {"a": newer}


@LAW
@given(separators, st.text(st.sampled_from("ab;= :"), max_size=8))
def test_any_string_of_pairs_survives_a_round_trip_or_is_refused(
    words: tuple[str, str], older: str
) -> None:
    change = join_pairs((), ("a",), *words)
    try:
        newer = up(change, {"a": older})
    except ConversionError:
        assume(False)
    assert down(change, newer) == {"a": older}


@pytest.mark.parametrize(
    ("change", "upwards", "value", "at", "reason"),
    [
        (PAIRS, True, [], "", "expected a string, found an array"),
        (PAIRS, True, "a=1;b", "", "a part of the string has no '='"),
        (PAIRS, True, "a=1;a=2", "", "a key occurs twice in the string"),
        (PAIRS, False, "a", "", "expected an object, found a string"),
        (PAIRS, False, {"a": 1}, "/a", "expected a string, found a number"),
        (PAIRS, False, {"a": "x;y"}, "/a", "contains ';', or its key contains '='"),
        (PAIRS, False, {"a=b": "x"}, "/a=b", "contains ';', or its key contains '='"),
        (
            join_pairs((("i",),), ("m", "attrs"), ";;", "="),
            False,
            {"a": ";", "b": ""},
            "",
            "a key or value begins or ends with a part of ';;'",
        ),
    ],
)
def test_pairs_that_could_not_be_restored_are_refused(
    change: Change, upwards: bool, value: Json, at: str, reason: str
) -> None:
    with fails(f"/i/0/m/attrs{at}", reason):
        (up if upwards else down)(change, {"i": [{"m": {"attrs": value}}]})


def test_the_error_for_a_pair_names_the_whole_string() -> None:
    """A pair inside the string has no separate location."""
    assert PAIRS.up.origin(("m", "attrs", "a")) == ("m", "attrs")
    assert PAIRS.down.origin(("m",)) == ("m",)
