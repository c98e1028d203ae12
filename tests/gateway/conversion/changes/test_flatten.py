"""Flatten: an object in the newer version, fields with a prefix in the older version."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.change import inverse
from gateway.conversion.changes.flatten import flatten
from gateway.conversion.conversion_error import Beside, ErrorPlace
from gateway.conversion.document import MISSING
from tests.gateway.conversion.documents import Json, both, down, fails, jsons, up
from tests.gateway.world import LAW

BUT = frozenset({"attr_n"})
ATTRIBUTES = flatten((("i",),), ("m", "attributes"), "attr_", BUT)


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ({"attributes": {"a": 1, "b": None}}, {"attr_a": 1, "attr_b": None}),
        (
            {"x": 1, "attr_n": 2, "attributes": {"": {"y": []}}},
            {"x": 1, "attr_n": 2, "attr_": {"y": []}},
        ),
        ({"x": 1}, {"x": 1}),
    ],
)
def test_a_flattened_object_survives_a_round_trip(newer: Json, older: Json) -> None:
    assert both(ATTRIBUTES, {"i": [{"m": newer}, {"m": None}]}, upwards=False) == {
        "i": [{"m": older}, {"m": None}]
    }
    assert both(ATTRIBUTES, {"i": [{"m": older}, {}]}, upwards=True) == {"i": [{"m": newer}, {}]}
    assert both(inverse(ATTRIBUTES), {"i": [{"m": older}]}, upwards=False) == {"i": [{"m": newer}]}


@pytest.mark.parametrize("empty", [MISSING, None, {}])
def test_an_empty_object_is_flattened_to_no_fields(empty: Json) -> None:
    change = flatten((), ("a",), "x_", empty=empty)
    back = {} if empty is MISSING else {"a": empty}
    newer: Json
    for newer in ({}, {"a": {}}, {"a": None}):
        assert both(change, newer, upwards=False) == {}
        assert up(change, {}) == back


def test_an_empty_prefix_nests_all_fields_except_the_named_ones() -> None:
    """Every field name begins with the empty prefix."""
    change = flatten((), ("extra",), "", frozenset({"id"}))
    newer = {"id": 1, "extra": {"a": 2, "extra": 3}}
    assert down(change, newer) == {"id": 1, "a": 2, "extra": 3}
    assert up(change, {"id": 1, "a": 2, "extra": 3}) == newer


names = st.sampled_from(["a", "attr_a", "n", ""])


@LAW
@given(st.dictionaries(names, jsons, min_size=1), st.dictionaries(st.sampled_from("xy"), jsons))
def test_any_flattened_object_survives_a_round_trip(members: Json, others: Json) -> None:
    change = flatten((), ("o",), "attr_")
    newer = {**others, "o": members}
    assert up(change, down(change, newer)) == newer


@LAW
@given(st.dictionaries(st.sampled_from(["attr_a", "attr_attr_b", "attr_", "x", "attr"]), jsons))
def test_nested_fields_survive_a_round_trip(older: Json) -> None:
    change = flatten((), ("o",), "attr_")
    assert down(change, up(change, older)) == older


@pytest.mark.parametrize(
    ("upwards", "document", "at", "reason"),
    [
        (True, {"attributes": 1}, "/attributes", "already exists"),
        (False, {"attributes": []}, "/attributes", "expected an object, found an array"),
        (
            False,
            {"attr_x": 1, "attributes": {}},
            "/attr_x",
            "would become a member of another field in the reverse direction",
        ),
        (
            False,
            {"attributes": {"n": 1}},
            "/attributes/n",
            "becomes 'attr_n', which is another field",
        ),
    ],
)
def test_a_value_that_flatten_could_not_restore_is_refused(
    upwards: bool, document: Json, at: str, reason: str
) -> None:
    with fails(f"/i/0/m{at}", reason):
        (up if upwards else down)(ATTRIBUTES, {"i": [{"m": document}]})


def test_flatten_applies_to_the_body_of_a_patch_request() -> None:
    change = flatten((), ("a",), "x_", empty={}).for_patch()
    assert up(change, {}) == {}
    assert both(change, {"x_b": None}, upwards=True) == {"a": {"b": None}}
    assert down(change, {"a": {}}) == {}
    with fails("/a", "expected an object, found null"):
        down(change, {"a": None})
    assert ATTRIBUTES.for_patch() == ATTRIBUTES  # PATCH replaces an array as a whole


@pytest.mark.parametrize(
    ("upwards", "place", "before"),
    [
        (True, ("m", "attributes", "a", 0), ("m", "attr_a", 0)),
        (True, ("m", "attributes"), ("m",)),
        (True, ("m", "attr_n"), ("m", "attr_n")),
        (True, ("m",), ("m",)),
        (False, ("m", "attr_a", 0), ("m", "attributes", "a", 0)),
        (False, ("m", "attr_n"), ("m", "attr_n")),
        (False, ("x", "attr_a"), ("x", "attr_a")),
        (False, Beside("query"), Beside("query")),
    ],
)
def test_the_error_for_a_flattened_field_names_its_original_location(
    upwards: bool, place: ErrorPlace, before: ErrorPlace
) -> None:
    assert ATTRIBUTES.directed(upwards=upwards).origin(place) == before
