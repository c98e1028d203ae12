"""An example API for loans of a library. Its two versions have different paths and operations."""

import json
from pathlib import Path
from typing import Any

from gateway.routing.snapshot import Snapshot
from gateway.rules.load import load

RULES = """\
services: { s: { targets: ["http://127.0.0.1:1"] } }
apis:
  loans:
    endpoints:
      - { path: "/v{version}/loans", upstream_path: /lendings, version: { in: path } }
      - { path: "/v{version}/loans/overdue", upstream_path: /lendings/late, version: { in: path } }
      - path: "/v{version}/loans/{id}"
        upstream_path: "/lendings/{id}"
        version: { in: path }
        methods: [GET, PUT]
    versions:
      "1": { via: "2", schema: v1.json }
      "2": { service: s, schema: v2.json }
    conversions:
      - between: ["1", "2"]
        changes: [CHANGES]
        unfit: refuse
    groups:
      node:
        - rename: { field: label, to: title }
        - use: { group: node, at: ["kids[]"] }
      card:
        - rename: { field: label, to: title }
        - rename: { field: text, to: note }
      flat:
        - flatten: { field: look, prefix: l_, but: [l_count] }
        - map: { field: look.color, values: { a: b } }
      copied:
        - python: { up: "copy:copy", down: "copy:copy" }
"""
BOOK = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "weight": {"type": "integer"}},
    "additionalProperties": False,
}
LOAN = {
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "string"},
        "books": {"type": "array", "items": {"$ref": "#/components/schemas/Book"}},
    },
    "additionalProperties": False,
}


def document(loan: object = LOAN, book: object = BOOK, **paths: str) -> dict[str, Any]:
    """Return an OpenAPI document: `loans="get post"` adds GET and POST /loans. `_` is a slash."""
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Loan"}}}}
    operation = {"responses": {"200": body}}
    return {
        "openapi": "3.1.0",
        "paths": {
            f"/{name.replace('_', '/').replace('ID', '{id}')}": dict.fromkeys(
                methods.split(), operation
            )
            for name, methods in paths.items()
        },
        "components": {"schemas": {"Loan": loan, "Book": book}},
    }


def rules(changes: str = "") -> str:
    return RULES.replace("CHANGES", changes)


def written(
    folder: Path, older: dict[str, Any], newer: dict[str, Any], changes: str = ""
) -> tuple[Path, Snapshot]:
    (folder / "v1.json").write_text(json.dumps(older))
    (folder / "v2.json").write_text(json.dumps(newer))
    path = folder / "gateway.yaml"
    path.write_text(rules(changes))
    return path, load(path.read_bytes(), str(path), {}, folder)
