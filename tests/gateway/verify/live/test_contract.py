"""Validation of live messages against the schemas of their operations."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.base.path_templates import parse_template
from gateway.routing.snapshot import Endpoint
from gateway.verify.live.contract import Contract
from gateway.verify.live.document_jobs import MessageCheck, documented_endpoint
from gateway.verify.openapi.openapi import Description
from gateway.versions.version import Version
from tests.gateway.verify.loans import document, written

JSON = (b"Content-Type", b"application/json")
LOAN = b'{"id": 1}'


def violations(
    folder: Path,
    endpoint: str,
    target: str,
    body: bytes = LOAN,
    *fields: tuple[bytes, bytes],
    status: int = 200,
) -> list[tuple[str, str]] | None:
    """Return the violations of a response to a client of version 1, whose ids are strings."""
    older = document(lendings="get", lendings_ID="get", lendings_late="post")
    older["paths"]["/lendings/late"]["get"] = {"responses": {"default": {}}}
    _, snapshot = written(folder, older, document(lendings="get"))
    found = next(one for one in snapshot.apis[0].endpoints if one.template.text == endpoint)
    contract = Contract(Description(older, "v1.json"))
    sample = response(found, target, body, *(fields or [JSON]), status=status)
    violations = contract.violations(sample)
    assert violations == contract.violations(sample)
    return None if violations is None else [(field, keyword) for field, keyword, _ in violations]


def response(
    endpoint: Endpoint, target: str, body: bytes, *fields: tuple[bytes, bytes], status: int = 200
) -> MessageCheck:
    place = documented_endpoint(endpoint, Version(1, "1"))
    return MessageCheck("v1.json", place, "1", "GET", target, [*fields], body, status)


def request(
    endpoint: Endpoint, method: str, target: str, body: bytes | None, *fields: tuple[bytes, bytes]
) -> MessageCheck:
    place = documented_endpoint(endpoint, Version(2, "2"))
    return MessageCheck("v2.json", place, "2", method, target, [*fields], body)


@pytest.mark.parametrize(
    ("endpoint", "target"),
    [
        ("/v{version}/loans", "/lendings"),
        # Two operations belong to one endpoint. The requested path determines the operation.
        ("/v{version}/loans/{id}", "/lendings/7?full=1"),
    ],
)
def test_a_violation_is_found_by_the_operation_of_the_request(
    tmp_path: Path, endpoint: str, target: str
) -> None:
    assert violations(tmp_path, endpoint, target) == [("/id", "type")]


@pytest.mark.parametrize(
    ("endpoint", "target", "status"),
    [("/v{version}/loans", "/lendings", 404), ("/v{version}/loans/overdue", "/lendings/late", 200)],
)
def test_responses_without_a_declared_schema_are_not_validated(
    tmp_path: Path, endpoint: str, target: str, status: int
) -> None:
    assert violations(tmp_path, endpoint, target, status=status) is None


@pytest.mark.parametrize(
    ("body", "fields", "found"),
    [
        (b"", (), [("body", "json")]),
        (b"{", (JSON,), [("body", "json")]),
        (b"<p>", ((b"Content-Type", b"text/html"),), [("body", "content")]),
        (b"", ((b"Content-Type", b"text/html"),), [("body", "content")]),
        (LOAN, ((b"Content-Type", b"application/json; charset=latin-1"),), None),
        (gzip.compress(LOAN), (JSON, (b"content-encoding", b"gzip")), [("/id", "type")]),
        (gzip.compress(b" " * 300_000), (JSON, (b"Content-Encoding", b"gzip")), None),
        (LOAN, (JSON, (b"Content-Encoding", b"unheard-of")), None),
    ],
)
def test_a_body_that_is_not_json_or_has_an_undeclared_type_is_a_violation(
    tmp_path: Path,
    body: bytes,
    fields: tuple[tuple[bytes, bytes], ...],
    found: list[tuple[str, str]] | None,
) -> None:
    assert violations(tmp_path, "/v{version}/loans", "/lendings", body, *fields) == found


def test_an_undeclared_success_status_is_a_violation(tmp_path: Path) -> None:
    found = violations(tmp_path, "/v{version}/loans", "/lendings", b"", status=204)
    assert found == [("status 204", "status")]


def test_partial_content_is_not_validated(tmp_path: Path) -> None:
    assert violations(tmp_path, "/v{version}/loans", "/lendings", b'{"i', status=206) is None


def test_an_invalid_schema_is_reported_once(tmp_path: Path) -> None:
    older = document(lendings="get")
    content = {"application/json": {"schema": {"minLength": "one"}}}
    older["paths"]["/lendings"]["get"]["responses"]["200"]["content"] = content
    _, snapshot = written(tmp_path, older, document(lendings="get"))
    found = snapshot.apis[0].endpoints[0]
    sample = response(found, "/lendings", LOAN, JSON)
    contract = Contract(Description(older, "v1.json"))
    with pytest.raises(ValueError, match="not a valid schema"):
        contract.violations(sample)
    assert contract.violations(sample) is None


def test_a_valid_response_body_has_no_violations(tmp_path: Path) -> None:
    body = json.dumps({"id": "7", "books": [{"title": "B", "weight": 3}]}).encode()
    assert violations(tmp_path, "/v{version}/loans", "/lendings", body) == []
    half = rb'{"id": "\ud800"}'  # an unpaired surrogate, which parsers may refuse
    assert violations(tmp_path, "/v{version}/loans", "/lendings", half) == []


BODY = {
    "type": "object",
    "required": ["title"],
    "properties": {
        "title": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "state": {"enum": ["open", "done"]},
    },
    "additionalProperties": False,
}
WRITE = {
    "parameters": [
        {"name": "notify", "in": "query", "required": True, "schema": {"type": "boolean"}},
        {"name": "page", "in": "query", "schema": {"type": "integer"}},
        {"name": "X-Mode", "in": "header", "schema": {"enum": ["fast", "slow"]}},
        {"name": "Accept", "in": "header", "required": True, "schema": {}},
    ],
    "requestBody": {"required": True, "content": {"application/json": {"schema": BODY}}},
    "responses": {"201": {}},
}
FORM = (b"Content-Type", b"application/x-www-form-urlencoded")
TITLE = b'{"title": "B"}'


def refusals(
    folder: Path,
    body: bytes | None = TITLE,
    *fields: tuple[bytes, bytes],
    query: str = "?notify=true",
    method: str = "POST",
) -> list[tuple[str, str]]:
    """Return the fields of a request that version 2 would refuse, with the violated keywords."""
    newer = document(lendings="get")
    formed = {"required": True, "content": {"application/x-www-form-urlencoded": {"schema": BODY}}}
    newer["paths"]["/lendings"] |= {
        "post": WRITE,
        "put": {"requestBody": formed, "responses": {}},
        "delete": {"responses": {}},
    }
    _, snapshot = written(folder, document(lendings="get"), newer)
    media = [] if FORM in fields else [JSON]
    asked = request(
        snapshot.apis[0].endpoints[0], method, f"/lendings{query}", body, *media, *fields
    )
    found = Contract(Description(newer, "v2.json")).violations(asked)
    assert found is not None
    assert all(reason for _, _, reason in found)
    return [(field, rule) for field, rule, _ in found]


def test_a_valid_request_is_not_refused(tmp_path: Path) -> None:
    assert refusals(tmp_path) == []
    assert refusals(tmp_path, TITLE, (b"x-mode", b"fast"), (b"X-Other", b"1")) == []
    assert refusals(tmp_path, None, query="?whatever", method="DELETE") == []
    coded = (b"Content-Encoding", b"gzip")
    assert refusals(tmp_path, gzip.compress(TITLE), coded) == []


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"{}", [("/title", "required")]),
        (b'{"title": 5, "tags": ["a", 1, 2]}', [("/tags/*", "type"), ("/title", "type")]),
        (b'{"title": "B", "state": "lost"}', [("/state", "enum")]),
        (b'{"title": "B", "a/b": 1}', [("/a~1b", "additionalProperties")]),
        (b"[]", [("body", "type")]),
        (b"{", [("body", "json")]),
        (b"", [("body", "required")]),
        (None, [("body", "required")]),
    ],
)
def test_invalid_request_bodies_are_refused(
    tmp_path: Path, body: bytes | None, found: list[tuple[str, str]]
) -> None:
    assert sorted(set(refusals(tmp_path, body))) == found


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", [("query notify", "required")]),
        ("?notify=yes", [("query notify", "type")]),
        ("?notify=false&page=two", [("query page", "type")]),
        ("?notify=false&page=2&other=x", []),
    ],
)
def test_invalid_query_parameters_are_refused(
    tmp_path: Path, query: str, found: list[tuple[str, str]]
) -> None:
    assert refusals(tmp_path, query=query) == found


def test_invalid_header_fields_and_content_codings_are_refused(tmp_path: Path) -> None:
    assert refusals(tmp_path, TITLE, (b"X-Mode", b"odd")) == [("header x-mode", "enum")]
    coded = (b"Content-Encoding", b"gzip")
    assert refusals(tmp_path, b"no gzip", coded) == [("body", "json")]


@pytest.mark.parametrize(
    ("method", "body", "found"),
    [
        ("PUT", b"title=B&tags=5", []),
        ("PUT", b"tags=5&state=lost", [("/state", "enum"), ("/title", "required")]),
        ("PUT", b"title=\xff", [("body", "form")]),
        ("PUT", b"", [("body", "required")]),
        ("POST", b"title=B", [("body", "form")]),  # the operation accepts only JSON
        ("DELETE", b"title=B", []),  # the document does not describe the body
    ],
)
def test_invalid_forms_are_refused(
    tmp_path: Path, method: str, body: bytes, found: list[tuple[str, str]]
) -> None:
    query = "?notify=true" if method == "POST" else ""
    assert sorted(refusals(tmp_path, body, FORM, query=query, method=method)) == found


def test_an_undocumented_operation_is_refused(tmp_path: Path) -> None:
    assert refusals(tmp_path, method="PATCH") == [("operation", "operation")]


def test_an_operation_at_an_endpoint_with_a_tail_capture_applies_only_to_its_own_path(
    tmp_path: Path,
) -> None:
    newer = document(lendings="get")
    newer["paths"]["/lendings"]["post"] = WRITE
    _, snapshot = written(tmp_path, document(lendings="get"), newer)
    endpoint = replace(snapshot.apis[0].endpoints[0], template=parse_template("/{rest*}"))
    contract = Contract(Description(newer, "v2.json"))
    for target, found in (("/lendings", ["/title", "query notify"]), ("/other", ["operation"])):
        refused = contract.violations(request(endpoint, "POST", target, b"{}", JSON))
        assert sorted(field for field, _, _ in refused or ()) == found


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("/lendings/7", []),
        ("/api/lendings/7?x=1", []),
        ("/lendings/seven", [("path id", "type")]),
        ("/lendings/0", [("path id", "minimum")]),
        ("/elsewhere", []),
    ],
)
def test_invalid_path_parameters_are_refused(
    tmp_path: Path, target: str, found: list[tuple[str, str]]
) -> None:
    newer = document(lendings_ID="get")
    parameter = {"name": "id", "in": "path", "schema": {"type": "integer", "minimum": 1}}
    newer["paths"]["/lendings/{id}"]["get"] |= {"parameters": [{**parameter, "required": True}]}
    _, snapshot = written(tmp_path, document(loans="get"), newer)
    endpoint = snapshot.apis[0].endpoints[2]
    asked = request(endpoint, "GET", target, None)
    refused = Contract(Description(newer, "v2.json")).violations(asked)
    assert [(field, rule) for field, rule, _ in refused or ()] == found
