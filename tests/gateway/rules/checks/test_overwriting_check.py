"""Warnings about endpoints where a client overwrites data that its version does not have."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from gateway.rules.checks.conversions import check_conversions
from gateway.rules.load import load_file

RULES = """\
services: {{ v2: {{ targets: ["http://127.0.0.1:9"] }} }}
apis:
  orders:
    endpoints:
      - {{ path: "/v{{version}}/orders/{{id}}", version: {{ in: path }}{endpoint} }}
    versions:
      {versions}
    conversions:
      - between: ["1", "2"]
        {conversion}
    groups:
      item: [ default: {{ field: note, value: "" }} ]
"""
OLD = '"1": { via: "2" }\n      "2": { service: v2 }'
NEW = '"1": { service: v2 }\n      "2": { via: "1" }'
CUTOVER = '"1": { service: v2, cutover: { via: "2", percent: 5 } }\n      "2": { service: v2 }'
OWN = '"1": { service: v2 }\n      "2": { service: v2 }'
DEFAULT = "default: { field: channel, value: web }"
LEFT_OUT = "'channel' is left out"
ORDERS = "/v{version}/orders/{id}"


def warned(folder: Path, conversion: str, versions: str = OLD, endpoint: str = "") -> list[str]:
    rules = RULES.format(endpoint=endpoint, versions=versions, conversion=conversion)
    path = folder / "gateway.yaml"
    path.write_text(rules)
    found = check_conversions(path, {}, load_file(path, {}))
    return [issue.text for issue in found if issue.place == "apis.orders.endpoints[0]"]


def warning(methods: str, *lost: str, old: int = 1, new: int = 2, path: str = ORDERS) -> str:
    return (
        f"warning: a {methods} to {path} by a client of version {old} destroys data of version"
        f" {new}: {'; '.join(lost)}. Set writes: merge, keep the field in version {old}"
        f" (keep: true), or refuse {methods} of version {old} here"
    )


def test_data_that_a_change_may_lose_causes_no_warning(tmp_path: Path) -> None:
    changes = (
        f"changes: [ {{ {DEFAULT}, allow_loss: only the web shop writes }},"
        " default: { field: state, value: open } ]"
    )
    allowed = (
        f"allowed: a PUT to {ORDERS} by a client of version 1 destroys data of version 2:"
        " 'channel' is left out (only the web shop writes)"
    )
    assert warned(tmp_path, changes) == [warning("PUT", "'state' is left out"), allowed]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (DEFAULT, [("PUT", LEFT_OUT)]),
        ("default: { field: channel, value: web, keep: true }", []),
        ("default: { field: 'lines[].note', value: '' }", [("PUT or PATCH", "'lines[].note' is")]),
        ("unwrap: { field: rules }", [("PUT or PATCH", "of several elements, 'rules' keeps")]),
        ("unwrap: { field: rules, many: refuse }", []),
        ("wrap: { field: rules }", []),
        ("extract: { field: customer, key: id }", [("PUT", "the other fields of 'customer'")]),
        ("extract: { field: customer, key: id, others: refuse }", []),
        ("round: { field: price, digits: 1 }", [("PUT or PATCH", "'price' is rounded")]),
        ("use: { group: item, at: ['items[]'] }", [("PUT or PATCH", "'note' is left out in")]),
        ("remove: { field: channel }", []),
        ("rename: { field: a, to: b }", []),
        ("join: { fields: [a, b], into: c }", [("PUT or PATCH", "'a', 'b' come back as 'c'")]),
        ("to_header: { field: a, header: X-A }", [("PUT", "'a' is in the header field X-A")]),
        (f"{DEFAULT}, default: {{ field: x, value: 1 }}", None),
    ],
)
def test_the_data_that_each_change_loses_is_reported(
    tmp_path: Path, change: str, expected: list[tuple[str, str]] | None
) -> None:
    if expected is None:
        changes = change.replace(", default", " }, { default")
        lost = "'x' is left out", LEFT_OUT
        assert warned(tmp_path, f"changes: [ {{ {changes} }} ]") == [warning("PUT", *lost)]
        return
    found = warned(tmp_path, f"changes: [ {change} ]")
    assert len(found) == len(expected)
    for text, (methods, lost_text) in zip(found, expected, strict=True):
        assert text.startswith(f"warning: a {methods} to {ORDERS} by a client of version 1 dest")
        assert f"version 2: {lost_text}" in text


@pytest.mark.parametrize(
    ("versions", "change", "expected"),
    [
        (OWN, DEFAULT, []),
        (CUTOVER, DEFAULT, [warning("PUT", LEFT_OUT)]),
        (NEW, DEFAULT, []),
        (NEW, "remove: { field: channel }", [warning("PUT", LEFT_OUT, old=2, new=1)]),
    ],
    ids=["own services", "cutover", "newer by default", "newer by remove"],
)
def test_the_warning_depends_on_the_version_of_the_service(
    tmp_path: Path, versions: str, change: str, expected: list[str]
) -> None:
    assert warned(tmp_path, f"changes: [ {change} ]", versions) == expected


@pytest.mark.parametrize(
    ("endpoint", "conversion", "expected"),
    [
        (", methods: [GET]", "", []),
        (", methods: [GET, POST, DELETE]", "", []),
        (", methods: [GET, PATCH]", "", []),
        (", methods: [PUT]", "", [warning("PUT", LEFT_OUT)]),
        ("", "methods: [GET]", [warning("PUT", LEFT_OUT)]),
        ("", "methods: [POST]", []),
        ("", "on: errors\n        statuses: [4xx]", []),
        ("", f'operations: [ "PUT {ORDERS}" ]', [warning("PUT", LEFT_OUT)]),
        ("", f'operations: [ "GET {ORDERS}" ]', []),
        ("", "writes: merge", []),
        ("", "writes: { without_tag: accept }", []),
        (
            "",
            f'operations: [ {{ newer: "PUT {ORDERS}", older: "PUT {ORDERS}", writes: merge }} ]',
            [],
        ),
        (", methods: [GET]", f'operations: [ "PUT {ORDERS}" ]', []),
        ("", f'operations: [ {{ newer: "PATCH {ORDERS}", older: "PUT {ORDERS}" }} ]', []),
    ],
)
def test_the_warning_depends_on_the_methods_of_endpoint_and_conversion(
    tmp_path: Path, endpoint: str, conversion: str, expected: list[str]
) -> None:
    keys = f"{conversion}\n        " if conversion else ""
    found = warned(tmp_path, f"{keys}changes: [ {DEFAULT} ]", endpoint=endpoint)
    assert found == expected


def described(**methods: list[str]) -> dict[str, object]:
    def operation(fields: list[str]) -> dict[str, object]:
        schema = {"type": "object", "properties": {key: {"type": "string"} for key in fields}}
        content = {"content": {"application/json": {"schema": schema}}}
        return {"requestBody": content, "responses": {"200": {**content, "description": ""}}}

    of_methods = {method: operation(fields) for method, fields in methods.items()}
    return {"openapi": "3.1.0", "paths": {"/orders/{id}": of_methods}}


@pytest.mark.parametrize(
    ("older", "newer", "expected"),
    [
        (described(put=["id"]), described(put=["id", "channel"]), [warning("PUT", LEFT_OUT)]),
        (described(put=["id"]), described(put=["id"]), []),
        (described(get=["id"]), described(get=["id"], put=["id", "channel"]), []),
        (described(put=["id"], get=["id"]), described(get=["id", "channel"]), []),
        (None, described(put=["id", "channel"]), [warning("PUT", LEFT_OUT)]),
        (described(put=["id"]), None, [warning("PUT", LEFT_OUT)]),
    ],
)
def test_documents_limit_the_warnings_to_operations_with_the_field(
    tmp_path: Path,
    older: Mapping[str, object] | None,
    newer: Mapping[str, object] | None,
    expected: list[str],
) -> None:
    versions = OLD
    for label, document in (("1", older), ("2", newer)):
        if document is not None:
            (tmp_path / f"v{label}.json").write_text(json.dumps(document))
            line = f'"{label}": {{ '
            versions = versions.replace(line, f"{line}schema: v{label}.json, ")
    assert warned(tmp_path, f"changes: [ {DEFAULT} ]", versions) == expected


def stored(**fields: object) -> dict[str, object]:
    """Return a document of version 1 or 2 whose GET responds with what PUT and PATCH write."""
    schema = {"type": "object", "properties": fields}
    content = {"content": {"application/json": {"schema": schema}}}
    operation = {"responses": {"200": {**content, "description": ""}}}
    writes = {method: {**operation, "requestBody": content} for method in ("put", "patch")}
    return {"openapi": "3.1.0", "paths": {"/orders/{id}": {"get": operation, **writes}}}


TEXT = {"type": "string"}
LINES = {"type": "array", "items": {"type": "object", "properties": {"id": TEXT, "color": TEXT}}}
OLD_LINES = {"type": "array", "items": {"type": "object", "properties": {"id": TEXT}}}
DROP = "additional: drop"
HIDES = f"{DROP} hides"


def hides(methods: str, what: str) -> str:
    return warning(methods, f"{HIDES} {what}").replace("(keep: true)", "(additional: pass)")


@pytest.mark.parametrize(
    ("keys", "newer", "expected"),
    [
        (DROP, stored(id=TEXT, score=TEXT), [hides("PUT", "'score'")]),
        (DROP, stored(id=TEXT, lines=LINES), [hides("PUT or PATCH", "'lines[].color'")]),
        (DROP, stored(id=TEXT, at={"type": "string", "readOnly": True}), []),
        (DROP, stored(id=TEXT), []),
        (DROP, None, [hides("PUT", "the fields that the document of version 1 lacks")]),
        ("additional: refuse", stored(id=TEXT, score=TEXT), []),
        ("additional: { requests: drop }", stored(id=TEXT, score=TEXT), []),
        (f"{DROP}\n        on: requests", stored(id=TEXT, score=TEXT), []),
        (f"{DROP}\n        methods: [POST]", stored(id=TEXT, score=TEXT), []),
        (f"{DROP}\n        writes: merge", stored(id=TEXT, score=TEXT), []),
    ],
)
def test_a_write_that_deletes_what_additional_hides_causes_a_warning(
    tmp_path: Path, keys: str, newer: Mapping[str, object] | None, expected: list[str]
) -> None:
    (tmp_path / "v1.json").write_text(json.dumps(stored(id=TEXT, lines=OLD_LINES)))
    versions = OLD.replace('"1": {', '"1": { schema: v1.json,')
    if newer is not None:
        (tmp_path / "v2.json").write_text(json.dumps(newer))
        versions = versions.replace('"2": {', '"2": { schema: v2.json,')
    assert warned(tmp_path, f"{keys}\n        changes: []", versions) == expected


def test_the_last_conversion_with_additional_decides_what_a_write_deletes(tmp_path: Path) -> None:
    (tmp_path / "v1.json").write_text(json.dumps(stored(id=TEXT)))
    (tmp_path / "v2.json").write_text(json.dumps(stored(id=TEXT, score=TEXT)))
    versions = OLD.replace('"1": {', '"1": { schema: v1.json,')
    versions = versions.replace('"2": {', '"2": { schema: v2.json,')
    first = f"{DROP}\n        changes: []\n      - between: ['1', '2']"
    later = f"paths: ['{ORDERS}']\n        additional: pass\n        changes: []"
    assert warned(tmp_path, f"{first}\n        {later}", versions) == []


def test_the_warning_about_a_tail_capture_names_each_path(tmp_path: Path) -> None:
    (tmp_path / "v2.json").write_text(json.dumps(described(put=["id", "channel"])))
    versions = OLD.replace('"2": {', '"2": { schema: v2.json,')
    rules = RULES.format(endpoint="", versions=versions, conversion=f"changes: [ {DEFAULT} ]")
    path = tmp_path / "gateway.yaml"
    path.write_text(rules.replace(ORDERS, "/v{version}/{rest*}"))
    found = [issue.text for issue in check_conversions(path, {}, load_file(path, {}))]
    assert found == [warning("PUT", LEFT_OUT, path="/orders/{id}")]


LINE = {"type": "object", "properties": {"id": {"readOnly": True}, "color": {"type": "string"}}}
LINED = {"type": "object", "properties": {"lines": {"type": "array", "items": LINE}}}
JSON_BODY = {"content": {"application/json": {"schema": LINED}}}
DESCRIBED = {
    "openapi": "3.1.0",
    "paths": {
        "/v2/orders/{id}": {
            "get": {"responses": {"200": {"description": "", **JSON_BODY}}},
            "put": {"requestBody": JSON_BODY, "responses": {}},
        }
    },
}


@pytest.mark.parametrize(
    ("key", "unknown"),
    [
        ("lines: id", []),
        ("lines: []", []),
        ("lines: [id, sku]", ["lines[].sku"]),
        ("'lines[]': nr", ["lines[].nr"]),
        ("liens: id", ["liens[].id"]),
    ],
)
def test_a_key_of_a_list_that_no_document_has_causes_a_warning(
    tmp_path: Path, key: str, unknown: list[str]
) -> None:
    (tmp_path / "v2.json").write_text(json.dumps(DESCRIBED))
    writes = f"writes: {{ key: {{ {key} }} }}\n        changes: [ {DEFAULT} ]"
    versions = OLD.replace("{ service: v2 }", "{ service: v2, schema: v2.json }")
    path = tmp_path / "gateway.yaml"
    path.write_text(RULES.format(endpoint="", versions=versions, conversion=writes))
    found = [one.text for one in check_conversions(path, {}, load_file(path, {}))]
    texts = [text for text in found if "in the OpenAPI documents" in text]
    assert [text.split("'")[1] for text in texts] == unknown
