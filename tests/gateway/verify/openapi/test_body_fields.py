"""The fields that bodies may have according to their schema, before and after changes."""

import pytest

from gateway.conversion.changes.rename import rename
from gateway.conversion.field_path import parse_path
from gateway.conversion.schema import Schema
from gateway.verify.openapi.body_fields import BodyFields, Presence, generalized

D, U, F = Presence.DECLARED, Presence.UNDECLARED, Presence.FORBIDDEN
TREE: Schema = {
    "$ref": "#/components/schemas/Node",
    "components": {
        "schemas": {
            "Node": {
                "properties": {
                    "name": {"type": ["string", "null"]},
                    "children": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}},
                },
                "additionalProperties": False,
            }
        }
    },
}


@pytest.mark.parametrize(
    ("schema", "path", "expected"),
    [
        ({}, "a.b", D),
        ({"type": "object"}, "a.b[].c", D),
        ({"properties": {"a": {}}}, "a.b", D),
        ({"properties": {"a": {}}}, "b", U),
        ({"properties": {"a": {}}, "additionalProperties": False}, "b", F),
        ({"properties": {"a": {}}, "unevaluatedProperties": False}, "b", F),
        ({"properties": {"a": {"type": "string"}}}, "a.b", F),
        ({"properties": {"a": {"type": "string"}}}, "a[].b", F),
        ({"properties": {"a": {}}, "patternProperties": {"^x": {}}}, "x1", D),
        ({"additionalProperties": {"properties": {"b": {}}}}, "any.b", D),
        ({"additionalProperties": {"properties": {"b": {}}}}, "any.c", U),
        ({"additionalProperties": {"properties": {"b": {}}}}, "*.b", D),
        ({"additionalProperties": {"properties": {"b": {}}}}, "*.c", U),
        ({"additionalProperties": {"properties": {"b": {}}}}, r"\*.b", D),
        ({"patternProperties": {"^x": {"properties": {"b": {}}}}}, "*.c", U),
        ({"properties": {"eur": {"properties": {"b": {}}}}}, "*.b", D),
        ({"properties": {"a": {"type": "string"}}}, "a.*.b", F),
        ({"properties": {}, "additionalProperties": False}, "*.b", F),
        ({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}, "b", D),
        ({"oneOf": [{"properties": {"a": {}}}, {"type": "null"}]}, "a", D),
        # One of the two alternatives is open, so the field is not forbidden.
        (
            {
                "anyOf": [
                    {"properties": {"a": {}}, "additionalProperties": False},
                    {"properties": {"b": {}}},
                ]
            },
            "c",
            U,
        ),
        ({"type": "array", "items": {"properties": {"a": {}}}}, "a", D),
        ({"prefixItems": [{"properties": {"a": {}}}]}, "x", D),
        (TREE, "children[].children[].children[].name", D),
        (TREE, "children[].children[].nam", F),
        (TREE, "children.name", F),
        # One alternative does not describe its fields, so it may have any field.
        ({"anyOf": [{"properties": {"a": {}}, "additionalProperties": False}, {}]}, "c", D),
        ({"oneOf": [{"type": "string"}, {"type": "object"}]}, "c.d", D),
        ({"oneOf": [{"type": "string"}, True]}, "c[].d", D),
        ({"oneOf": [{"type": "string"}, {"type": "object"}]}, "c.*.d", D),
        # The alternative adds a condition about a declared field, but no further fields.
        ({"properties": {"a": {}}, "anyOf": [{"required": ["a"]}]}, "c", U),
        ({"$dynamicRef": "#node", "properties": {"a": {}}}, "c", D),
        ({"type": "object", "properties": {}}, "c", D),
        ({"properties": {"a": {}}, "unevaluatedProperties": {"type": "string"}}, "c", D),
        ({"properties": {"a": {}}, "dependentSchemas": {"a": {"properties": {"b": {}}}}}, "b", D),
        ({"if": {}, "then": {"properties": {"a": {}}}, "else": {"properties": {"b": {}}}}, "b", D),
    ],
)
def test_the_presence_of_a_field_follows_from_the_schema(
    schema: Schema, path: str, expected: Presence
) -> None:
    assert BodyFields(schema).look_up(parse_path(path)) is expected


def test_a_recursive_array_has_no_names() -> None:
    schema: Schema = {
        "$ref": "#/components/schemas/A",
        "components": {
            "schemas": {"A": {"type": "array", "items": {"$ref": "#/components/schemas/A"}}}
        },
    }
    assert list(BodyFields(schema).names()) == []


def test_a_renamed_field_keeps_its_nested_fields() -> None:
    fields = BodyFields(TREE)
    fields.apply(rename((), ("inner", "kids"), ("children",)), "", upwards=True)
    for path, expected in (
        ("children[].name", F),
        ("inner.kids[].name", D),
        ("inner.kids[].children[].name", D),
        ("inner.kids[].title", F),
        ("inner.other", U),
    ):
        assert fields.look_up(parse_path(path)) is expected
    fields.assume(parse_path("children"))
    assert fields.look_up(parse_path("children[].anything")) is D


def test_a_location_that_becomes_unknown_may_have_any_field() -> None:
    fields = BodyFields(TREE)
    fields.apply(None, "children[]", upwards=True)
    assert fields.look_up(parse_path("children[].other")) is D
    assert fields.look_up(parse_path("other")) is F


def test_only_the_outermost_names_of_a_huge_schema_are_listed() -> None:
    """Each level of this recursive schema has forty times as many names as the previous one."""
    place = "#/components/schemas/Node"
    node = {"properties": {f"k{number}": {"$ref": place} for number in range(40)}}
    schema: Schema = {"$ref": place, "components": {"schemas": {"Node": node}}}
    names = list(BodyFields(schema).names())
    assert len(names) == 2000
    assert {"k39", "k39.k39"} <= set(names)


def test_names_have_the_syntax_of_field_paths_in_changes() -> None:
    schema: Schema = {
        "properties": {
            "a.b": {"properties": {"c": {}}},
            "list": {"type": "array", "items": {"properties": {"x": {}}}},
        }
    }
    shape = BodyFields(schema)
    assert list(shape.names()) == [r"a\.b", "list", r"a\.b.c", "list[].x"]
    for name in shape.names():
        assert shape.look_up(parse_path(name)) is D


PRICES: Schema = {
    "properties": {
        "prices": {"additionalProperties": {"properties": {"amount": {}}}},
        "lines": {"type": "array", "items": {"properties": {"a.b": {}, "0": {}}}},
    }
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("prices", "EUR", "amount"), "/prices/*/amount"),
        (("prices", "8", "amount"), "/prices/*/amount"),
        (("lines", 3, "a.b"), "/lines/*/a.b"),
        (("lines", "3", "a.b"), "/lines/*/a.b"),
        (("lines", 3, "0"), "/lines/*/0"),
        (("unknown", "x/y"), "/unknown/x~1y"),
        (("unknown", "3", "x"), "/unknown/*/x"),
        ((), ""),
    ],
)
def test_undeclared_keys_and_indexes_are_replaced_by_an_asterisk(
    path: tuple[str | int, ...], expected: str
) -> None:
    assert generalized(path, PRICES, {}) == expected
