"""The fields of documents and schemas."""

import pytest

from gateway.conversion.schema import Schema
from gateway.verify.openapi.schema_fields import declared, fields_of

NODE: Schema = {
    "$ref": "#/components/schemas/N",
    "components": {
        "schemas": {"N": {"properties": {"v": {}, "next": {"$ref": "#/components/schemas/N"}}}}
    },
}


@pytest.mark.parametrize(
    ("document", "fields"),
    [
        (1, {""}),
        ({"a": 1, "b": {"c/d": None}}, {"", "/a", "/b", "/b/c~1d"}),
        ([{"a": 1}, {"b": []}], {"", "/*", "/*/a", "/*/b"}),
    ],
)
def test_all_fields_of_a_document_are_returned(document: object, fields: set[str]) -> None:
    assert fields_of(document) == fields


@pytest.mark.parametrize(
    ("schema", "fields", "objects"),
    [
        ({}, {""}, set()),
        ({"properties": {"a": {"properties": {"b": {}}}}}, {"", "/a", "/a/b"}, {"", "/a"}),
        ({"items": {"properties": {"a": {}}}}, {"", "/*", "/*/a"}, {"/*"}),
        ({"prefixItems": [{"properties": {"a": {}}}]}, {"", "/*", "/*/a"}, {"/*"}),
        ({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}, {"", "/a", "/b"}, {""}),
        # An object that allows undeclared keys is not in `objects`, since it may have other fields.
        ({"properties": {"a": {}}, "additionalProperties": {}}, {"", "/a"}, set()),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"", "/a"}, {""}),
        ({"properties": {"a": {}}, "patternProperties": {"x": {}}}, {"", "/a"}, set()),
    ],
)
def test_all_declared_fields_of_a_schema_are_returned(
    schema: Schema, fields: set[str], objects: set[str]
) -> None:
    found = declared(schema)
    assert (found.fields, found.objects) == (fields, objects)


def test_a_recursive_schema_is_followed_to_a_limited_depth() -> None:
    found = declared(NODE).fields
    assert "/next/next/v" in found
    assert len(found) < 20


def test_a_recursive_schema_with_many_fields_is_followed_less_deeply() -> None:
    """The schema is followed level by level, so each level is either complete or omitted."""
    place = {"$ref": "#/components/schemas/Node"}
    node: Schema = {"properties": {f"f{number}": place for number in range(30)}}
    found = declared({**place, "components": {"schemas": {"Node": node}}})
    depths = {name.count("/") for name in found.fields}
    assert depths == {0, 1, 2, 3}
    assert len(found.fields) == 1 + 30 + 30**2 + 30**3
