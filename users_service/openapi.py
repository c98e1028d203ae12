"""The OpenAPI 3.1 document, made from the models that the answers are made from."""

from typing import Any

from pydantic.json_schema import models_json_schema

from . import PROGRAM
from .model import NewUser, User
from .problem import CONTENT_TYPE, Problem


def document() -> dict[str, Any]:
    """Describe every path."""
    _, models = models_json_schema(
        [(NewUser, "validation"), (User, "serialization"), (Problem, "serialization")],
        ref_template="#/components/schemas/{model}",
    )
    schemas = models["$defs"] | {"Violations": VIOLATIONS, "Status": STATUS}
    return {
        "openapi": "3.1.1",
        "info": {"title": PROGRAM, "version": "1"},
        "paths": {
            "/users": {"post": _create_user()},
            "/users/{id}": {"get": _read_user()},
            "/healthz": {"get": _health("health", {"200": "The program is alive."})},
            "/readyz": {
                "get": _health(
                    "readiness",
                    {"200": "Users can be kept now.", "503": "Users cannot be kept now."},
                )
            },
            "/openapi.json": {"get": _description()},
        },
        "components": {"schemas": schemas},
    }


VIOLATIONS = {
    "title": "Violations",
    "description": "Every violated field, or `user` for the whole object, with its message.",
    "type": "object",
    "minProperties": 1,
    "additionalProperties": {"type": "string"},
}
STATUS = {
    "title": "Status",
    "type": "object",
    "required": ["status"],
    "properties": {
        "status": {"enum": ["ok", "ready", "not ready"]},
        "reason": {"type": "string"},
    },
}


def _create_user() -> dict[str, Any]:
    location = {
        "description": "The absolute URL of the user.",
        "required": True,
        "schema": {"type": "string", "format": "uri"},
    }
    return {
        "operationId": "createUser",
        "requestBody": {"required": True, "content": _content("application/json", "NewUser")},
        "responses": {
            "201": {
                "description": "The user is kept for good.",
                "headers": {"Location": location},
                "content": _content("application/json", "User"),
            },
            "400": {
                "description": "The user breaks constraints, or the body is not JSON at all.",
                "content": _content("application/json", "Violations")
                | _content(CONTENT_TYPE, "Problem"),
            },
            **_problems(
                {
                    "413": "The body is too large.",
                    "415": "The body is not plain application/json.",
                    "503": "Nothing was stored; try again.",
                    "default": "Any other refusal.",
                }
            ),
        },
    }


def _read_user() -> dict[str, Any]:
    return {
        "operationId": "readUser",
        "parameters": [
            {
                "name": "id",
                "in": "path",
                "required": True,
                "schema": {"type": "integer", "minimum": 1},
            }
        ],
        "responses": {
            "200": {"description": "The user.", "content": _content("application/json", "User")},
            **_problems(
                {
                    "404": "There is no such user.",
                    "503": "Users cannot be reached now; try again.",
                    "default": "Any other refusal.",
                }
            ),
        },
    }


def _health(operation: str, outcomes: dict[str, str]) -> dict[str, Any]:
    return {
        "operationId": operation,
        "responses": {
            status: {"description": text, "content": _content("application/json", "Status")}
            for status, text in outcomes.items()
        }
        | _problems({"default": "Any refusal."}),
    }


def _description() -> dict[str, Any]:
    return {
        "operationId": "description",
        "responses": {
            "200": {
                "description": "This document.",
                "content": {"application/json": {"schema": {"type": "object"}}},
            },
            **_problems({"default": "Any refusal."}),
        },
    }


def _problems(outcomes: dict[str, str]) -> dict[str, Any]:
    return {
        status: {"description": text, "content": _content(CONTENT_TYPE, "Problem")}
        for status, text in outcomes.items()
    }


def _content(media_type: str, schema: str) -> dict[str, Any]:
    return {media_type: {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
