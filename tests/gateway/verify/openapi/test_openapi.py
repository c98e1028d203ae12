"""Parsing of valid and invalid OpenAPI documents."""

import json
import re
from typing import Any

import pytest

from gateway.verify.openapi.document_source import read
from gateway.verify.openapi.openapi import Description, DocumentError, Operation
from gateway.verify.openapi.validation import Validator

TEXT = {"type": "string"}


def body(schema: object, media_type: str = "application/json") -> dict[str, object]:
    return {"content": {media_type: {"schema": schema}}}


def described(operation: object, **more: object) -> Description:
    return Description(
        {"openapi": "3.1.0", "paths": {"/a/{id}": {"post": operation}}, **more}, "doc"
    )


def only(operation: object, **more: object) -> Operation:
    (found,) = described(operation, **more).operations
    return found


def test_the_schemas_of_bodies_are_read() -> None:
    found = only(
        {
            "requestBody": body(TEXT, "application/json; charset=utf-8"),
            "responses": {"200": body(TEXT, "application/vnd.a+json"), 204: {}, "4XX": body(TEXT)},
        }
    )
    assert (found.method, found.path, found.shape) == ("POST", "/a/{id}", "/a/{}")
    assert found.request == TEXT
    assert found.responses == {"200": TEXT, "204": None, "4XX": TEXT}
    assert [found.key(status) for status in (200, 204, 404, 500)] == ["200", "204", "4XX", None]
    assert found.response(404) == TEXT
    assert found.response(500) is None


def test_the_header_fields_of_responses_are_read() -> None:
    reference = {"$ref": "#/components/responses/created"}
    created: dict[str, object] = {
        "responses": {"created": {"headers": {"Location": {}, "X-Id": {}}}}
    }
    found = only({"responses": {"201": reference, "default": {}}}, components=created)
    assert found.answer_fields == {"201": ("Location", "X-Id"), "default": ()}


def test_a_body_that_is_not_json_has_no_schema() -> None:
    assert only({"requestBody": body(TEXT, "text/plain")}).request is None


def test_references_are_resolved() -> None:
    components = {
        "responses": {"R": body({"$ref": "#/components/schemas/S"})},
        "schemas": {"S": TEXT},
    }
    found = only(
        {"responses": {"200": {"$ref": "#/components/responses/R"}}}, components=components
    )
    schema = {"$ref": "#/components/schemas/S", "components": {"schemas": {"S": TEXT}}}
    assert found.response(200) == schema


def test_parameters_of_an_operation_override_parameters_of_its_path() -> None:
    path = {
        "parameters": [{"name": "a", "in": "query"}, {"name": "b", "in": "query"}],
        "get": {"parameters": [{"name": "a", "in": "query", "required": True, "schema": TEXT}]},
    }
    (found,) = Description({"openapi": "3.0.3", "paths": {"/": path}}, "doc").operations
    assert [(one.name, one.required, one.schema) for one in found.parameters] == [
        ("a", True, TEXT),
        ("b", False, {}),
    ]


def test_the_path_of_the_first_server_is_prepended() -> None:
    assert only({}, servers=[{"url": "https://a.example/base/"}]).path == "/base/a/{id}"


def test_variables_in_a_server_url_are_replaced_by_their_defaults() -> None:
    variables = {"stage": {"default": "live"}}
    server = {"url": "https://a.example/{stage}/{other}", "variables": variables}
    found = only({}, servers=[server])
    assert (found.path, found.bare_shape) == ("/live/{other}/a/{id}", "/a/{}")
    assert found.takes("/elsewhere/a/1")


@pytest.mark.parametrize(
    ("path", "taken"), [("/a/1", True), ("/a/", False), ("/a/1/b", False), ("/b/1", False)]
)
def test_a_path_matches_the_operation_only_as_a_whole(path: str, taken: bool) -> None:
    assert only({}).takes(path) == taken


@pytest.mark.parametrize(
    ("data", "report"),
    [
        ([], "not an OpenAPI document (no 'openapi'); publish one: 3.0, 3.1 or Swagger 2.0"),
        (
            {"swagger": "2.0", "paths": {"/a": 1}},
            "paths./a: not valid Swagger 2.0; check it with a validator",
        ),
        ({"openapi": "4.0.0"}, "OpenAPI 4.0.0; versions 3.0 and 3.1 are supported"),
        ({"openapi": "3.1.0", "paths": []}, "paths: expected an object, found an array"),
        (
            {"openapi": "3.1.0", "paths": {"/a": None}},
            "paths./a: a path: expected an object, found null",
        ),
    ],
)
def test_a_value_that_is_no_openapi_document_is_refused(data: object, report: str) -> None:
    with pytest.raises(DocumentError) as caught:
        Description(data, "doc")
    assert str(caught.value) == f"doc: {report}"


@pytest.mark.parametrize(
    ("operation", "report"),
    [
        ({"requestBody": body({"$ref": "#/no"})}, "'#/no' has no target; is the name right?"),
        (
            {"requestBody": body({"$ref": "#anchor"})},
            "'#anchor' is not a JSON Pointer; write one such as #/components/schemas/A",
        ),
        (
            {"requestBody": body({"$ref": "other.yaml#/A"})},
            "'other.yaml#/A' refers to another document; bundle both into one file",
        ),
        ({"requestBody": body("text")}, "a schema must be an object, found a string"),
        (
            {"requestBody": body({"type": "array", "items": [{}]})},
            "'items' must be one schema; use 'prefixItems' for a list of schemas, since 3.1",
        ),
        ({"responses": None}, "responses: expected an object, found null"),
        ({"responses": {"200": None}}, "a response: expected an object, found null"),
        ({"parameters": {}}, "parameters: expected an array, found an object"),
        (
            {"requestBody": {"$ref": "#/paths/~1a~1%7Bid%7D/post/requestBody"}},
            "its references form a cycle",
        ),
    ],
)
def test_an_invalid_operation_is_refused(operation: Any, report: str) -> None:
    with pytest.raises(DocumentError) as caught:
        described(operation)
    assert str(caught.value) == f"doc: POST /a/{{id}}: {report}"


@pytest.mark.parametrize("text", [b'{"openapi": "3.1.0"}', b"openapi: 3.1.0", b"openapi: '3.1.0'"])
def test_an_empty_document_in_json_or_yaml_has_no_operations(text: bytes) -> None:
    assert read(text, "doc").operations == ()


@pytest.mark.parametrize("text", [b"{", b"\xff", b"a: *b"])
def test_a_file_that_is_neither_json_nor_yaml_is_refused(text: bytes) -> None:
    with pytest.raises(
        DocumentError, match=r"doc: neither JSON nor YAML.*; is this the right location"
    ):
        read(text, "doc")


@pytest.mark.parametrize(
    ("operation", "more", "said"),
    [
        ({"responses": {"abc": {}}}, {}, "'abc' is not a status; write one such as 200, 2XX"),
        ({"responses": {"99999": {}}}, {}, "'99999' is not a status"),
        ({"parameters": [{"in": "query"}]}, {}, "a parameter needs a name and a location (in)"),
        (
            {"requestBody": body({"properties": [1]})},
            {},
            ("'properties' of a schema must be an object"),
        ),
        ({"requestBody": body({"allOf": {}})}, {}, "'allOf' of a schema must be a list of schemas"),
        ({}, {"servers": [{"url": "http://[::x/"}]}, "servers: 'http://[::x/': "),
    ],
)
def test_invalid_documents_are_refused_with_the_mistake(
    operation: object, more: dict[str, object], said: str
) -> None:
    with pytest.raises(DocumentError) as caught:
        described(operation, **more)
    assert said in str(caught.value)


def test_extensions_and_keywords_without_effect_are_ignored() -> None:
    found = only({"responses": {"200": body(TEXT), "x-own": {"a": 1}}})
    assert found.responses == {"200": TEXT}
    limit = {"type": "integer", "exclusiveMinimum": True}
    older = {"openapi": "3.0.3", "paths": {"/": {"post": {"requestBody": body(limit)}}}}
    (operation,) = Description(older, "doc").operations
    assert operation.request == {"type": "integer"}


def test_references_to_names_with_special_characters_are_resolved() -> None:
    schemas = {"A B/c": {"type": "object", "properties": {"a": TEXT}, "required": ["a"]}}
    reference = {"$ref": "#/components/schemas/A%20B~1c"}
    found = only({"requestBody": body(reference)}, components={"schemas": schemas}).request
    assert found is not None
    assert not Validator(found).allows({})
    assert Validator(found).allows({"a": ""})


def _read_schema(schema: object, **named: object) -> object:
    content = {"content": {"application/json": {"schema": schema}}}
    get = {"get": {"responses": {"200": content}}}
    data = {"openapi": "3.1.0", "paths": {"/a": get}, "components": {"schemas": named}}
    (operation,) = Description(data, "v1").operations
    return operation.response(200)


def test_references_in_a_schema_with_an_id_are_resolved_in_this_schema() -> None:
    """JSON Schema Core, section 8.2.1. Other references are resolved in the document."""
    tree = {
        "$id": "https://example.com/tree",
        "type": "object",
        "properties": {
            "leaf": {"$ref": "#/$defs/leaf"},
            "trees": {"type": "array", "items": {"$ref": "#"}},
            "owner": {"$ref": "#/components/schemas/Owner"},
        },
        "$defs": {"leaf": {"type": "string"}},
    }
    other = {"$id": "other", "$ref": "#/$defs/leaf", "$defs": {"leaf": {"type": "null"}}}
    got = _read_schema({"anyOf": [tree, other]}, Owner={"type": "integer"})
    place = "#/components/schemas/"
    properties = {
        "leaf": {"$ref": f"{place}$defs.leaf:0"},
        "trees": {"type": "array", "items": {"$ref": f"{place}#:0"}},
        "owner": {"$ref": f"{place}Owner"},
    }
    of_tree = {"type": "object", "properties": properties}
    plain = re.sub(r"_25_(..)", lambda coded: chr(int(coded[1], 16)), json.dumps(got))
    assert json.loads(plain) == {
        "anyOf": [of_tree, {"$ref": f"{place}$defs.leaf:1"}],
        "components": {
            "schemas": {
                "$defs.leaf:0": {"type": "string"},
                "#:0": of_tree,
                "Owner": {"type": "integer"},
                "$defs.leaf:1": {"type": "null"},
            }
        },
    }


def test_an_unknown_type_in_a_schema_is_refused() -> None:
    for given in ("text", ["string", "text"]):
        with pytest.raises(DocumentError) as caught:
            _read_schema({"properties": {"a": {"type": given}}})
        assert str(caught.value) == (
            "v1: GET /a: 'text' is not a schema type; write one of array, boolean, integer, null,"
            " number, object, string"
        )
