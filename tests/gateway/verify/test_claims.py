"""Claims about the operations in two documents."""

from pathlib import Path
from typing import Any

from gateway.rules.load import load
from gateway.verify import verification_report
from gateway.verify.claims import Claim, Outcome, claims
from gateway.verify.openapi.examples import Examples
from gateway.verify.openapi.openapi import Description
from gateway.verify.proof import Prover
from gateway.verify.verify import VerifyOptions, verify
from gateway.versions.version import Version
from tests.gateway.verify.loans import document, written

OLDER = document(
    loans="get post",
    loans_overdue="get",
    loans_ID="get put delete",
    loans_archive="get",
    livez="get",
)
NEWER = document(
    lendings="get", lendings_late="get", lendings_ID="get put", lendings_new="get", livez="get"
)


def kind(outcome: Outcome) -> str:
    return "claim" if isinstance(outcome, Claim) else outcome.kind


def test_each_operation_of_both_documents_has_one_outcome(tmp_path: Path) -> None:
    _, snapshot = written(tmp_path, OLDER, NEWER)
    (api,) = snapshot.apis
    sides = (
        (version, Description(data, name))
        for version, data, name in zip(
            api.versions.values(), (OLDER, NEWER), ("v1", "v2"), strict=True
        )
    )
    found = [(kind(one), one.operation) for one in claims(api, *sides)]
    assert found == [
        ("claim", "GET /loans -> /lendings"),
        ("gap", "POST /loans"),
        ("claim", "GET /loans/overdue -> /lendings/late"),
        ("claim", "GET /loans/{id} -> /lendings/{id}"),
        ("claim", "PUT /loans/{id} -> /lendings/{id}"),
        ("unchecked", "DELETE /loans/{id}"),
        ("gap", "GET /loans/archive"),
        ("unchecked", "GET /livez"),
        ("unmatched", "GET /lendings/new"),
    ]


def report(folder: Path, older: dict[str, Any], newer: dict[str, Any]) -> list[str]:
    _, snapshot = written(folder, older, newer)
    return [*verification_report.text(verify(snapshot, folder, VerifyOptions(examples=3)))]


def test_only_the_first_of_two_paths_with_different_parameter_names_is_paired(
    tmp_path: Path,
) -> None:
    older = document(loans_ID="get", loans_x="get")
    older["paths"]["/loans/{key}"] = older["paths"].pop("/loans/x")
    newer = document(lendings_ID="get", lendings_x="get")
    newer["paths"]["/lendings/{key}"] = newer["paths"].pop("/lendings/x")
    lines = report(tmp_path, older, newer)
    assert [line[:51].split() for line in lines[1:-1]] == [
        ["ok", "GET", "/loans/{id}", "->", "/lendings/{id}", "response"],
        ["-", "GET", "/loans/{key}"],
        ["-", "GET", "/lendings/{key}"],
    ]
    assert lines[2].endswith(
        "not checked: requests for it match GET /loans/{id}; keep only one of them in the document"
    )


def test_an_api_with_another_upstream_path_is_verified(tmp_path: Path) -> None:
    assert report(tmp_path, document(loans="get"), document(lendings="get")) == [
        "loans: version 1, served by version 2",
        "  ok     GET /loans -> /lendings      response 200     proved",
        "1 of 1 claims hold: 1 proved",
    ]


def test_the_report_lists_gaps_and_operations_without_a_claim(tmp_path: Path) -> None:
    older, newer = document(loans="get", livez="get"), document(lendings_late="get")
    lines = report(tmp_path, older, newer)
    assert [" ".join(line.split()) for line in lines][1:] == [
        "GAP GET /loans version 2 has no such operation",
        "- GET /livez not checked: no endpoint leads to it",
        "- GET /lendings/late without counterpart: version 1 has no such operation",
        "0 of 1 claims hold; gaps: 1; not checked: 1; without counterpart: 1",
    ]


RULES = """\
services: { new: { targets: ["http://127.0.0.1:1"] } }
apis:
  shop:
    upstream_path: "/{rest}"
    versions: { "1": { via: "2" }, "2": { service: new } }
    endpoints:
      - { path: "/v{version}/{rest*}", version: { in: path } }
      - { path: "/named/{rest*}", version: { in: header, name: X-Version } }
    conversions:
"""


def outcomes(conversions: str, older: Description, newer: Description) -> list[Outcome]:
    api = load((RULES + conversions).encode(), "gateway.yaml", {}).apis[0]
    sides = (Version(1, "1"), older), (Version(2, "2"), newer)
    return [*claims(api, *sides)]


BODIES = """\
      - between: ["1", "2"]
        operations:
          - { older: POST /cancel, newer: POST /cancellations, request_body: newer }
          - { older: POST /clear, newer: DELETE /all, request_body: older }
          - { older: POST /note, newer: POST /notes, request_body: newer }
          - { older: POST /keyed, newer: POST /keys, request_body: newer }
      - between: ["1", "2"]
        operations: [ POST /cancellations ]
        changes: [ default: { field: reason, value: none } ]
      - between: ["1", "2"]
        operations: [ DELETE /all ]
        changes: [ remove: { field: sure, value: true } ]
      - between: ["1", "2"]
        operations: [ POST /keys ]
        changes: [ to_header: { field: key, header: X-Key, default: "" } ]
"""


def test_bodies_that_only_one_version_has_are_tested() -> None:
    def described(name: str, **bodies: dict[str, object] | None) -> Description:
        text = {"type": "string"}
        paths: dict[str, object] = {}
        for operation, fields in bodies.items():
            method, _, path = operation.partition("_")
            schema = {
                "properties": dict.fromkeys(fields or {}, text),
                "required": [*(fields or {})],
            }
            content = {"application/json": {"schema": {"type": "object", **schema}}}
            body = {} if fields is None else {"requestBody": {"content": content, "required": True}}
            paths[f"/{path}"] = {method: body}
        return Description({"openapi": "3.1.0", "paths": paths}, name)

    older = described(
        "v1", post_cancel=None, post_clear={"sure": 1, "why": 1}, post_note=None, post_keyed=None
    )
    newer = described(
        "v2",
        post_cancellations={"reason": 1},
        delete_all=None,
        post_notes={"text": 1},
        post_keys={"key": 1},
    )
    found = {
        outcome.operation: [
            finding.field for finding in Prover(Examples(3, 0)).prove(outcome).findings
        ]
        for outcome in outcomes(BODIES, older, newer)
        if isinstance(outcome, Claim)
    }
    assert found == {
        "POST /cancel -> /cancellations": [],
        "POST /clear -> DELETE /all": ["/why"],
        "POST /note -> /notes": ["/text"],
        "POST /keyed -> /keys": [],
    }


OPERATIONS = """\
      - between: ["1", "2"]
        operations:
          - older: PUT /pay/{id}
            newer: PATCH /payments/{id}
            status: { newer: 201, older: 200 }
          - { older: POST /fax, refuse: { status: 410 } }
          - { older: POST /telex, service: new }
          - { older: GET /lost, newer: GET /nowhere }
"""


def test_operations_are_paired_with_the_operations_that_they_map_to() -> None:
    """A status of the service is paired with the status that the client receives."""

    def described(name: str, paths: dict[str, tuple[str, str]]) -> Description:
        schema = {"type": "object", "properties": {"a": {"type": "string"}}}
        content = {"content": {"application/json": {"schema": schema}}}
        listed = {
            path: {method: {"responses": {status: content}}}
            for path, (method, status) in paths.items()
        }
        return Description({"openapi": "3.1.0", "paths": listed}, name)

    older = described(
        "v1",
        {
            "/pay/{id}": ("put", "200"),
            "/fax": ("post", "200"),
            "/telex": ("post", "200"),
            "/lost": ("get", "200"),
            "/same": ("get", "200"),
        },
    )
    newer = described("v2", {"/payments/{id}": ("patch", "201"), "/same": ("get", "200")})
    found = [
        (kind(one), one.operation, getattr(one, "reason", ""))
        for one in outcomes(OPERATIONS, older, newer)
    ]
    assert found == [
        ("claim", "PUT /pay/{id} -> PATCH /payments/{id}", ""),
        ("unchecked", "POST /fax", "it is refused with status 410"),
        ("unchecked", "POST /telex", "the service new answers it"),
        ("gap", "GET /lost", "has no such operation"),
        ("claim", "GET /same", ""),
    ]


MOVED = """\
      - between: ["1", "2"]
        operations:
          - { newer: "GET /payments/pay_{id}", older: "GET /pay/P-{id}" }
          - { newer: "GET /found/{id}", older: "GET /find?id={id}&in=all" }
          - { newer: "GET /search?of={id}", older: "GET /sought/{id}" }
"""


def test_operations_with_moved_path_parameters_are_paired() -> None:
    """The document omits the prefix of a capture. A query parameter moves to the path."""

    def described(**paths: tuple[str, ...]) -> Description:
        text = {"type": "string"}
        answer = {"content": {"application/json": {"schema": {"type": "object"}}}}
        listed = {
            "/" + path.replace("_ID", "/{number}"): {
                "get": {
                    "parameters": [
                        {"name": name, "in": "query", "required": True, "schema": text}
                        for name in names
                    ],
                    "responses": {"200": answer},
                }
            }
            for path, names in paths.items()
        }
        return Description({"openapi": "3.1.0", "paths": listed}, "document")

    older = described(pay_ID=(), find=("id", "in", "page"), sought_ID=())
    newer = described(payments_ID=(), found_ID=("page",), search=("of",))
    found = [one for one in outcomes(MOVED, older, newer) if isinstance(one, Claim)]
    assert [(one.operation, one.part.value) for one in found] == [
        ("GET /pay/{number} -> /payments/{number}", "response"),
        ("GET /find -> /found/{number}", "query"),
        ("GET /find -> /found/{number}", "response"),
        ("GET /sought/{number} -> /search", "response"),
    ]
    assert found[1].given["properties"] == {"page": {"type": "string"}}


FORMS = """\
      - between: ["1", "2"]
        changes: [ { rename: { field: title, to: name } } ]
      - between: ["1", "2"]
        operations: [ "POST /typed" ]
        forms: { version: older, numbers: [n, ns], booleans: [on], lists: [ns] }
      - between: ["1", "2"]
        operations: [ "POST /late" ]
        changes: [ to_query: { field: dry, parameter: dry, type: boolean } ]
"""
FORM, JSON = "application/x-www-form-urlencoded", "application/json"


def taking(name: str, **operations: dict[str, dict[str, object]]) -> Description:
    paths = {}
    for operation, bodies in operations.items():
        schema = {"$ref": f"#/components/schemas/{operation}"}
        content = {media_type: {"schema": schema} for media_type in bodies}
        body = {"content": content, "required": True}
        parameters = [{"name": "dry", "in": "query", "schema": {"type": "boolean"}}]
        paths[f"/{operation}"] = {
            "post": {"requestBody": body, "parameters": parameters}
            if operation == "late"
            else {"requestBody": body}
        }
    schemas = {
        operation: {
            "type": "object",
            "properties": (fields := next(iter(bodies.values()))),
            "required": [*fields],
            "additionalProperties": False,
        }
        for operation, bodies in operations.items()
    }
    document = {"openapi": "3.1.0", "paths": paths, "components": {"schemas": schemas}}
    return Description(document, name)


def test_forms_are_tested_with_the_conversion_of_live_forms() -> None:
    """A form has strings without types, unless `forms` converts it to JSON."""
    text, number = {"type": "string"}, {"type": "integer"}
    maybe = {"anyOf": [number, {"type": "null"}]}
    numbers, on = {"type": "array", "items": number}, {"type": "boolean"}
    given = {"name": text, "n": number, "ns": numbers, "on": on}
    arrives = {"title": text, "n": number, "ns": numbers, "on": on}
    older = taking(
        "v1",
        kept={FORM: {**given, "maybe": maybe}},
        both={JSON: {"name": text}, FORM: {"name": text}},
        typed={FORM: given},
        untyped={FORM: {"name": text}},
        other={FORM: {"name": text}},
        lost={FORM: {"name": text}},
        late={FORM: {"name": text}},
    )
    newer = taking(
        "v2",
        kept={FORM: {**arrives, "maybe": maybe}},
        both={FORM: {"title": text}, JSON: {"title": text}},
        typed={JSON: arrives},
        untyped={JSON: {"title": text}},
        other={"text/csv": {}},
        lost={FORM: {"name": text}},
        late={FORM: {"title": text, "dry": on}},
    )
    found = []
    for outcome in outcomes(FORMS, older, newer):
        if isinstance(outcome, Claim):
            fields = [finding.field for finding in Prover(Examples(20, 0)).prove(outcome).findings]
            found.append((outcome.operation, outcome.part.value, fields))
        else:
            assert outcome.kind == "gap"
            found.append((outcome.operation, outcome.reason, []))
    assert found == [
        ("POST /kept", "form", []),
        ("POST /both", "form", []),
        ("POST /both", "request", []),
        ("POST /typed", "form", []),
        ("POST /untyped", "takes no form, but JSON; name them in forms:", []),
        ("POST /other", "takes no form", []),
        ("POST /lost", "form", ["/title", "/name"]),
        ("POST /late", "form message", ["/body/dry"]),
    ]


def test_a_request_body_that_is_a_stream_is_reported_as_unchecked() -> None:
    lines = "application/jsonl"
    older = taking("v1", stream={lines: {}}, both={lines: {}, JSON: {}}, other={"text/csv": {}})
    newer = taking("v2", stream={JSON: {}}, both={lines: {}, JSON: {}}, other={"text/csv": {}})
    found = outcomes('      - { between: ["1", "2"], changes: [] }', older, newer)
    assert [(one.operation, getattr(one, "reason", "")) for one in found] == [
        ("POST /stream", f"version 1 sends {lines}, whose documents are not checked"),
        ("POST /both", ""),
        ("POST /other", "it has no JSON body and no parameter"),
    ]


BESIDE = """\
      - between: ["1", "2"]
        operations: [ "GET /days" ]
        query: [ { map: { field: state, values: { OPEN: open } } } ]
        changes: [ { python: { field: at, up: "json:dumps", down: "json:loads" } } ]
"""


def test_the_number_of_findings_is_limited_and_each_names_its_cause() -> None:
    text, number = {"type": "string"}, {"type": "integer"}

    def described(answer: dict[str, object]) -> Description:
        content = {"application/json": {"schema": {"type": "object", **answer}}}
        parameters = [{"name": "state", "in": "query", "schema": text}]
        operation = {"parameters": parameters, "responses": {"200": {"content": content}}}
        return Description({"openapi": "3.1.0", "paths": {"/days": {"get": operation}}}, "v")

    older = described({"properties": {"at": {}}, "additionalProperties": False})
    newer = described({"additionalProperties": number, "minProperties": 5})
    query, free = outcomes(BESIDE, older, newer)
    assert isinstance(query, Claim)
    assert isinstance(free, Claim)
    (finding,) = Prover(Examples(20, 0)).prove(query).findings
    assert (finding.field, finding.keyword) == ("/state", "convert")
    proof = Prover(Examples(20, 0)).prove(free)
    assert len(proof.findings) == 20
    assert proof.more > 0
    lines = [line.strip() for line in verification_report.text([proof])]
    assert f"and {proof.more} more" in lines
    refused = described({"properties": {"at": text}, "required": ["at"]})
    _, refusing = outcomes(BESIDE, older, refused)
    assert isinstance(refusing, Claim)
    reasons = [finding.reason for finding in Prover(Examples(20, 0)).prove(refusing).findings]
    assert any("(json:loads raised JSONDecodeError" in reason for reason in reasons)
