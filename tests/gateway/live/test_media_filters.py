"""Conversions for certain media types of requests and responses, over sockets."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.__main__ import main
from tests.gateway.kit import Program, StartGateway
from tests.gateway.live.conftest import House
from tests.gateway.live.raw import answer, ask, get

# As in Kubernetes: four kinds of PATCH, and lists as tables.
RULES = """\
services: {{ s: {{ targets: ["http://127.0.0.1:{port}"] }} }}
apis:
  k8s:
    endpoints: [ {{ path: "/apis/v{{version}}/{{rest*}}", version: {{ in: path }} }} ]
    versions: {{ "1": {{ via: "2" }}, "2": {{ service: s }} }}
    conversions:
      - between: ["1", "2"]
        content_type: application/strategic-merge-patch+json
        changes: [ {{ rename: {{ field: strategic, to: value }} }} ]
      - between: ["1", "2"]
        content_type: [application/merge-patch+json, application/json-patch+json]
        changes: [ {{ rename: {{ field: merged, to: value }} }} ]
      - between: ["1", "2"]
        content_type: application/apply-patch+yaml
        changes: [ {{ rename: {{ field: applied, to: value }} }} ]
      - between: ["1", "2"]
        accept: application/json;as=Table;g=meta.k8s.io
        on: responses
        changes: [ {{ rename: {{ field: "rows[].cells", to: "rows[].columns" }} }} ]
      - between: ["1", "2"]
        accept: {{ is_not: application/json;as=Table }}
        on: responses
        changes: [ {{ rename: {{ field: "items[].state", to: "items[].status" }} }} ]
      - between: ["1", "2"]
        on: responses
        content_type: application/vnd.example+json
        changes: [ {{ rename: {{ field: newName, to: name }} }} ]
"""
TABLE = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,"
    "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)
BODY = {"rows": [{"cells": 1}], "items": [{"state": 1}], "newName": 1}


@pytest.fixture
def program(configured: StartGateway, house: House) -> Program:
    return configured(RULES.format(port=house.service.port))


@pytest.mark.parametrize(
    ("media_type", "body", "arrives"),
    [
        ("application/strategic-merge-patch+json", {"value": 1}, {"strategic": 1}),
        ("application/merge-patch+json; charset=utf-8", {"value": 1}, {"merged": 1}),
        ("APPLICATION/Merge-Patch+JSON", {"value": 1}, {"merged": 1}),
        ("application/apply-patch+yaml", {"value": 1}, {"applied": 1}),
        (
            "application/json-patch+json",
            [{"op": "add", "path": "/value", "value": 1}],
            [{"op": "add", "path": "/merged", "value": 1}],
        ),
        ("application/json", {"value": 1}, {"value": 1}),
    ],
)
def test_the_content_type_of_a_patch_chooses_its_changes(
    program: Program, house: House, media_type: str, body: Any, arrives: Any
) -> None:
    sent = json.dumps(body).encode()
    got = ask(program, "PATCH", "/apis/v1/pods/a", f"Content-Type: {media_type}", body=sent)
    assert got.status == 200
    assert house.service.last.json == arrives
    assert house.service.last.one("Content-Type") == media_type.encode()


def test_the_response_of_a_request_is_converted_by_the_same_choice(
    program: Program, house: House
) -> None:
    house.service.answer = answer(b'{"merged":1,"strategic":2}')
    field = "Content-Type: application/merge-patch+json"
    got = ask(program, "PATCH", "/apis/v1/pods/a", field, body=b"{}")
    assert got.json == {"value": 1, "strategic": 2}


@pytest.mark.parametrize(
    ("accept", "received"),
    [
        (TABLE, {**BODY, "rows": [{"columns": 1}]}),
        ("application/json", {**BODY, "items": [{"status": 1}]}),
        (f"text/csv;q=0.1, {TABLE}", {**BODY, "rows": [{"columns": 1}]}),
        ("*/*", {**BODY, "items": [{"status": 1}]}),
        (None, {**BODY, "items": [{"status": 1}]}),
    ],
)
def test_the_preferred_type_of_accept_chooses_the_changes_of_a_response(
    program: Program, house: House, accept: str | None, received: Any
) -> None:
    house.service.answer = answer(json.dumps(BODY).encode(), 'ETag: "a"')
    lines = [] if accept is None else [f"Accept: {accept}"]
    got = get(program, "/apis/v1/pods", *lines)
    assert got.json == received
    assert got.one("Vary") == b"Accept, Content-Type, Accept-Encoding"
    assert get(program, "/apis/v2/pods", *lines).json == BODY


def test_representations_for_two_media_types_have_two_entity_tags(
    program: Program, house: House
) -> None:
    house.service.answer = answer(json.dumps(BODY).encode(), 'ETag: "a"')
    table, plain = (
        get(program, "/apis/v1/pods", f"Accept: {accept}").one("ETag")
        for accept in (TABLE, "application/json")
    )
    assert table != plain
    get(program, "/apis/v1/pods", f"Accept: {TABLE}", f"If-None-Match: {table.decode()}")
    assert house.service.last.one("If-None-Match") == b'"a"'


def test_a_conversion_of_responses_names_the_type_of_the_response(
    program: Program, house: House
) -> None:
    for media_type, name in (("application/vnd.example+json", "name"), ("text/json", "newName")):
        house.service.answer = answer(b'{"newName":1}', content_type=media_type)
        assert get(program, "/apis/v1/pods").json == {name: 1}


APPLY = "Content-Type: application/apply-patch+yaml"


@pytest.mark.parametrize(
    ("body", "arrives"),
    [
        (b"value: 0644 # mode\nrest: [a, 'b']\n", b'{"applied":420,"rest":["a","b"]}'),
        (b'{"value": 1.50}', b'{"applied":1.50}'),
        (b"rest: 1\n", b"rest: 1\n"),
        (b"value: yes\non: 2024-01-01\n", b'{"applied":true,"true":"2024-01-01"}'),
    ],
)
def test_the_yaml_of_a_server_side_apply_is_converted(
    program: Program, house: House, body: bytes, arrives: bytes
) -> None:
    got = ask(program, "PATCH", "/apis/v1/pods/a?fieldManager=x", APPLY, body=body)
    assert got.status == 200
    assert house.service.last.body == arrives
    assert house.service.last.one("Content-Type") == b"application/apply-patch+yaml"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"a: &x [1]\nb: [*x, *x]\n", "YAML with an anchor or alias, in line 1"),
        (b"a: 1\nvalue: [\n", "not YAML: line 3"),
        (b"a: " + b"[" * 1000, "YAML with more than 64 levels"),
        (b"- a\n" * 200_000, "YAML with more than 100000 values"),
    ],
)
def test_yaml_that_is_not_safe_is_refused_unless_malformed_bodies_are_kept(
    reloaded: StartGateway, house: House, body: bytes, reason: str
) -> None:
    rules = RULES.format(port=house.service.port)
    got = ask(reloaded(rules), "PATCH", "/apis/v1/pods/a", APPLY, body=body)
    assert got.refusal() == (400, "unconvertible_request")
    assert reason in got.problem["detail"]
    kept = rules.replace("+yaml\n", "+yaml\n        malformed: keep\n")
    assert ask(reloaded(kept), "PATCH", "/apis/v1/pods/a", APPLY, body=body).status == 200
    assert house.service.last.body == body


def test_convert_and_explain_use_the_media_type_of_the_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rules, body = tmp_path / "gateway.yaml", tmp_path / "body.json"
    rules.write_text(RULES.format(port=9))
    body.write_text('{"value":1}')
    request = ["PATCH /apis/v1/pods/a", "-H", "Content-Type: application/merge-patch+json"]
    explain = ["explain", str(rules), *request, "--body", str(body)]
    convert = ["convert", str(rules), "k8s", "--from", "1", "--to", "2", "--request", *request]
    for line in (explain, [*convert, "--body", str(body)]):
        monkeypatch.setattr(sys, "argv", ["gateway", *line])
        assert main() == 0
    printed = capsys.readouterr().out
    assert "apis.k8s.conversions[1].changes[0].rename, to version 2" in printed
    assert printed.count('{"merged":1}\n') == 2
