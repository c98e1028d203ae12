"""Rename: a field has another name in the older version, or is in another object."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.change import Change
from gateway.conversion.changes.rename import rename
from gateway.conversion.document import PLAIN
from gateway.conversion.field_path import parse_path
from tests.gateway.conversion.documents import (
    SCOPES,
    SEALED,
    Json,
    documents,
    down,
    fails,
    jsons,
    mixed,
    seal,
    unsealed,
    untouched,
    up,
)
from tests.gateway.world import LAW


def rename_of(newer: str, older: str) -> Change:
    one, other = parse_path(newer), parse_path(older)
    assert one.scopes == other.scopes
    return rename(one.scopes, one.keys, other.keys)


@pytest.mark.parametrize(
    ("change", "newer", "older"),
    [
        (rename_of("b", "a"), {"x": 1, "b": 2, "y": 3}, {"x": 1, "a": 2, "y": 3}),
        (rename_of("b", "a"), {"b": None}, {"a": None}),
        (rename_of("b", "a"), {"x": 1}, {"x": 1}),
        (rename_of("b", "a"), {}, {}),
        (rename_of("m.b", "m.a"), {"m": {"b": 1, "x": 2}}, {"m": {"a": 1, "x": 2}}),
        (rename_of("m.b", "m.a"), {"m": None}, {"m": None}),
        (rename_of("m.b", "m.a"), {"x": 1}, {"x": 1}),
        # moved into an object, and out of an object
        (rename_of("m.b", "b"), {"x": 1, "m": {"b": 2}, "y": 3}, {"x": 1, "b": 2, "y": 3}),
        (rename_of("m.n.b", "a"), {"m": {"n": {"b": 2}}, "y": 3}, {"a": 2, "y": 3}),
        (rename_of("a", "m.n.b"), {"a": 2, "y": 3}, {"m": {"n": {"b": 2}}, "y": 3}),
        (rename_of("m.b", "b"), {"m": {"x": 1, "b": 2}}, {"m": {"x": 1}, "b": 2}),
        (rename_of("m.b", "n.b"), {"m": {"x": 1, "b": 2}}, {"m": {"x": 1}, "n": {"b": 2}}),
        (rename_of("m.b", "n.b"), {"m": {"b": 2}, "y": 3}, {"n": {"b": 2}, "y": 3}),
        # moved to the name of the object that contains the field
        (rename_of("m.b", "m"), {"x": 1, "m": {"b": 2}, "y": 3}, {"x": 1, "m": 2, "y": 3}),
        (rename_of("p.m.b", "p.m"), {"p": {"m": {"b": 2}, "y": 3}}, {"p": {"m": 2, "y": 3}}),
        (rename_of("i[].b", "i[].a"), {"i": [{"b": 1}, {"x": 2}]}, {"i": [{"a": 1}, {"x": 2}]}),
        (rename_of("i[].m.b", "i[].b"), {"i": [{"m": {"b": 1}}]}, {"i": [{"b": 1}]}),
        (rename_of("i[][].b", "i[][].a"), {"i": [[{"b": 1}], None]}, {"i": [[{"a": 1}], None]}),
    ],
)
@pytest.mark.parametrize("sealed", [False, True])
def test_a_field_is_renamed_or_moved_in_both_directions(
    change: Change, newer: Json, older: Json, sealed: bool
) -> None:
    with untouched(newer, older):
        if sealed:
            assert json.dumps(unsealed(down(change, seal(newer), SEALED))) == json.dumps(older)
            assert json.dumps(unsealed(up(change, seal(older), SEALED))) == json.dumps(newer)
        else:
            assert json.dumps(down(change, newer)) == json.dumps(older)
            assert json.dumps(up(change, older)) == json.dumps(newer)


def test_a_field_is_moved_into_an_existing_container() -> None:
    assert up(rename_of("m.b", "b"), {"b": 2, "m": {"x": 1}}) == {"m": {"x": 1, "b": 2}}


@pytest.mark.parametrize(
    ("newer", "older", "given", "becomes"),
    [
        ("b", "x", '{"a": 1, "x": 2, "c": 3}', '{"a": 1, "b": 2, "c": 3}'),
        ("m.b", "m.x", '{"m": {"x": 2, "c": 3}}', '{"m": {"b": 2, "c": 3}}'),
        ("m.b", "x", '{"x": 2, "c": 3}', '{"m": {"b": 2}, "c": 3}'),
        ("b", "m.x", '{"m": {"x": 2}, "c": 3}', '{"b": 2, "c": 3}'),
        ("b", "m.x", '{"m": {"x": 2, "y": 1}, "c": 3}', '{"m": {"y": 1}, "c": 3, "b": 2}'),
        ("m.b", "x", '{"x": 2, "m": {"y": 1}, "c": 3}', '{"m": {"y": 1, "b": 2}, "c": 3}'),
    ],
)
def test_a_renamed_field_keeps_its_position_or_is_appended(
    newer: str, older: str, given: str, becomes: str
) -> None:
    """The rule is described in docs/convert.md."""
    assert json.dumps(up(rename_of(newer, older), json.loads(given))) == becomes


@pytest.mark.parametrize(
    ("change", "older", "at", "reason"),
    [
        (rename_of("b", "a"), {"a": 1, "b": 2}, "/b", "already exists, and /a would become it"),
        (rename_of("b", "a"), {"a": 1, "b": None}, "/b", "already exists, and /a would become it"),
        (
            rename_of("m.b", "m.a"),
            {"m": {"a": 1, "b": 2}},
            "/m/b",
            "already exists, and /m/a would become it",
        ),
        (
            rename_of("b", "m"),
            {"m": {"x": 1}, "b": 2},
            "/b",
            "already exists, and /m would become it",
        ),
        (rename_of("m.b", "b"), {"b": 1, "m": None}, "/m", "expected an object, found null"),
        (rename_of("m.b", "b"), {"b": 1, "m": "x"}, "/m", "expected an object, found a string"),
        (rename_of("m.b", "m.a"), {"m": []}, "/m", "expected an object, found an array"),
        (
            rename_of("i[].b", "i[].m.n.b"),
            {"i": [{"m": {"n": True}}]},
            "/i/0/m/n",
            "expected an object, found a boolean",
        ),
    ],
)
def test_a_rename_that_would_overwrite_a_value_is_refused(
    change: Change, older: Json, at: str, reason: str
) -> None:
    with untouched(older), fails(at, reason):
        up(change, older)


@pytest.mark.parametrize("identity", ["cus_1", 7])
def test_a_rename_inside_an_object_leaves_an_id_of_the_object_unchanged(identity: Json) -> None:
    for change in (rename_of("m.a", "m.b"), rename_of("m.a", "a")):
        assert up(change, {"m": identity}) == down(change, {"m": identity}) == {"m": identity}
    assert down(rename_of("i[].a", "i[].b"), {"i": [identity, {"a": 1}]}) == {
        "i": [identity, {"b": 1}]
    }


def test_a_rename_between_two_objects_refuses_an_id() -> None:
    with fails("/m", "expected an object, found a string"):
        down(rename_of("m.a", "o.b"), {"m": "cus_1"})


def test_an_object_that_was_sent_empty_stays_after_other_changes_filled_and_emptied_it() -> None:
    filled = down(rename_of("m.a", "x"), down(rename_of("x", "m.a"), {"x": 1, "m": {}}))
    assert filled == {"x": 1, "m": {}}
    assert down(rename_of("m.a", "x"), {"m": {"a": 1}}) == {"x": 1}


@st.composite
def cases(draw: st.DrawFn) -> tuple[Change, Json]:
    scopes = SCOPES[draw(st.sampled_from(sorted(SCOPES)))]
    places = [("new",), ("box", "new"), ("box", "in", "new")]
    newer = draw(st.sampled_from(places))
    older = draw(
        st.sampled_from([("old",), ("chest", "old"), ("box", "old"), ("box", "in", "old")])
    )

    @st.composite
    def leaf(draw: st.DrawFn) -> Json:
        value = draw(jsons)
        for key in reversed(older):
            value = {key: value}
        return draw(mixed(*(value.items() if draw(st.booleans()) else ())))

    return rename(scopes, newer, older), draw(documents(scopes, leaf()))


@LAW
@given(cases())
def test_a_rename_survives_a_round_trip_with_the_order_of_fields(case: tuple[Change, Json]) -> None:
    change, older = case
    with untouched(older):
        newer = up(change, older)
        assert json.dumps(down(change, newer)) == json.dumps(older)
        sealed = up(change, seal(older), SEALED)
        assert json.dumps(unsealed(sealed)) == json.dumps(newer)


def test_an_absent_field_is_not_created_by_a_rename() -> None:
    fields: dict[str, object] = {"a": {"c": 1}}
    rename((), ("b",), ("a", "x")).up.step(fields, PLAIN)
    assert fields == {"a": {"c": 1}}
