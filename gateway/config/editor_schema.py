"""The JSON Schema of gateway.yaml, for editors."""

from typing import Any

from gateway.config.root import Config

_ANNOTATIONS = ("title", "description", "default")


def json_schema() -> dict[str, object]:
    """Return the JSON Schema (draft 2020-12) of gateway.yaml.

    Editors read the file before its variables are replaced. So where the models expect a number,
    or a text that matches a pattern, the schema accepts a variable as well.
    """
    schema = _for_editors(Config.model_json_schema())
    schema["$defs"]["Variable"] = {
        "description": "An environment variable, as ${NAME} or ${NAME:-default}.",
        "pattern": r"\$\{",
        "type": "string",
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _for_editors(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_for_editors(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: _for_editors(part) for key, part in schema.items()}
    if isinstance(schema.get("description"), str):
        schema["description"] = " ".join(schema["description"].split())
    if "patternProperties" in schema:
        schema["additionalProperties"] = False  # a name of another form is a mistake
    if "pattern" in schema or schema.get("type") in ("integer", "number"):
        about = {key: schema.pop(key) for key in _ANNOTATIONS if key in schema}
        return {**about, "anyOf": [schema, {"$ref": "#/$defs/Variable"}]}
    return schema
