"""Wrap and unwrap: a value, and the list of it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.conversion.change import Inverse
from gateway.core.conversion.changes.wrap import Wrap
from tests.gateway.core.conversion.documents import (
    Json,
    both,
    down,
    fails,
    jsons,
    up,
)
from tests.gateway.core.world import LAW


class TestWrap:
    """The older version has a list."""

    @pytest.mark.parametrize(
        ("newer", "older"), [(1, [1]), ({"a": [2]}, [{"a": [2]}]), ([1, 2], [[1, 2]]), (None, [])]
    )
    def test_both_ways(self, newer: Json, older: Json) -> None:
        change = Wrap((("i",),), ("f",))
        document = {"i": [{"x": 1, "f": newer, "y": 2}, {}]}
        wrapped = {"i": [{"x": 1, "f": older, "y": 2}, {}]}
        assert json.dumps(both(change, document, upwards=False)) == json.dumps(wrapped)
        assert json.dumps(both(change, wrapped, upwards=True)) == json.dumps(document)
        assert both(Inverse(change), document, upwards=True) == wrapped

    @pytest.mark.parametrize("upwards", [False, True])
    def test_what_is_absent_stays_absent(self, upwards: bool) -> None:
        assert both(Wrap((), ("m", "f")), {"m": None}, upwards) == {"m": None}

    def test_null_is_no_list(self) -> None:
        assert both(Wrap((), ("f",)), {"f": None}, upwards=True) == {"f": None}

    @pytest.mark.parametrize(("value", "kind"), [("x", "a string"), ({}, "an object")])
    def test_what_is_no_list_is_refused(self, value: Json, kind: str) -> None:
        with fails("/f", f"expected an array, found {kind}"):
            up(Wrap((), ("f",)), {"f": value})

    def test_several_are_cut_or_refused(self) -> None:
        assert both(Wrap((), ("f",)), {"f": [1, 2]}, upwards=True) == {"f": 1}
        with fails("/f", "an array of several elements"):
            up(Wrap((), ("f",), strict=True), {"f": [1, 2]})
        assert up(Wrap((), ("f",), strict=True), {"f": [1]}) == {"f": 1}


@LAW
@given(st.fixed_dictionaries({"x": jsons, "f": jsons, "y": jsons}))
def test_what_was_wrapped_is_unwrapped(document: Json) -> None:
    for strict in (False, True):
        change = Wrap((), ("f",), strict)
        assert json.dumps(up(change, down(change, document))) == json.dumps(document)
