"""Bundled JSON Schemas of OpenAPI documents, and narrowed schemas for examples."""

import pytest

from gateway.conversion.schema import Schema, definitions
from gateway.verify.openapi.json_schema import SchemaBundler, Use, longest_list, narrowed


def read(
    schema: object, use: Use = Use.RESPONSE, *, nullable: bool = False, **named: object
) -> object:
    known = {f"#/components/schemas/{name}": part for name, part in named.items()}
    return SchemaBundler(lambda one, _: known[one], use, nullable=nullable).read(schema)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "title": "T", "description": "d"}, {"type": "string"}),
        (True, {}),
        (False, {"not": {}}),
        ({"enum": [{"title": "kept"}]}, {"enum": [{"title": "kept"}]}),
        (
            {"properties": {"title": {"type": "string", "title": "T"}}},
            {"properties": {"title": {"type": "string"}}},
        ),
        ({"items": {"title": "T"}}, {"items": {}}),
        ({"oneOf": [{"title": "T"}, True]}, {"oneOf": [{}, True]}),
        ({"nullable": True, "type": "string"}, {"nullable": True, "type": "string"}),
    ],
)
def test_annotations_are_removed_and_other_keywords_remain(
    schema: object, expected: object
) -> None:
    assert read(schema) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "nullable": False}, {"type": "string"}),
        ({"enum": [1], "nullable": True}, {"anyOf": [{"enum": [1]}, {"type": "null"}]}),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"maximum": 1, "exclusiveMaximum": False}, {"maximum": 1}),
        ({"$ref": "#/components/schemas/A", "type": "x"}, {"$ref": "#/components/schemas/A"}),
    ],
)
def test_keywords_of_openapi_3_0_are_translated(
    schema: object, expected: dict[str, object]
) -> None:
    got = read(schema, nullable=True, A={"type": "integer"})
    known = {"components": {"schemas": {"A": {"type": "integer"}}}} if "$ref" in expected else {}
    assert got == {**expected, **known}


def test_a_recursive_schema_is_bundled_with_itself() -> None:
    node = {"properties": {"next": {"$ref": "#/components/schemas/Node"}}}
    got = read({"$ref": "#/components/schemas/Node"}, Node=node)
    assert got == {"$ref": "#/components/schemas/Node", "components": {"schemas": {"Node": node}}}


@pytest.mark.parametrize(("use", "left"), [(Use.REQUEST, "secret"), (Use.RESPONSE, "id")])
def test_read_only_and_write_only_properties_are_omitted(use: Use, left: str) -> None:
    schema = {
        "properties": {"id": {"readOnly": True}, "secret": {"writeOnly": True}},
        "required": ["id", "secret"],
    }
    got = read(schema, use)
    assert isinstance(got, dict)
    assert list(got["properties"]) == got["required"] == [left]


@pytest.mark.parametrize(
    ("schema", "is_closed"),
    [
        ({"properties": {"a": {}}}, True),
        ({"properties": {"a": {}}, "additionalProperties": {"type": "string"}}, False),
        ({"properties": {"a": {}}, "allOf": [{}]}, False),
        ({"type": "object"}, False),
    ],
)
def test_objects_are_closed_unless_they_declare_further_properties(
    schema: dict[str, object], is_closed: bool
) -> None:
    assert (narrowed(schema, 3).get("additionalProperties") is False) == is_closed


@pytest.mark.parametrize(
    ("schema", "most"),
    [
        ({}, 3),
        ({"maxItems": 2}, 2),
        ({"maxItems": 9}, 3),
        ({"minItems": 5}, 5),
        ({"contains": {}, "minContains": 4}, 4),
        ({"prefixItems": [{}, {}, {}, {}]}, 4),
        ({"anyOf": [{"minItems": 5}]}, None),
    ],
)
def test_arrays_are_limited_unless_the_schema_requires_more_elements(
    schema: dict[str, object], most: int | None
) -> None:
    assert narrowed({"items": {}, **schema}, 3).get("maxItems") == most


def test_the_longest_list_exceeds_each_low_max_items() -> None:
    limited = {"properties": {"a": {"items": {"maxItems": 7}}, "maxItems": {}}}
    assert longest_list({"anyOf": [limited, {"maxItems": 5}, True]}) == 8
    assert longest_list({"maxItems": 1000, "items": {"minItems": 9}}) == 3


def test_members_of_all_of_stay_open() -> None:
    named: Schema = {"A": {"properties": {"a": {}}}, "B": {"properties": {"b": {}}}}
    schema: Schema = {
        "allOf": [{"$ref": "#/components/schemas/A"}, {"properties": {"c": {}}}],
        "contains": {"$ref": "#/components/schemas/B"},
        "components": {"schemas": named},
    }
    got = narrowed(schema, 3)
    assert got == {
        "allOf": [{"$ref": "#/components/schemas/A"}, {"properties": {"c": {}}}],
        "contains": {"$ref": "#/components/schemas/B"},
        "components": {
            "schemas": {
                "A": {"properties": {"a": {}}},
                "B": {"properties": {"b": {}}, "additionalProperties": False},
            }
        },
    }


def test_a_schema_that_several_messages_refer_to_is_shared() -> None:
    parts: dict[str, object] = {
        "#/components/schemas/A": {"properties": {"b": {"$ref": "#/components/schemas/B"}}},
        "#/components/schemas/B": {"type": "string"},
    }
    bundler = SchemaBundler(lambda reference, _: parts[reference], Use.REQUEST, nullable=False)
    one, other = (
        bundler.read({"items": {"$ref": "#/components/schemas/A"}, "type": kind})
        for kind in ("array", "object")
    )
    assert definitions(one) is definitions(other)
    assert definitions(one)["B"] is definitions(other)["B"]
    assert bundler.read({"items": {"$ref": "#/components/schemas/A"}, "type": "array"}) is one
