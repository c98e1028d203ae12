"""Reads the keys of gateway.yaml from its JSON Schema."""

from collections.abc import Iterator
from typing import Any, NamedTuple

# Keys whose models have separate tables: changes (also in groups) and mechanisms.
OWN_TABLES = (
    *(f"apis.NAME.conversions[].{name}" for name in ("changes", "query", "headers")),
    "apis.NAME.groups",
    "apis.NAME.endpoints[].version",
)
LABELS = {"services": "NAME", "apis": "NAME", "versions": "VERSION"}


class Key(NamedTuple):
    """A key of gateway.yaml, with its full path and its JSON Schema."""

    path: str
    schema: dict[str, Any]
    required: bool

    @property
    def description(self) -> str:
        return str(self.schema.get("description", ""))

    @property
    def default(self) -> str:
        """The default in YAML; empty if the default is null, empty or a mapping."""
        default = self.schema.get("default")
        if isinstance(default, list):
            return ", ".join(default)
        if isinstance(default, bool):
            return str(default).lower()
        if isinstance(default, int | float):
            return f"{default:.15g}"
        return default if isinstance(default, str) else ""


class SchemaKeys:
    """The models in the JSON Schema of gateway.yaml, and their keys."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema
        self.models: dict[str, Any] = {
            "Config": schema,
            **{name: model for name, model in schema["$defs"].items() if "properties" in model},
        }

    def keys(self, model: dict[str, Any] | None = None, prefix: str = "") -> Iterator[Key]:
        """Yield the keys of a model and of nested models, with their full paths."""
        model = model or self.schema
        for name, schema in model["properties"].items():
            path = f"{prefix}{name}"
            yield Key(path, schema, name in model.get("required", ()))
            if path not in OWN_TABLES:
                for inner, label in self._models(schema, LABELS.get(name, "NAME")):
                    yield from self.keys(inner, f"{path}{label}.")

    def _models(self, schema: dict[str, Any], label: str) -> Iterator[tuple[dict[str, Any], str]]:
        """Yield the possible models of a value, each with the suffix of its path, such as `[]`."""
        if "$ref" in schema:
            model = self.models.get(schema["$ref"].rpartition("/")[2])
            if model is not None:
                yield model, ""
        for member in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
            yield from self._models(member, label)
        if "items" in schema:
            for model, _ in self._models(schema["items"], label):
                yield model, "[]"
        named = (schema.get("additionalProperties"), *schema.get("patternProperties", {}).values())
        for value in named:
            if isinstance(value, dict):
                for model, _ in self._models(value, label):
                    yield model, f".{label}"
