"""The keys of gateway.yaml, read from the JSON Schema of its models.

That is the committed copy, which a test compares: making it takes a second of each worker's time.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.gateway.kit import ROOT

COMMITTED = ROOT / "gateway.schema.json"
SCHEMA: dict[str, Any] = json.loads(COMMITTED.read_text())
MODELS: dict[str, Any] = {
    "Config": SCHEMA,
    **{name: model for name, model in SCHEMA["$defs"].items() if "properties" in model},
}
# Each of these sections has a table of its own in the reference; groups are changes as well.
OWN_PAGES = (
    *(f"apis.NAME.conversions[].{name}" for name in ("changes", "query", "headers")),
    "apis.NAME.groups",
    "apis.NAME.endpoints[].version",
)
LABELS = {"services": "NAME", "apis": "NAME", "versions": "VERSION"}


class Key(NamedTuple):
    """One key of gateway.yaml."""

    path: str
    schema: dict[str, Any]
    required: bool

    @property
    def description(self) -> str:
        """Return the description that editors show."""
        return str(self.schema.get("description", ""))

    @property
    def default(self) -> str:
        """Return the default as YAML has it; empty if it is null, empty or a mapping."""
        default = self.schema.get("default")
        if isinstance(default, list):
            return ", ".join(default)
        if isinstance(default, bool):
            return str(default).lower()
        if isinstance(default, int | float):
            return f"{default:.15g}"
        return default if isinstance(default, str) else ""


def keys(model: dict[str, Any] = SCHEMA, prefix: str = "") -> Iterator[Key]:
    """Yield the keys of a model and of the models in it, with their full paths."""
    for name, schema in model["properties"].items():
        path = f"{prefix}{name}"
        yield Key(path, schema, name in model.get("required", ()))
        if path not in OWN_PAGES:
            for inner, label in models(schema, LABELS.get(name, "NAME")):
                yield from keys(inner, f"{path}{label}.")


def models(schema: dict[str, Any], label: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the models that a value may have, and how their place is written."""
    if "$ref" in schema:
        model = MODELS.get(schema["$ref"].rpartition("/")[2])
        if model is not None:
            yield model, ""
    for member in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from models(member, label)
    if "items" in schema:
        for model, _ in models(schema["items"], label):
            yield model, "[]"
    named = (schema.get("additionalProperties"), *schema.get("patternProperties", {}).values())
    for value in named:
        if isinstance(value, dict):
            for model, _ in models(value, label):
                yield model, f".{label}"


KEYS = tuple(keys())
