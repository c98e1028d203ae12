"""Wrap and unwrap: a value in one version, a list with that value in the other."""

import json
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.change import Change, for_patch, inverse
from gateway.conversion.changes.default import default
from gateway.conversion.changes.rename import rename
from gateway.conversion.changes.wrap import Nothing, wrap
from gateway.conversion.conversion_error import Beside
from gateway.conversion.document import PLAIN
from tests.gateway.conversion.documents import Json, both, down, fails, jsons, up
from tests.gateway.world import LAW


class TestWrap:
    """The older version has a list."""

    @pytest.mark.parametrize(
        ("newer", "older"), [(1, [1]), ({"a": [2]}, [{"a": [2]}]), ([1, 2], [[1, 2]]), (None, [])]
    )
    def test_a_value_is_wrapped_in_a_list_and_unwrapped(self, newer: Json, older: Json) -> None:
        change = wrap((("i",),), ("f",))
        document = {"i": [{"x": 1, "f": newer, "y": 2}, {}]}
        wrapped = {"i": [{"x": 1, "f": older, "y": 2}, {}]}
        assert json.dumps(both(change, document, upwards=False)) == json.dumps(wrapped)
        assert json.dumps(both(change, wrapped, upwards=True)) == json.dumps(document)
        assert both(inverse(change), document, upwards=True) == wrapped

    @pytest.mark.parametrize("upwards", [False, True])
    def test_wrap_leaves_an_absent_value_absent(self, upwards: bool) -> None:
        assert both(wrap((), ("m", "f")), {"m": None}, upwards) == {"m": None}

    def test_an_upgrade_leaves_null_unchanged(self) -> None:
        assert both(wrap((), ("f",)), {"f": None}, upwards=True) == {"f": None}

    @pytest.mark.parametrize(("value", "kind"), [("x", "a string"), ({}, "an object")])
    def test_a_value_that_is_not_a_list_is_refused(self, value: Json, kind: str) -> None:
        with fails("/f", f"expected an array, found {kind}"):
            up(wrap((), ("f",)), {"f": value})

    def test_a_list_of_several_elements_is_cut_to_the_first_or_refused(self) -> None:
        assert both(wrap((), ("f",)), {"f": [1, 2]}, upwards=True) == {"f": 1}
        with fails("/f", "an array of several elements"):
            up(wrap((), ("f",), "refuse"), {"f": [1, 2]})
        assert up(wrap((), ("f",), "refuse"), {"f": [1]}) == {"f": 1}


LISTS = wrap((("i",),), ("m", "f"), "keep")
"""The newer version has a single element without a list, and null for an empty list."""
NONE_LEFT_OUT = wrap((("i",),), ("m", "f"), "keep", "absent")
NONE_AS_IT_IS = wrap((("i",),), ("m", "f"), "keep", "list")


class TestCollapsed:
    """The newer version has the element itself instead of a list with one element."""

    @pytest.mark.parametrize("change", [LISTS, NONE_LEFT_OUT, NONE_AS_IT_IS])
    @pytest.mark.parametrize(
        ("newer", "older"),
        [(1, [1]), ({"a": 2}, [{"a": 2}]), ([1, 2], [1, 2]), ([[1], None], [[1], None])],
    )
    def test_a_list_of_several_elements_remains_a_list(
        self, change: Change, newer: Json, older: Json
    ) -> None:
        document = {"i": [{"m": {"f": newer, "x": 1}}, {"m": None}, None]}
        wrapped = {"i": [{"m": {"f": older, "x": 1}}, {"m": None}, None]}
        assert both(change, document, upwards=False) == wrapped
        assert both(change, wrapped, upwards=True) == document

    @pytest.mark.parametrize(
        ("change", "newer", "older"),
        [
            (LISTS, {"f": None}, {"f": []}),
            (NONE_LEFT_OUT, {}, {"f": []}),
            (NONE_LEFT_OUT, {"f": None}, {"f": None}),
            (NONE_AS_IT_IS, {"f": []}, {"f": []}),
            (NONE_AS_IT_IS, {"f": None}, {"f": None}),
            (NONE_AS_IT_IS, {}, {}),
        ],
    )
    def test_an_empty_list_becomes_null_absent_or_an_empty_list(
        self, change: Change, newer: Json, older: Json
    ) -> None:
        assert both(change, {"i": [{"m": newer}]}, upwards=False) == {"i": [{"m": older}]}
        assert both(change, {"i": [{"m": older}]}, upwards=True) == {"i": [{"m": newer}]}

    def test_an_empty_list_can_be_kept_if_lists_are_cut_to_one_element(self) -> None:
        change = wrap((), ("f",), empty="list")
        assert both(change, {"f": []}, upwards=False) == {"f": []}
        assert both(change, {"f": [[]]}, upwards=True) == {"f": []}
        assert both(change, {"f": [1]}, upwards=False) == {"f": [[1]]}

    @pytest.mark.parametrize("element", [None, [], [1]])
    def test_an_only_element_that_is_null_or_a_list_is_refused(self, element: Json) -> None:
        with fails("/f/0", "is the only element, and would come back as the whole array"):
            up(wrap((), ("f",), "keep"), {"f": [element]})

    def test_null_in_a_merge_patch_becomes_an_empty_list(self) -> None:
        change = wrap((), ("f",), "keep", "absent").for_patch()
        assert both(change, {}, upwards=False) == {}
        assert both(change, {"f": None}, upwards=False) == {"f": []}
        assert both(change, {"f": []}, upwards=True) == {"f": None}
        assert NONE_LEFT_OUT.for_patch() == NONE_LEFT_OUT  # PATCH replaces an array as a whole

    def test_a_downgrade_adds_no_empty_list_to_a_form(self) -> None:
        change = wrap((), ("f",), empty="absent")
        assert down(change, {}, replace(PLAIN, typed=False)) == {}

    def test_an_error_names_the_location_before_wrapping(self) -> None:
        change = wrap((), ("f",), "keep")
        assert change.up.origin(("f", 1, "x")) == ("f", 1, "x")
        assert change.down.origin(("f", 0, "x")) == ("f", 0, "x")
        assert change.up.origin(("f", "x")) == ("f", 0, "x")
        assert change.up.origin(("g",)) == ("g",)
        assert change.up.origin(Beside("query")) == Beside("query")


@LAW
@given(
    st.sampled_from(get_args(Nothing)),
    st.lists(jsons, max_size=3).filter(lambda a: len(a) != 1 or not isinstance(a[0], list | None)),
)
def test_any_collapsed_list_survives_a_round_trip(empty: Nothing, older: list[Json]) -> None:
    change = wrap((), ("f",), "keep", empty)
    assert down(change, up(change, {"f": older})) == {"f": older}


@LAW
@given(st.fixed_dictionaries({"x": jsons, "f": jsons, "y": jsons}))
def test_any_wrapped_value_survives_a_round_trip(document: Json) -> None:
    for many in ("first", "refuse"):
        change = wrap((), ("f",), many)
        assert json.dumps(up(change, down(change, document))) == json.dumps(document)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ({"cpu": 70}, {"spec": {"metrics": [{"value": 70, "type": "cpu"}]}}),
        ({"cpu": None}, {"spec": {"metrics": [{"value": None, "type": "cpu"}]}}),
        ({"other": 1}, {"other": 1}),
        ({"spec": {"max": 1}}, {"spec": {"max": 1}}),
    ],
)
def test_a_patch_sends_an_element_with_its_defaults_since_it_replaces_the_whole_list(
    older: Json, newer: Json
) -> None:
    changes = for_patch(
        (
            rename((), ("spec", "metrics", "value"), ("cpu",)),
            default((), ("spec", "metrics", "type"), "cpu"),
            default((), ("spec", "min"), 1),
            inverse(wrap((), ("spec", "metrics"))),
        )
    )
    made = older
    for change in changes:
        made = up(change, made)
    assert made == newer
