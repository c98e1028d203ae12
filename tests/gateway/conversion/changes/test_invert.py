"""Invert: true in the newer version is false in the older version."""

import pytest

from gateway.conversion.changes.invert import invert
from tests.gateway.conversion.documents import Json, both, down, fails, up

CHANGE = invert((), ("m", "f"))


@pytest.mark.parametrize(("newer", "older"), [(True, False), (False, True), (None, None)])
def test_a_boolean_is_inverted_in_both_directions(newer: Json, older: Json) -> None:
    assert both(CHANGE, {"m": {"f": newer}}, upwards=False) == {"m": {"f": older}}
    assert both(CHANGE, {"m": {"f": older}}, upwards=True) == {"m": {"f": newer}}


@pytest.mark.parametrize("document", [{}, {"m": {}}, {"m": None}])
def test_invert_leaves_an_absent_or_null_value_unchanged(document: Json) -> None:
    assert up(CHANGE, document) == down(CHANGE, document) == document


@pytest.mark.parametrize(("value", "kind"), [(1, "a number"), ("true", "a string")])
def test_a_value_that_is_not_a_boolean_is_refused(value: Json, kind: str) -> None:
    with fails("/m/f", f"expected a boolean, found {kind}"):
        up(CHANGE, {"m": {"f": value}})
