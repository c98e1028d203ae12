"""Excerpts of long examples that still show the failing value."""

import json

import pytest

from gateway.verify.openapi.excerpt import excerpt, values_at

LONG = {"id": "x" * 90, "lines": [{"sku": "A", "price": 7}, {"sku": "B", "price": 1.5}], "n": 1}


def test_a_short_body_is_not_shortened() -> None:
    assert excerpt(b'{"a":1}', "/b", []) == '{"a":1}'


@pytest.mark.parametrize(
    ("field", "values", "expected"),
    [
        ("/n", [1], '{"n":1,"...":"..."}'),
        (
            "/lines/*/price",
            [],
            '{"lines":[{"price":7,"...":"..."},{"price":1.5,"...":"..."}],"...":"..."}',
        ),
        # If a change has moved the value, it is found by its type and value: `1` differs from
        # `true`.
        ("/cost", [1.5], '{"lines":["...",{"price":1.5,"...":"..."}],"...":"..."}'),
        ("/cost", [True], f"{json.dumps(LONG, separators=(',', ':'))[:93]}..."),
        ("/lines", [], '{"lines":"...","...":"..."}'),
    ],
)
def test_a_long_body_is_shortened_to_the_field_and_the_values(
    field: str, values: list[object], expected: str
) -> None:
    assert excerpt(json.dumps(LONG, separators=(",", ":")).encode(), field, values) == expected


def test_an_excerpt_contains_the_listed_pointers() -> None:
    text = json.dumps(LONG, separators=(",", ":")).encode()
    assert excerpt(text, "/other", [], ["/lines/1/sku"]) == (
        '{"lines":["...",{"sku":"B","...":"..."}],"...":"..."}'
    )


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("/*", ["x" * 90, 1]),
        ("/n", [1]),
        ("/lines/*/sku", ["A", "B"]),
        ("/lines", []),
        ("/lines/*", []),
        ("/n/deeper", []),
        ("/none", []),
    ],
)
def test_the_scalar_values_of_a_field_are_returned(field: str, expected: list[object]) -> None:
    assert values_at(json.dumps(LONG).encode(), field) == expected
