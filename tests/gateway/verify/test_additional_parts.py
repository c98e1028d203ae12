"""Fields, parameters and operations that only the newer version's document has."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.rules.checks.conversions import check_conversions
from gateway.rules.load import load_file
from gateway.verify import verification_report
from gateway.verify.verify import VerifyOptions, verify

RULES = """
services: {{ s: {{ targets: ["http://127.0.0.1:1"] }} }}
apis:
  shop:
    endpoints: [ {{ path: "/{{rest*}}", version: {{ in: header, name: V }} }} ]
    versions: {{ "1": {{ via: "2", schema: v1.json }}, "2": {{ service: s, schema: v2.json }} }}
    groups: {{ item: [ {{ rename: {{ field: sku, to: code }} }} ] }}
    conversions:
      - between: ["1", "2"]
        {options}
        changes: [ {changes} ]
        query: [ {query} ]
"""
TEXT = {"type": "string"}


def an_object(**fields: object) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


def document(body: object, *parameters: str, sent: object = None, **more: object) -> dict[str, Any]:
    content = {"content": {"application/json": {"schema": body}}}
    listed = [{"name": name, "in": "query", "schema": TEXT} for name in parameters]
    operation = {"parameters": listed, "responses": {"200": content}}
    if sent is not None:
        operation["requestBody"] = {"content": {"application/json": {"schema": sent}}}
    components = {"Node": an_object(name=TEXT, next={"$ref": "#/components/schemas/Node"})}
    return {
        "openapi": "3.1.0",
        "paths": {"/orders": {"post": operation, **more}},
        "components": {"schemas": {**components}},
    }


def written(
    folder: Path,
    older: object,
    newer: object,
    changes: str = "",
    query: str = "",
    options: str = "statuses: []",
) -> Path:
    (folder / "v1.json").write_text(json.dumps(older))
    (folder / "v2.json").write_text(json.dumps(newer))
    path = folder / "gateway.yaml"
    path.write_text(RULES.format(changes=changes, query=query, options=options))
    return path


def listed(
    folder: Path, older: object, newer: object, changes: str = "", query: str = "", **options: str
) -> list[str]:
    """Return what `check` lists, as part and names."""
    path = written(folder, older, newer, changes, query, **options)
    issues = check_conversions(path, {}, load_file(path, {}))
    (text,) = [one.text for one in issues if "that only version 2 has" in one.text] or [""]
    named = text.partition(" has: ")[2].rpartition("; set")[0].replace("POST /orders ", "")
    return named.split("; ") if named else []


NODE = {"$ref": "#/components/schemas/Node"}


@pytest.mark.parametrize(
    ("older", "newer", "changes", "found"),
    [
        (an_object(a=TEXT), an_object(a=TEXT), "", []),
        (an_object(a=TEXT), an_object(a=TEXT, b=TEXT, c=TEXT), "", ["response 200 /b, /c"]),
        (
            an_object(a=TEXT),
            an_object(a=TEXT, b=TEXT),
            "remove: { field: x, value: 1 }",
            ["response 200 /b"],
        ),
        (an_object(b=TEXT), an_object(a=TEXT), "rename: { field: a, to: b }", []),
        (
            an_object(b=an_object(c=TEXT)),
            an_object(a=an_object(d=TEXT)),
            "rename: { field: a, to: b }",
            ["response 200 /a/d"],
        ),
        (an_object(), an_object(a=TEXT), "", []),
        (an_object(x=TEXT), an_object(x=TEXT, a=TEXT), "default: { field: a, value: b }", []),
        (
            an_object(orderLine=TEXT),
            an_object(order_line=TEXT),
            "key_case: { newer: snake, older: camel }",
            [],
        ),
        (
            an_object(full=TEXT),
            an_object(a=TEXT, b=TEXT),
            "join: { fields: [a, b], into: full }",
            [],
        ),
        (
            an_object(l=an_object(code=TEXT)),
            an_object(l=an_object(sku=TEXT, tax=TEXT)),
            "use: { group: item, at: [l] }",
            ["response 200 /l/tax"],
        ),
        (
            an_object(l={"type": "array", "items": an_object(a=TEXT)}),
            an_object(l={"type": "array", "items": an_object(b=TEXT)}),
            "",
            ["response 200 /l/*/b"],
        ),
        (
            an_object(m={"additionalProperties": an_object(a=TEXT)}),
            an_object(m={"additionalProperties": an_object(b=TEXT)}),
            "",
            ["response 200 /m/*/b"],
        ),
        (an_object(name=TEXT, a=NODE, b=NODE), NODE, "", ["response 200 /next"]),
        (
            an_object(a=TEXT),
            an_object(data=an_object(a=TEXT, b=TEXT)),
            "extract: { key: data }",
            ["response 200 /data/b"],
        ),
    ],
)
def test_fields_that_no_change_names_are_listed(
    tmp_path: Path, older: object, newer: object, changes: str, found: list[str]
) -> None:
    change = f"{{ {changes} }}" if changes else ""
    assert listed(tmp_path, document(older), document(newer), change) == found


def test_a_component_is_listed_once(tmp_path: Path) -> None:
    newer = document(an_object(a=NODE, b=NODE))
    older = json.loads(json.dumps(newer))
    newer["components"]["schemas"]["Node"]["properties"]["tax"] = TEXT
    assert listed(tmp_path, older, newer) == ["response 200 /a/tax"]


def test_requests_parameters_and_operations_are_listed(tmp_path: Path) -> None:
    read_only = {"type": "string", "readOnly": True}
    older = document(an_object(a=TEXT), "page", sent=an_object(a=TEXT))
    sent = an_object(a=TEXT, vatId=TEXT, id=read_only)
    newer = document(an_object(a=TEXT), "offset", "limit", sent=sent, get={"responses": {}})
    query = "{ rename: { field: offset, to: page } }"
    assert listed(tmp_path, older, newer, "", query) == [
        "query limit",
        "request /vatId",
        "GET /orders (operation)",
    ]


@pytest.mark.parametrize(
    ("additional", "found"),
    [("pass", []), ("drop", []), ("{ requests: refuse, responses: drop }", [])],
)
def test_a_decision_about_additional_parts_silences_the_list(
    tmp_path: Path, additional: str, found: list[str]
) -> None:
    older, newer = document(an_object(a=TEXT)), document(an_object(b=TEXT), "limit")
    assert listed(tmp_path, older, newer, options=f"additional: {additional}") == found


def test_an_allowed_loss_shows_the_list_with_its_reason(tmp_path: Path) -> None:
    older, newer = document(an_object(a=TEXT)), document(an_object(a=TEXT, b=TEXT))
    path = written(tmp_path, older, newer, options="allow_loss: b is public")
    (issue,) = check_conversions(path, {}, load_file(path, {}))
    assert issue.is_allowed
    assert issue.text.endswith("set additional to drop, refuse or pass it (b is public)")


def test_verify_lists_additional_parts_beside_the_claims(tmp_path: Path) -> None:
    older, newer = document(an_object(a=TEXT)), document(an_object(a=TEXT, b=TEXT), "limit")
    snapshot = load_file(written(tmp_path, older, newer), {})
    results = list(verify(snapshot, tmp_path, VerifyOptions()))
    lines = list(verification_report.text(results))
    assert lines[-3:] == [
        "  +      POST /orders                 query            only version 2 has limit",
        "  +      POST /orders                 response 200     only version 2 has /b",
        "2 of 2 claims hold: 1 proved (50 %), 1 by 1 examples; additional: 2",
    ]
    report = json.loads("".join(verification_report.json(results)))
    assert report["holds"] is True
    assert {"body": "response", "status": "200", "additional": ["/b"]}.items() <= report["claims"][
        -1
    ].items()
