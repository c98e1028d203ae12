"""The OpenAPI 3.1 document, made from the models that the answers are made from."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from . import PROGRAM, VERSION
from .problem import CONTENT_TYPE, Problem


def document(resources: Mapping[str, type[BaseModel]]) -> dict[str, Any]:
    """Describe GET of each path, which answers with that model, or else with a problem."""
    models: list[type[BaseModel]] = [*resources.values(), Problem]
    _, schemas = models_json_schema(
        [(model, "serialization") for model in models],
        ref_template="#/components/schemas/{model}",
    )
    return {
        "openapi": "3.1.1",
        "info": {"title": PROGRAM, "version": VERSION},
        "paths": {path: {"get": _operation(path, model)} for path, model in resources.items()},
        "components": {
            "schemas": schemas["$defs"],
            "responses": {"Problem": _response("Any refusal.", CONTENT_TYPE, Problem)},
        },
    }


def _operation(path: str, model: type[BaseModel]) -> dict[str, Any]:
    return {
        "operationId": path.removeprefix("/"),
        "responses": {
            "200": _response(str(model.__doc__), "application/json", model),
            "304": {"description": "The entity tag in If-None-Match is still current."},
            "default": {"$ref": "#/components/responses/Problem"},
        },
    }


def _response(description: str, media_type: str, model: type[BaseModel]) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"description": description, "content": {media_type: {"schema": schema}}}
