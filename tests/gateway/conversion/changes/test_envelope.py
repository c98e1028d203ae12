"""Envelope: a bare value in the newer version, the same value in an object in the older version."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.change import Change, inverse, whole_body
from gateway.conversion.changes.envelope import envelope
from gateway.conversion.changes.rename import rename
from gateway.conversion.field_path import Members
from gateway.conversion.steps import BODY
from tests.gateway.conversion.documents import (
    SEALED,
    Json,
    down,
    fails,
    jsons,
    seal,
    unsealed,
    untouched,
    up,
)
from tests.gateway.world import LAW

LIST = whole_body(envelope((), BODY, ("data",), ("meta", "count")))
ID = envelope((("orders",),), ("customer",), ("id",))


@pytest.mark.parametrize(
    ("change", "newer", "older"),
    [
        (LIST, [{"a": 1}, 2], {"data": [{"a": 1}, 2], "meta": {"count": 2}}),
        (LIST, [], {"data": [], "meta": {"count": 0}}),
        (LIST, None, None),
        (whole_body(envelope((), BODY, ("data",))), {"a": 1}, {"data": {"a": 1}}),
        (whole_body(envelope((), BODY, ("data",))), "a", {"data": "a"}),
        (whole_body(envelope((), BODY, ("a", "b"))), 1.5, {"a": {"b": 1.5}}),
        (
            ID,
            {"orders": [{"customer": 7, "x": 1}, {"customer": None}, {}, None]},
            {"orders": [{"customer": {"id": 7}, "x": 1}, {"customer": None}, {}, None]},
        ),
        (
            envelope((Members(("m",)),), ("a", "b"), ("v",)),
            {"m": {"x": {"a": {"b": "1"}}, "y": {"a": None}}},
            {"m": {"x": {"a": {"b": {"v": "1"}}}, "y": {"a": None}}},
        ),
    ],
)
def test_a_value_in_an_envelope_survives_a_round_trip(
    change: Change, newer: Json, older: Json
) -> None:
    with untouched(newer, older):
        assert down(change, newer) == older
        assert up(change, older) == newer
    assert unsealed(down(change, seal(newer), SEALED)) == older
    assert unsealed(up(change, seal(older), SEALED)) == newer


def test_other_fields_of_an_envelope_are_dropped_or_refused() -> None:
    older: Json = {"a": {"id": 7, "n": 1, "name": "x"}}
    assert up(envelope((), ("a",), ("id",), ("n",)), older) == {"a": 7}
    with fails("/a/name", "a field that the other version cannot hold"):
        up(envelope((), ("a",), ("id",), ("n",), strict=True), older)
    assert up(envelope((), ("a",), ("id",), strict=True), {"a": {"id": 7}}) == {"a": 7}


def test_a_value_that_is_not_an_envelope_is_refused() -> None:
    with fails("", "expected an object, found an array"):
        up(LIST, [])
    with fails("/data", "is missing"):
        up(LIST, {"meta": {}})
    with fails("/orders/1/customer/id", "is missing"):
        up(ID, {"orders": [{}, {"customer": {}}]})
    with fails("/orders/0/customer", "expected an object, found a number"):
        up(ID, {"orders": [{"customer": 7}]})
    with fails("/data", "expected an object, found a boolean"):
        up(whole_body(envelope((), BODY, ("data", "x"))), {"data": True})


def test_a_value_that_is_not_a_list_is_refused_by_an_envelope_with_a_count() -> None:
    with fails("", "expected an array, found an object"):
        down(LIST, {})


def test_changes_before_and_after_an_envelope_apply_to_its_content() -> None:
    """Changes that are listed before the envelope apply to the elements of the bare array."""
    inside, list_name = rename((), ("id",), ("nr",)), rename((), ("rows",), ("data",))
    both = (
        inside,
        whole_body(inverse(envelope((), BODY, ("data",), ("meta", "count")))),
        list_name,
    )
    rows = [{"id": 1}, None, {"id": 2}]
    older, newer = [{"nr": 1}, None, {"nr": 2}], {"meta": {"count": 3}, "rows": rows}
    assert up(both, older) == newer
    assert down(both, newer) == older
    within = (
        whole_body(inverse(envelope((), BODY, ("data",), ("meta", "count")))),
        rename((("data",),), ("id",), ("nr",)),
    )
    counted = {"data": rows, "meta": {"count": 3}}
    assert up(within, older) == counted
    assert down(within, counted) == older


@LAW
@given(st.lists(jsons, max_size=3))
def test_arrays_in_an_envelope_survive_a_round_trip(newer: Json) -> None:
    assert up(LIST, down(LIST, newer)) == newer


def test_an_envelope_applies_to_the_body_of_a_patch_request() -> None:
    assert LIST.for_patch() == LIST
    assert (LIST.scopes, LIST.touches, ID.touches) == ((), ((),), (("customer",),))
