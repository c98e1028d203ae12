"""Which fields bodies may have, by their schema and after changes have taken and made some."""

import pytest

from gateway.core.conversion.field_path import parse_path
from gateway.verify.openapi.body_shape import BodyShape, FieldShape, Presence
from gateway.verify.openapi.json_schema import Schema

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
        # One of the two is open: the field is not forbidden.
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
    ],
)
def test_look_up(schema: Schema, path: str, expected: Presence) -> None:
    assert BodyShape.of(schema).look_up(parse_path(path)) is expected


def test_an_array_of_itself_ends() -> None:
    schema: Schema = {
        "$ref": "#/components/schemas/A",
        "components": {
            "schemas": {"A": {"type": "array", "items": {"$ref": "#/components/schemas/A"}}}
        },
    }
    assert list(BodyShape.of(schema).names()) == []


def test_what_is_taken_is_put_elsewhere_with_all_that_is_in_it() -> None:
    shape = BodyShape.of(TREE)
    shape.put(parse_path("inner.kids"), shape.take(parse_path("children")))
    assert shape.look_up(parse_path("children[].name")) is F
    assert shape.look_up(parse_path("inner.kids[].name")) is D
    assert shape.look_up(parse_path("inner.kids[].title")) is F
    assert shape.look_up(parse_path("inner.other")) is U
    shape.put(parse_path("children"), FieldShape())
    assert shape.look_up(parse_path("children[].anything")) is D


def test_elements_that_a_change_makes() -> None:
    shape = BodyShape.of({"properties": {"a": {"type": "string"}}})
    shape.put(parse_path("made[].b"), FieldShape())
    assert shape.look_up(parse_path("made[].b")) is D
    shape.take(parse_path("made[].b"))
    assert shape.look_up(parse_path("made[].b")) is U
    shape.take(parse_path("none.of.it"))
    assert shape.look_up(parse_path("none")) is U


def test_names_are_as_changes_spell_them() -> None:
    schema: Schema = {
        "properties": {
            "a.b": {"properties": {"c": {}}},
            "list": {"type": "array", "items": {"properties": {"x": {}}}},
        }
    }
    shape = BodyShape.of(schema)
    assert list(shape.names()) == [r"a\.b", r"a\.b.c", "list", "list[].x"]
    for name in shape.names():
        assert shape.look_up(parse_path(name)) is D
