"""Warnings about undeclared operations at paths whose other operations have moved."""

import json
from pathlib import Path

import pytest

from gateway.rules.checks.conversions import check_conversions
from gateway.rules.load import load_file

RULES = """\
services: { old: { targets: ["http://127.0.0.1:1"] }, new: { targets: ["http://127.0.0.1:2"] } }
apis:
  pay:
    upstream_path: "/{rest}"
    versions: { VERSIONS }
    endpoints: [ { path: "/v{version}/{rest*}", version: { in: path } } ]
    conversions:
      - between: ["1", "2"]
        operations:
          - { newer: POST /payments, older: POST /pay }
          - { newer: "GET /payments/{id}", older: "GET /pay/{id}" }
          - { newer: "PATCH /notes/{id}", older: "PUT /notes/{id}" }
          - { older: DELETE /fax, refuse: {} }
"""
NEW_ALONE = '"1": { via: "2", schema: v1.json }, "2": { service: new, SCHEMA }'
OLD_ALONE = '"1": { service: old }, "2": { via: "1", schema: v2.json }'


def described(operations: str) -> dict[str, object]:
    """Return a document with operations, which are given as `GET /pay, POST /pay`."""
    paths: dict[str, dict[str, object]] = {}
    for operation in operations.split(", "):
        method, path = operation.split()
        paths.setdefault(path, {})[method.lower()] = {"responses": {"200": {}}}
    return {"openapi": "3.1.0", "paths": paths}


def said(folder: Path, versions: str, **documents: str) -> list[str]:
    for name, operations in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(described(operations)))
    path = folder / "gateway.yaml"
    path.write_text(RULES.replace("VERSIONS", versions))
    snapshot = load_file(path, {})
    issues = check_conversions(path, {}, snapshot)
    found = [issue for issue in issues if "no change names the parts that only" not in issue.text]
    return [f"{issue.place}: {issue.text}" for issue in found]


AT = "apis.pay.conversions[0].operations: warning:"
TO_2 = "which is not among these: version 2 gets requests for it at the same path, where"


@pytest.mark.parametrize(
    ("older", "newer", "found"),
    [
        ("POST /pay, GET /pay/{no}", "POST /payments, GET /payments/{id}", []),
        # An unchanged path, another method at the same path, and a refused operation.
        ("POST /pay, GET /pay", "POST /payments, GET /pay", []),
        ("PUT /notes/{id}, GET /notes/{id}", "PATCH /notes/{id}, GET /notes/{id}", []),
        ("DELETE /fax, POST /pay", "POST /payments", []),
        (
            "POST /pay, GET /pay",
            "POST /payments, GET /payments",
            [
                (
                    f"{AT} version 1 has GET /pay too, {TO_2} POST /pay is POST /payments; declare"
                    " { older: GET /pay, newer: GET /payments }"
                )
            ],
        ),
        (
            "GET /pay/{no}, DELETE /pay/{no}",
            "GET /payments/{id}",
            [
                (
                    f"{AT} version 1 has DELETE /pay/{{no}} too, {TO_2} GET /pay/{{id}} is"
                    ' GET /payments/{id}; declare { older: "DELETE /pay/{id}", refuse: {} }'
                )
            ],
        ),
    ],
)
def test_an_undeclared_moved_operation_is_reported(
    tmp_path: Path, older: str, newer: str, found: list[str]
) -> None:
    versions = NEW_ALONE.replace("SCHEMA", "schema: v2.json")
    assert said(tmp_path, versions, v1=older, v2=newer) == found


def test_the_warning_names_both_remedies_without_the_other_document(tmp_path: Path) -> None:
    versions = NEW_ALONE.replace(", SCHEMA", "")
    (found,) = said(tmp_path, versions, v1="POST /pay, GET /pay")
    assert found.endswith(
        "declare { older: GET /pay, newer: GET /payments }, or { older: GET /pay, refuse: {} } if"
        " version 2 lacks it"
    )


def test_operations_of_a_newer_version_served_by_an_older_one_are_checked(tmp_path: Path) -> None:
    (found,) = said(tmp_path, OLD_ALONE, v2="POST /payments, PUT /payments")
    assert found.endswith(
        "declare { newer: PUT /payments, older: PUT /pay }, or { newer: PUT /payments, refuse: {} }"
        " if version 1 lacks it"
    )
    own = OLD_ALONE.replace('via: "1"', "service: new")
    assert said(tmp_path, own, v2="POST /payments, PUT /payments") == []
