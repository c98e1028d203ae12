"""Entries: a map in the newer version, a list of objects with its keys in the older version."""

import pytest

from gateway.conversion.change import Change
from gateway.conversion.changes.entries import list_entries
from gateway.conversion.document import PLAIN
from tests.gateway.conversion.documents import Json, both, down, fails, up

OBJECTS = list_entries((("i",),), ("m", "days"), "date")
VALUES = list_entries((), ("a",), "name", "amount")


@pytest.mark.parametrize(
    ("newer", "older"),
    [({"b": {"n": 1}, "a": {}}, [{"date": "b", "n": 1}, {"date": "a"}]), ({}, []), (None, None)],
)
def test_a_map_of_objects_becomes_a_list_with_the_keys_in_the_objects(
    newer: Json, older: Json
) -> None:
    assert both(OBJECTS, {"i": [{"m": {"days": newer}}]}, upwards=False) == {
        "i": [{"m": {"days": older}}]
    }
    assert both(OBJECTS, {"i": [{"m": {"days": older}}]}, upwards=True) == {
        "i": [{"m": {"days": newer}}]
    }
    assert both(OBJECTS, {"i": [{"m": {}}]}, upwards=True) == {"i": [{"m": {}}]}


def test_a_map_of_any_values_becomes_a_list_of_keys_and_values() -> None:
    newer: Json = {"a": {"spa": 1.50, "": None, "x": [{"y": 2}]}}
    older: Json = {
        "a": [
            {"name": "spa", "amount": 1.50},
            {"name": "", "amount": None},
            {"name": "x", "amount": [{"y": 2}]},
        ]
    }
    assert both(VALUES, newer, upwards=False) == older
    assert both(VALUES, older, upwards=True) == newer


@pytest.mark.parametrize(
    ("change", "upwards", "value", "reason"),
    [
        (VALUES, True, {}, "/a: expected an array, found an object"),
        (VALUES, True, [7], "/a/0: expected an object, found a number"),
        (VALUES, True, [{"amount": 1}], "/a/0/name: is missing"),
        (VALUES, True, [{"name": "x"}], "/a/0/amount: is missing"),
        (VALUES, True, [{"name": 1, "amount": 1}], "/a/0/name: expected a string, found a number"),
        (
            VALUES,
            True,
            [{"name": "x", "amount": 1}, {"name": "x", "amount": 2}],
            "/a/1/name: is the key of another element too",
        ),
        (
            VALUES,
            True,
            [{"name": "x", "amount": 1, "b": 2}],
            "/a/0/b: a field that the other version cannot hold",
        ),
        (VALUES, False, [], "/a: expected an object, found an array"),
        (
            list_entries((), ("a",), "k"),
            False,
            {"x": 1},
            "/a/x: expected an object, found a number",
        ),
        (
            list_entries((), ("a",), "k"),
            False,
            {"x": {"k": 1}},
            "/a/x/k: already exists, and would become the key",
        ),
    ],
)
def test_an_invalid_map_or_list_is_refused(
    change: Change, upwards: bool, value: Json, reason: str
) -> None:
    at, _, why = reason.partition(": ")
    with fails(at, why):
        change.directed(upwards=upwards).step({"a": value}, PLAIN)


def test_an_error_names_the_whole_list_as_its_location() -> None:
    """After the conversion, it is unknown from which element a member was created."""
    assert VALUES.up.origin(("a", "spa")) == ("a",)
    assert VALUES.up.origin(("b",)) == ("b",)


REPEATED = list_entries((), ("fees",), "name", "amount", in_lists=True)


def test_a_key_that_occurs_twice_has_a_list_of_all_values_if_configured() -> None:
    fees = [{"name": "a", "amount": 1}, {"name": "b", "amount": 2}, {"name": "a", "amount": 3}]
    assert up(REPEATED, {"fees": fees}) == {"fees": {"a": [1, 3], "b": [2]}}
    assert down(REPEATED, {"fees": {"a": [1, 3], "b": [2]}}) == {
        "fees": [fees[0], fees[2], fees[1]]
    }
    objects = list_entries((), ("fees",), "name", in_lists=True)
    assert up(objects, {"fees": fees[:1]}) == {"fees": {"a": [{"amount": 1}]}}
    with fails("/fees/a", "expected an array, found a number"):
        down(REPEATED, {"fees": {"a": 1}})
