"""Operations of Swagger 2.0 documents."""

import json
from typing import Any

from gateway.verify.openapi.openapi import Description
from gateway.verify.openapi.shapes import ShapeCompiler

PET = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string", "x-nullable": True}},
}
DOCUMENT: dict[str, Any] = {
    "swagger": "2.0",
    "basePath": "/v2",
    "consumes": ["application/json"],
    "definitions": {"Pet": PET},
    "parameters": {
        "limit": {"in": "query", "name": "limit", "type": "integer", "minimum": 1},
        "pet": {"in": "body", "name": "pet", "required": True, "schema": {"type": "integer"}},
    },
    "responses": {"Pet": {"description": "", "schema": {"$ref": "#/definitions/Pet"}}},
    "paths": {
        "/pets": {
            "parameters": [{"$ref": "#/parameters/limit"}],
            "post": {
                "parameters": [{"$ref": "#/parameters/pet"}],
                "responses": {"200": {"$ref": "#/responses/Pet"}},
            },
            "put": {
                "consumes": ["application/x-www-form-urlencoded"],
                "parameters": [
                    {"in": "formData", "name": "name", "type": "string", "required": True}
                ],
                "responses": {"204": {"description": ""}},
            },
        }
    },
}


def test_operations_of_swagger_2_0_have_bodies_parameters_and_responses() -> None:
    put, post = Description(DOCUMENT, "v1").operations
    assert (post.path, post.request, post.body_required) == ("/v2/pets", {"type": "integer"}, True)
    (limit,) = post.parameters
    assert (limit.name, limit.schema) == ("limit", {"type": "integer", "minimum": 1})
    response = post.responses["200"]
    assert response is not None
    (pet,) = response["components"]["schemas"].values()  # type: ignore[index]
    assert pet["properties"] == {"name": {"type": ["string", "null"]}}
    assert put.form is not None
    assert put.form["properties"] == {"name": {"type": "string"}}
    assert (put.form["required"], put.responses) == (["name"], {"204": None})


def test_shapes_of_a_read_swagger_2_0_document_have_its_parameters_and_fields() -> None:
    compiler = ShapeCompiler(Description(DOCUMENT, "v1").data, "v1")
    document = compiler.compile()
    post = next(one for one in document.operations if one.method == "POST")
    query, pet = (
        json.loads(bytes(document.shapes[number]))[0]
        for number in (post.query, post.responses["200"])
    )
    assert (post.path, [*query], [*pet]) == ("/v2/pets", ["limit"], ["name"])
