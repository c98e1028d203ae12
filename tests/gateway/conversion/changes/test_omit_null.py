"""Omit null: a null field in the newer version, no field in the older version."""

from dataclasses import replace
from decimal import Decimal

import pytest

from gateway.conversion.changes.omit_null import omit_null
from gateway.conversion.document import PLAIN
from tests.gateway.conversion.documents import Json, down, up

CHANGE = omit_null((), ("m", "f"))
ELEMENTS = omit_null((("i",),), ("f",))


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ({"m": {"f": None, "x": 1}}, {"m": {"x": 1}}),
        ({"m": {"f": 0}}, {"m": {"f": 0}}),
        ({"m": None}, {"m": None}),
        ({}, {}),
    ],
)
def test_null_is_omitted_in_the_older_version(newer: Json, older: Json) -> None:
    assert down(CHANGE, newer) == older
    assert up(CHANGE, older) == newer


def test_a_container_that_becomes_empty_is_omitted_too() -> None:
    assert down(CHANGE, {"m": {"f": None}}) == {}
    assert up(CHANGE, {}) == {}


def test_a_null_in_the_older_version_is_unchanged() -> None:
    assert up(CHANGE, {"m": {"f": None}}) == {"m": {"f": None}}


def test_a_patch_gets_no_null_for_absent_fields_except_in_arrays() -> None:
    patch = CHANGE.for_patch()
    documents: list[Json] = [{"m": {}}, {"m": {"f": None}}, {}]
    for document in documents:
        assert up(patch, document) == down(patch, document) == document
    assert up(ELEMENTS.for_patch(), {"i": [{}]}) == {"i": [{"f": None}]}


def test_an_upgrade_adds_no_null_to_a_form() -> None:
    fields: dict[str, object] = {"m": {}}
    CHANGE.up.step(fields, replace(PLAIN, typed=False))
    assert fields == {"m": {}}
    named = omit_null((), ("m", "f"), "none")
    named.up.step(fields, replace(PLAIN, typed=False))
    assert fields == {"m": {"f": "none"}}


@pytest.mark.parametrize(
    ("value", "same", "other"),
    [([], [], [0]), ({}, {}, []), ("", "", None), (0, Decimal("0.0"), False), (False, False, 0)],
)
def test_a_configured_value_other_than_null_is_omitted(
    value: Json, same: Json, other: Json
) -> None:
    change = omit_null((), ("m", "f"), value)
    assert down(change, {"m": {"f": same, "x": 1}}) == {"m": {"x": 1}}
    assert down(change, {"m": {"f": other}}) == {"m": {"f": other}}
    assert up(change, {"m": {"x": 1}}) == {"m": {"f": value, "x": 1}}


def test_each_document_gets_its_own_copy_of_the_value() -> None:
    value: list[int] = []
    one: Json = {"m": {}}
    omit_null((), ("m", "f"), value).up.step(one, PLAIN)
    one["m"]["f"].append(1)
    assert value == []
