"""The fields of documents and of schemas."""

import pytest

from gateway.conversion.schema import Schema
from gateway.verify.openapi.schema_fields import declared, fields_of

NODE: Schema = {
    "$ref": "#/components/schemas/N",
    "components": {
        "schemas": {
            "N": {"properties": {"v": {}, "next": {"$ref": "#/components/schemas/N"}}},
        }
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
def test_a_document_has_these_fields(document: object, fields: set[str]) -> None:
    assert fields_of(document) == fields


@pytest.mark.parametrize(
    ("schema", "fields", "objects"),
    [
        ({}, {""}, set()),
        ({"properties": {"a": {"properties": {"b": {}}}}}, {"", "/a", "/a/b"}, {"", "/a"}),
        ({"items": {"properties": {"a": {}}}}, {"", "/*", "/*/a"}, {"/*"}),
        ({"prefixItems": [{"properties": {"a": {}}}]}, {"", "/*", "/*/a"}, {"/*"}),
        ({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}, {"", "/a", "/b"}, {""}),
        # What may have further fields says nothing of one that it does not declare.
        ({"properties": {"a": {}}, "additionalProperties": {}}, {"", "/a"}, set()),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"", "/a"}, {""}),
        ({"properties": {"a": {}}, "patternProperties": {"x": {}}}, {"", "/a"}, set()),
    ],
)
def test_a_schema_declares_these_fields(
    schema: Schema, fields: set[str], objects: set[str]
) -> None:
    found = declared(schema)
    assert (found.fields, found.objects) == (fields, objects)


def test_a_schema_that_holds_itself_ends() -> None:
    found = declared(NODE).fields
    assert "/next/next/v" in found
    assert len(found) < 20


def test_a_schema_that_holds_itself_in_many_fields_ends_soon() -> None:
    """Level by level, so that what is left out is left out everywhere."""
    place = {"$ref": "#/components/schemas/Node"}
    node: Schema = {"properties": {f"f{number}": place for number in range(30)}}
    found = declared({**place, "components": {"schemas": {"Node": node}}})
    depths = {name.count("/") for name in found.fields}
    assert depths == {0, 1, 2, 3}
    assert len(found.fields) == 1 + 30 + 30**2 + 30**3
