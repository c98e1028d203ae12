"""Changes in the wrong order are mistakes in arrays and objects as they are in flat fields."""

import pytest

from gateway.base.mistakes import ConfigError
from gateway.rules.load import load

RULES = """
services: {{ s: {{ targets: ["http://127.0.0.1:1"] }} }}
apis:
  orders:
    endpoints: [ {{ path: /orders, version: {{ in: query, name: v }} }} ]
    versions: {{ "1": {{ service: s }}, "2": {{ service: s }} }}
    conversions: [ {{ between: ["1", "2"], changes: [{changes}] }} ]
"""
LINES = "rename: { field: lines, to: items }"
COUNT = 'rename: { field: "lines[].quantity", to: "lines[].count" }'
KIND = 'map: { field: "lines[].kind", values: { a: b } }'
NAME = "rename: { field: name.first, to: name.given }"


def said(*changes: str) -> list[str]:
    """Return what is wrong with changes in that order, the places left out."""
    listed = ", ".join(f"{{ {change} }}" for change in changes)
    try:
        load(RULES.format(changes=listed).encode(), "gateway.yaml", {})
    except ConfigError as error:
        return [issue.text for issue in error.issues]
    return []


@pytest.mark.parametrize("inner", [COUNT, KIND])
def test_the_container_comes_first(inner: str) -> None:
    assert said(LINES, inner) == []
    (text,) = said(inner, LINES)
    assert text.startswith(
        "'lines' is made here, and apis.orders.conversions[0].changes[0], which comes before, looks"
        " for 'lines[]."
    )


@pytest.mark.parametrize(
    ("changes", "clash"),
    [
        ([NAME, "rename: { field: name, to: person }"], "looks for 'name.first' in it"),
        ([COUNT, COUNT], "is taken by"),
        (["rename: { field: status, to: state }", "rename: { field: lines, to: state }"], "taken"),
    ],
)
def test_clashes(changes: list[str], clash: str) -> None:
    assert any(clash in text for text in said(*changes))


@pytest.mark.parametrize(
    ("first", "second", "right"),
    [
        (
            LINES.replace("lines, to: items", "items, to: lines"),
            "map: { field: 'lines[].kind', values: { a: b } }",
            "write 'items[].kind' here, or list this one first",
        ),
        (
            "rename: { field: total, to: amount }",
            "rename: { field: sum, to: amount }",
            "write 'total' here, or keep one of the two",
        ),
        (COUNT, COUNT, "keep one of the two"),
        (
            "remove: { field: amount }",
            "type: { field: amount, newer: number, older: text }",
            "list this one first",
        ),
    ],
)
def test_a_conflict_names_the_remedy(first: str, second: str, right: str) -> None:
    text, *_ = said(first, second)
    assert text.endswith(f"; changes are listed in the order that upgrades a document: {right}")
    written = right.partition("'")[2].partition("'")[0]
    if written:  # what is said is accepted
        old = "'lines[].kind'" if "map" in second else "amount"
        assert said(first, second.replace(old, f"'{written}'")) == []
    if "first" in right:
        assert said(second, first) == []


@pytest.mark.parametrize(
    "changes",
    [
        # The parts are taken out of the container before it is made anew.
        ["split: { field: name, into: [name.first, name.last] }"],
        [
            "map: { field: name.first, values: { a: b } }",
            "split: { field: name, into: [name.first, name.last] }",
        ],
        [
            "rename: { field: first, to: name.first }",
            "rename: { field: last, to: name.last }",
            "rename: { field: name, to: full }",
        ],
        ["join: { fields: [name.first, name.last], into: name }"],
        [LINES, COUNT, KIND],
    ],
)
def test_changes_that_fit(changes: list[str]) -> None:
    assert said(*changes) == []


GIVEN = "rename: { field: name.given, to: first }"


@pytest.mark.parametrize(
    "whole",
    ["rename: { field: name.full, to: name }", "join: { fields: [name.a, name.b], into: name }"],
)
def test_the_part_with_the_name_of_its_object_comes_before_the_others(whole: str) -> None:
    assert said(whole, GIVEN) == []
    (text,) = said(GIVEN, whole)
    assert text.startswith("'name' becomes 'name.")
    assert "changes[0], which comes before, has made 'name.given'; changes are listed in" in text
    assert said(GIVEN, "extract: { field: name, key: data }") == []


ID = "type: { field: customer.id, newer: text, older: number }"


@pytest.mark.parametrize(
    ("changes", "made"),
    [
        ([ID, "extract: { field: customer, key: id }"], "'customer.id' is made here"),
        (
            [
                "map: { field: 'tags[].id', values: { a: b } }",
                "extract: { field: 'tags[]', key: id }",
            ],
            "'tags[].id' is made here",
        ),
        (
            [
                "rename: { field: page.sum, to: total }",
                "extract: { field: page, key: data, count: sum }",
            ],
            "'page.sum' is made by",
        ),
        (
            ["rename: { field: total, to: page.sum }", "envelope: { field: page, into: sum }"],
            "'page.sum' is taken by",
        ),
        (
            [
                "map: { field: name.first.x, values: { a: b } }",
                "join: { fields: [name.first, name.last], into: name }",
            ],
            "'name.first' is made here",
        ),
    ],
)
def test_a_field_of_what_is_made_later(changes: list[str], made: str) -> None:
    (text,) = said(*changes)
    assert text.startswith(made)


@pytest.mark.parametrize(
    "changes",
    [
        ["extract: { field: customer, key: id }", ID],
        # The object is there in the older version; the envelope goes around it.
        [
            "rename: { field: customer.name, to: customer.title }",
            "extract: { field: customer, key: data }",
        ],
        # Of the elements of the array that the older version has for a body.
        ["rename: { field: total, to: sum }", "extract: { key: data, count: total }"],
        ["rename: { field: 'data[].nr', to: 'data[].number' }", "extract: { key: data }"],
    ],
)
def test_fields_in_and_around_an_envelope(changes: list[str]) -> None:
    assert said(*changes) == []
