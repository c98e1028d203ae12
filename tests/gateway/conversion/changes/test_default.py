"""Default and remove: a field that only one version has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.conversion.change import Change
from gateway.conversion.changes.default import default
from gateway.conversion.conversion_error import ConversionError
from gateway.conversion.document import MISSING
from tests.gateway.conversion.documents import (
    ABSENT,
    SCOPES,
    SEALED,
    Json,
    both,
    default_at,
    documents,
    down,
    fields,
    jsons,
    mixed,
    objects,
    seal,
    text,
    unsealed,
    untouched,
    up,
)
from tests.gateway.world import LAW


class TestDefault:
    @pytest.mark.parametrize(
        ("change", "older", "newer"),
        [
            (default_at("x", 1), {}, {"x": 1}),
            (default_at("x", None), {}, {"x": None}),
            (default_at("x", {"y": [1]}), {"a": 1}, {"a": 1, "x": {"y": [1]}}),
            (default_at("m.x", 1), {}, {"m": {"x": 1}}),
            (default_at("m.x", 1), {"m": {"a": 2}}, {"m": {"a": 2, "x": 1}}),
            (default_at("m.n.x", 1), {"m": {"a": 2}}, {"m": {"a": 2, "n": {"x": 1}}}),
            (default_at("m.x", 1), {"m": None}, {"m": None}),
            (default_at("m.n.x", 1), {"m": {"n": None}}, {"m": {"n": None}}),
            (default_at("i[].x", 1), {"i": [{}, {"a": 2}]}, {"i": [{"x": 1}, {"a": 2, "x": 1}]}),
            (default_at("i[].x", 1), {"i": []}, {"i": []}),
            (default_at("i[].x", 1), {"i": None}, {"i": None}),
            (default_at("i[].x", 1), {}, {}),
            (
                default_at("i[].m.x", 1),
                {"i": [{"m": None}, {}]},
                {"i": [{"m": None}, {"m": {"x": 1}}]},
            ),
            (default_at("a[].b[].x", 1), {"a": [{"b": [{}]}, {}]}, {"a": [{"b": [{"x": 1}]}, {}]}),
            (default_at("a[][].x", 1), {"a": [[{}], []]}, {"a": [[{"x": 1}], []]}),
        ],
    )
    def test_an_upgrade_adds_the_default_and_a_downgrade_removes_the_field(
        self, change: Change, older: Json, newer: Json
    ) -> None:
        with untouched(older, newer):
            assert text(up(change, older)) == text(newer)
            assert text(down(change, newer)) == text(older)

    @pytest.mark.parametrize("value", [0, None, "", False, [], {}])
    def test_an_upgrade_does_not_replace_an_existing_value(self, value: Json) -> None:
        assert up(default_at("x", 1), {"x": value, "y": 2}) == {"x": value, "y": 2}
        assert up(default_at("m.x", 1), {"m": {"x": value}}) == {"m": {"x": value}}

    @pytest.mark.parametrize(
        ("newer", "older"),
        [
            ({"m": {"x": 5}}, {}),
            ({"m": {"x": 5, "a": 1}}, {"m": {"a": 1}}),
            ({"m": {"a": 1}}, {"m": {"a": 1}}),
            ({"m": {}}, {"m": {}}),
            ({"m": None}, {"m": None}),
            ({}, {}),
        ],
    )
    def test_a_downgrade_removes_containers_that_become_empty(
        self, newer: Json, older: Json
    ) -> None:
        assert down(default_at("m.x", 1), newer) == older

    @pytest.mark.parametrize("value", ["text", 7])
    def test_no_default_is_added_where_an_id_represents_the_container(self, value: Json) -> None:
        for way in (up, down):
            assert way(default_at("m.x", 1), {"m": value}) == {"m": value}

    @pytest.mark.parametrize("value", [True, []])
    def test_a_container_that_is_not_an_object_is_refused_in_both_directions(
        self, value: Json
    ) -> None:
        for way in (up, down):
            with pytest.raises(ConversionError, match=r"^/m: expected an object, found "):
                way(default_at("m.x", 1), {"m": value})

    def test_a_default_without_a_value_adds_no_field(self) -> None:
        assert up(default_at("x", MISSING), {"y": 1}) == {"y": 1}
        assert down(default_at("x", MISSING), {"x": 1, "y": 1}) == {"y": 1}

    def test_all_elements_get_independent_copies_of_the_default(self) -> None:
        value = {"y": 1}
        change = default_at("i[].x", value)
        newer = up(change, {"i": [{}, {}]})
        assert newer == {"i": [{"x": {"y": 1}}, {"x": {"y": 1}}]}
        assert up(default_at("i[].x.z", 2), newer) == {
            "i": [{"x": {"y": 1, "z": 2}}, {"x": {"y": 1, "z": 2}}]
        }
        assert value == {"y": 1}


@st.composite
def defaults(draw: st.DrawFn) -> tuple[Change, Json, Json]:
    scopes = SCOPES[draw(st.sampled_from(sorted(SCOPES)))]
    field = draw(st.sampled_from([("new",), ("box", "new"), ("box", "in", "new")]))

    @st.composite
    def leaves(draw: st.DrawFn, value: Json) -> Json:
        depth = draw(st.integers(0, len(field) - 1))
        made: Json = {} if value is ABSENT else {field[-1]: value}
        for key in reversed(field[:-1]):
            inner = draw(mixed(*made.items()))
            made = {key: inner} if inner else {}
        if value is ABSENT and depth:
            # An object on the path may exist without the field: with other content, or as null.
            made = fields(field[:depth], draw(st.sampled_from([{"x": 1}, None])))
        return draw(mixed(*made.items()))

    return (
        default(scopes, field, draw(jsons)),
        draw(documents(scopes, leaves(ABSENT))),
        draw(documents(scopes, leaves(draw(jsons)))),
    )


@LAW
@given(defaults())
def test_a_round_trip_removes_the_added_default(given: tuple[Change, Json, Json]) -> None:
    change, older, _ = given
    with untouched(older):
        newer = up(change, older)
        assert down(change, newer) == older
        assert up(change, newer) == newer


@LAW
@given(defaults())
def test_an_upgrade_leaves_all_existing_fields_unchanged(given: tuple[Change, Json, Json]) -> None:
    change, _, newer = given
    with untouched(newer):
        assert up(change, newer) == newer
        older = down(change, newer)
        assert down(change, older) == older
        again = up(change, older)
        for old, new in zip(
            objects(newer, change.scopes), objects(again, change.scopes), strict=True
        ):
            assert {**old, change.touches[0][0]: 0} == {**new, change.touches[0][0]: 0}


@LAW
@given(defaults())
def test_a_default_is_the_same_for_sealed_and_parsed_documents(
    given: tuple[Change, Json, Json],
) -> None:
    change, older, newer = given
    after = up(change, seal(older), SEALED), down(change, seal(newer), SEALED)
    assert text(unsealed(after[0])) == text(up(change, older))
    assert text(unsealed(after[1])) == text(down(change, newer))


def test_a_default_that_both_versions_may_have_is_not_removed() -> None:
    change = default((), ("a",), 1, keep=True)
    assert both(change, {}, upwards=True) == {"a": 1}
    assert both(change, {"a": 1}, upwards=False) == {"a": 1}
