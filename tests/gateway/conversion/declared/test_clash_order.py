"""Changes in the wrong order are reported, including changes of fields in arrays and objects."""

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
    listed = ", ".join(f"{{ {change} }}" for change in changes)
    try:
        load(RULES.format(changes=listed).encode(), "gateway.yaml", {})
    except ConfigError as error:
        return [issue.text for issue in error.issues]
    return []


@pytest.mark.parametrize("inner", [COUNT, KIND])
def test_renaming_an_array_after_a_change_of_its_fields_is_reported(inner: str) -> None:
    assert said(LINES, inner) == []
    (text,) = said(inner, LINES)
    assert text.startswith(
        "'lines' is created here, and apis.orders.conversions[0].changes[0], which comes earlier,"
        " requires 'lines[]."
    )


@pytest.mark.parametrize(
    ("changes", "clash"),
    [
        ([NAME, "rename: { field: name, to: person }"], "requires 'name.first' in it"),
        ([COUNT, COUNT], "is removed by"),
        (
            [("rename: { field: status, to: state }"), "rename: { field: lines, to: state }"],
            "removed by",
        ),
    ],
)
def test_conflicting_changes_of_the_same_field_are_reported(changes: list[str], clash: str) -> None:
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
            "write 'total' here, or remove one of them",
        ),
        (COUNT, COUNT, "remove one of them"),
        (
            "remove: { field: amount }",
            "type: { field: amount, newer: number, older: text }",
            "list this one first",
        ),
    ],
)
def test_a_conflict_names_a_remedy_that_is_accepted(first: str, second: str, right: str) -> None:
    text, *_ = said(first, second)
    assert text.endswith(f"; changes are listed in the order that upgrades a document: {right}")
    written = right.partition("'")[2].partition("'")[0]
    if written:  # the suggested name is accepted
        old = "'lines[].kind'" if "map" in second else "amount"
        assert said(first, second.replace(old, f"'{written}'")) == []
    if "first" in right:
        assert said(second, first) == []


@pytest.mark.parametrize(
    "changes",
    [
        # The parts are removed before the string with the same name is created.
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
def test_changes_in_the_right_order_are_accepted(changes: list[str]) -> None:
    assert said(*changes) == []


GIVEN = "rename: { field: name.given, to: first }"


@pytest.mark.parametrize(
    "whole",
    ["rename: { field: name.full, to: name }", "join: { fields: [name.a, name.b], into: name }"],
)
def test_replacing_an_object_by_a_string_of_the_same_name_must_precede_its_other_fields(
    whole: str,
) -> None:
    assert said(whole, GIVEN) == []
    (text,) = said(GIVEN, whole)
    assert text.startswith("'name' becomes 'name.")
    assert (
        "changes[0], which comes earlier, has created 'name.given'; changes are listed in" in text
    )
    assert said(GIVEN, "extract: { field: name, key: data }") == []


ID = "type: { field: customer.id, newer: text, older: number }"


@pytest.mark.parametrize(
    ("changes", "made"),
    [
        ([ID, "extract: { field: customer, key: id }"], "'customer.id' is created here"),
        (
            [
                "map: { field: 'tags[].id', values: { a: b } }",
                "extract: { field: 'tags[]', key: id }",
            ],
            "'tags[].id' is created here",
        ),
        (
            [
                "rename: { field: page.sum, to: total }",
                "extract: { field: page, key: data, count: sum }",
            ],
            "'page.sum' is already created by",
        ),
        (
            ["rename: { field: total, to: page.sum }", "envelope: { field: page, into: sum }"],
            "'page.sum' is removed by",
        ),
        (
            [
                "map: { field: name.first.x, values: { a: b } }",
                "join: { fields: [name.first, name.last], into: name }",
            ],
            "'name.first' is created here",
        ),
    ],
)
def test_a_change_that_reads_a_field_inside_a_later_container_is_reported(
    changes: list[str], made: str
) -> None:
    (text,) = said(*changes)
    assert text.startswith(made)


@pytest.mark.parametrize(
    "changes",
    [
        ["extract: { field: customer, key: id }", ID],
        # The older version has the object; the newer version puts it into the envelope.
        [
            "rename: { field: customer.name, to: customer.title }",
            "extract: { field: customer, key: data }",
        ],
        # The field is in the elements of the array that is the older version's body.
        ["rename: { field: total, to: sum }", "extract: { key: data, count: total }"],
        ["rename: { field: 'data[].nr', to: 'data[].number' }", "extract: { key: data }"],
    ],
)
def test_changes_of_fields_inside_and_outside_an_envelope_are_accepted(changes: list[str]) -> None:
    assert said(*changes) == []
