"""Translation of Swagger 2.0 documents to OpenAPI 3.0.

Only operations are translated: references keep their targets in `definitions`, `parameters` and
`responses`, and schemas are those of OpenAPI 3.0, with `x-nullable` for `nullable`.
"""

from collections.abc import Callable, Mapping
from typing import Any

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
_FORM, _JSON = "application/x-www-form-urlencoded", "application/json"
# The keys of a parameter that are not part of its schema (Swagger 2.0, parameter object).
_BESIDE = {"name", "in", "required", "description", "collectionFormat", "allowEmptyValue"}
_FILE = {"type": "string", "format": "binary"}


def from_swagger(data: Mapping[str, Any], follow: Callable[[object], Any]) -> dict[str, Any]:
    """Return an OpenAPI 3.0 document with the operations of a Swagger 2.0 document.

    Args:
        follow: Returns the target of a reference, or any other value itself.

    Raises:
        ValueError: The document is not valid.
    """
    paths: dict[str, Any] = {}
    where = "paths"
    try:
        for path, item in data.get("paths", {}).items():
            where = f"paths.{path}"
            entry = follow(item)
            shared = [follow(one) for one in entry.get("parameters", ())]
            paths[path] = {
                method: _operation(data, follow(entry[method]), shared, follow)
                for method in _METHODS
                if method in entry
            }
    except (AttributeError, KeyError, TypeError):
        raise ValueError(f"{where}: not valid Swagger 2.0; check it with a validator") from None
    rest = {key: value for key, value in data.items() if key != "swagger"}
    servers = [{"url": data.get("basePath", "")}]
    return {**rest, "openapi": "3.0.3", "servers": servers, "paths": paths}


def _operation(
    data: Mapping[str, Any],
    declared: Mapping[str, Any],
    shared: list[Any],
    follow: Callable[[object], Any],
) -> dict[str, Any]:
    consumes, produces = (
        declared.get(key) or data.get(key) or [_JSON] for key in ("consumes", "produces")
    )
    own = [follow(one) for one in declared.get("parameters", ())]
    given = {(one.get("in"), one.get("name")): one for one in (*shared, *own)}.values()
    made = {
        **declared,
        "parameters": [_parameter(one) for one in given if one.get("in") not in _BODIES],
        "responses": {
            status: _response(follow(one), produces)
            for status, one in declared.get("responses", {}).items()
        },
    }
    fields = [one for one in given if one.get("in") == "formData"]
    if fields:
        schema = {
            "type": "object",
            "properties": {one["name"]: _schema(one) for one in fields},
            "required": [one["name"] for one in fields if one.get("required")],
        }
        types = [one for one in consumes if one != _JSON] or [_FORM]
        made["requestBody"] = {"content": {one: {"schema": schema} for one in types}}
    for one in given:
        if one.get("in") == "body":
            content = {name: {"schema": one.get("schema", {})} for name in consumes}
            made["requestBody"] = {"content": content, "required": one.get("required", False)}
    return made


_BODIES = ("body", "formData")


def _parameter(one: Mapping[str, Any]) -> dict[str, Any]:
    explodes = one.get("collectionFormat") == "multi"
    kept = {key: one[key] for key in ("name", "in", "required") if key in one}
    return {**kept, "explode": explodes, "schema": _schema(one)}


def _schema(one: Mapping[str, Any]) -> dict[str, Any]:
    if one.get("type") == "file":
        return _FILE
    return {key: value for key, value in one.items() if key not in _BESIDE}


def _response(response: Any, produces: list[str]) -> Any:
    if not isinstance(response, dict) or "schema" not in response:
        return response
    schema = response["schema"]
    if isinstance(schema, dict) and schema.get("type") == "file":
        schema = _FILE
    return {**response, "content": {name: {"schema": schema} for name in produces}}
