"""Changes in the wrong order are mistakes in arrays and objects as they are in flat fields."""

import pytest

from gateway.config.load import load
from gateway.config.text.mistakes import ConfigError

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
