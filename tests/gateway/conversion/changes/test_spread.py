"""Spread: a value beside a list in the newer version, in each element in the older version."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.mistakes import Mistakes
from gateway.conversion.change import Change
from gateway.conversion.changes.change_section import BuildContext
from gateway.conversion.changes.spread import Collect, PathValue, from_path, spread
from gateway.conversion.document import PLAIN
from gateway.conversion.field_path import Inside
from gateway.conversion.message import Message
from gateway.conversion.scalars import TEXT
from gateway.versions.version import Version
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

PRICE = spread((), ("c",), (Inside(("p",)),), ("c",))
COPY = spread((), ("m", "c"), (("i",),), ("p", "c"))
MOVE = spread((("a",),), ("c",), (("i",),), ("c",), keep=False)


@pytest.mark.parametrize(
    ("change", "newer", "older"),
    [
        (
            COPY,
            {"m": {"c": "EUR"}, "i": [{"x": 1}, None, {}]},
            {"m": {"c": "EUR"}, "i": [{"x": 1, "p": {"c": "EUR"}}, None, {"p": {"c": "EUR"}}]},
        ),
        (COPY, {"i": [{}]}, {"i": [{}]}),
        (PRICE, {"c": 1, "p": {"a": 2}}, {"c": 1, "p": {"a": 2, "c": 1}}),
        (PRICE, {"c": 1, "p": None}, {"c": 1, "p": None}),
        (PRICE, {"c": 1}, {"c": 1}),
        (COPY, {"m": {"c": {"x": [1]}}}, {"m": {"c": {"x": [1]}}}),
        (MOVE, {"a": [{"i": [{}, {}], "c": 1}]}, {"a": [{"i": [{"c": 1}, {"c": 1}]}]}),
    ],
)
def test_a_value_is_spread_to_elements_and_collected_from_them(
    change: Change, newer: Json, older: Json
) -> None:
    with untouched(newer, older):
        assert down(change, newer) == older
        assert up(change, older) == newer
    assert unsealed(down(change, seal(newer), SEALED)) == older
    assert unsealed(up(change, seal(older), SEALED)) == newer


def test_different_or_existing_values_in_elements_are_refused() -> None:
    reason = "differs between elements, or from the field beside them"
    with fails("/m/c", reason):
        up(COPY, {"m": {"c": 1}, "i": [{"p": {"c": 2}}]})
    with fails("/c", reason):
        up(PRICE, {"c": 1, "p": {"c": 2}})
    with fails("/a/0/i", reason):
        up(MOVE, {"a": [{"i": [{"c": 1}, {"c": 2}]}]})
    with fails("/i/0/p/c", "already exists"):
        down(COPY, {"m": {"c": 1}, "i": [{"p": {"c": 1}}]})


@LAW
@given(jsons, st.lists(st.fixed_dictionaries({"x": jsons}) | st.none(), max_size=3))
def test_a_spread_value_survives_a_round_trip(value: Json, elements: list[Json]) -> None:
    newer: Json = {"m": {"c": value}, "i": elements}
    assert up(COPY, down(COPY, newer)) == newer


def test_a_value_missing_from_all_elements_is_the_configured_default() -> None:
    written = Collect.model_validate_json(
        '{"field": "lines[].currency", "into": "currency", "keep": false, "default": "EUR"}'
    )
    change = written.body_change(BuildContext(Mistakes()))
    assert change is not None
    for lines in ([], [{"n": 1}]):
        assert down(change, {"lines": lines}) == {"lines": lines, "currency": "EUR"}
    assert down(change, {"lines": [{"currency": "USD"}]}) == {"lines": [{}], "currency": "USD"}
    assert down(change.for_patch(), {"lines": []}) == {"lines": []}


def test_a_patch_gets_no_value_of_the_path() -> None:
    path = PathValue("id", (Version(1, "1"), Version(2, "2")), TEXT)
    change = from_path((), ("owner",), path)
    form = replace(PLAIN, message=Message(captures={"id": "a%20b"}))
    for before, made in (({}, {"owner": "a b"}), ({"owner": None}, {"owner": None})):
        fields: dict[str, object] = {**before}
        change.up.step(fields, form)
        assert fields == made
        change.down.step(fields, form)
        assert fields == made
    fields = {}
    change.for_patch().up.step(fields, form)
    assert fields == {}
    change.up.step(fields, PLAIN)
    assert fields == {}
