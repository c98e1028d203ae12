"""The command `verify`: its output and its exit status."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Protocol

import pytest

from gateway.__main__ import main
from tests.fork_server import fork_server
from tests.gateway.kit import DEADLINE, ROOT, Stack

PAIR = """\
services: { s: { targets: ["http://127.0.0.1:1"] } }
apis:
  things:
    endpoints: [ { path: /thing, version: { in: query, name: v } } ]
    versions:
      "1": { via: "2", schema: v1.yaml }
      "2": { service: s, schema: v2.yaml }
    conversions: [ { between: ["1", "2"], changes: [] } ]
"""
DOCUMENT = """\
openapi: 3.1.0
paths:
  /thing:
    get: { responses: { 200: { content: { application/json: { schema: SCHEMA } } } } }
"""
NAMED = '"1": { ..., schema: FILE or URL }'
JSON_BODY = "{ content: { application/json: { schema: { type: boolean } } } }"
OBJECT = "{ type: object, required: [size], properties: { size: { type: TYPE } } }"


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    (tmp_path / "gateway.yaml").write_text(PAIR)
    for name, kind in (("v1.yaml", "string"), ("v2.yaml", "integer")):
        schema = OBJECT.replace("TYPE", kind)
        (tmp_path / name).write_text(DOCUMENT.replace("SCHEMA", schema))
    return tmp_path


class Verify(Protocol):
    def __call__(self, *arguments: str) -> tuple[int, str, str]: ...


@pytest.fixture
def verify(
    pair: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Verify:
    """Return a function that verifies the pair; it returns the exit status and both outputs."""

    def run(*arguments: str) -> tuple[int, str, str]:
        words = ["gateway", "verify", str(pair / "gateway.yaml"), *arguments]
        monkeypatch.setattr(sys, "argv", words)
        status = main()
        return status, *capsys.readouterr()

    return run


def test_all_claims_about_the_shipped_configuration_hold(stack: Stack) -> None:
    done = subprocess.run(
        [fork_server().python, "-m", "gateway", "verify", "--examples", "10"],
        cwd=ROOT,
        env={**os.environ, **stack.variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "person: version 1, served by version 2\n"
        "  ok     GET /person                  response 200     proved\n"
        "1 of 1 claims hold: 1 proved\n"
    )


def test_a_failed_claim_is_printed_with_its_smallest_example(verify: Verify) -> None:
    assert verify("--examples", "5")[:2] == (
        1,
        (
            "things: version 1, served by version 2\n"
            "  FAILS  GET /thing                   response 200     in 5 of 5 examples\n"
            "           /size: expected a string, found a number\n"
            '             smallest  {"size":0}\n'
            "0 of 1 claims hold; fail: 1\n"
        ),
    )


@pytest.mark.parametrize(
    ("older", "newer", "lines", "status"),
    [
        ("204: {}", "204: {}", ["", "it has no JSON body and no parameter"], 2),
        (
            "200: {}",
            "200: { content: { text/plain: {} } }",
            [" response 200", "version 2 declares no JSON body"],
            2,
        ),
        (
            f"200: {JSON_BODY}",
            "200: { content: { application/x-ndjson: {} } }",
            [
                " response 200",
                (
                    "version 2 responds with application/x-ndjson, whose documents are not checked,"
                    " and version 1 expects one"
                ),
            ],
            2,
        ),
        (
            "200: { content: { text/event-stream: {} } }",
            f"200: {JSON_BODY}, 204: {{}}",
            [
                " response 200",
                "version 1 responds with text/event-stream, whose documents are not checked",
            ],
            2,
        ),
        (
            f"default: {JSON_BODY}, 202: {JSON_BODY}",
            f"202: {JSON_BODY}, 4XX: {{}}",
            [" response 4XX", "version 2 declares no JSON body, and version 1 expects one"],
            0,
        ),
        (
            f"200: {{}}, 202: {JSON_BODY}",
            f"200: {JSON_BODY}, 202: {JSON_BODY}",
            [" response 200", "version 1 declares no JSON body"],
            0,
        ),
    ],
)
def test_unchecked_operations_are_printed_with_the_reason(
    older: str, newer: str, lines: list[str], status: int, pair: Path, verify: Verify
) -> None:
    """It neither holds nor fails. If no claim was checked, the exit status is 2."""
    for name, responses in (("v1.yaml", older), ("v2.yaml", newer)):
        text = (
            f"openapi: 3.1.0\npaths: {{ /thing: {{ delete: {{ responses: {{ {responses} }} }} }} }}"
        )
        (pair / name).write_text(text)
    found, out, _ = verify("--examples", "1")
    printed = out.splitlines()
    assert found == status
    body, reason = lines
    assert f"  -      {'DELETE /thing':<28}{body:<17} not checked: {reason}" in printed
    held = 0 if status else 1
    ways = ": 1 proved" if held else ""
    assert printed[-1] == f"{held} of {held} claims hold{ways}; not checked: 1"
    told = json.loads(verify("--examples", "1", "--json")[1])
    assert told["holds"] is True
    assert [one["reason"] for one in told["claims"] if one["holds"] is None] == [reason]


def test_progress_is_shown_on_a_terminal(verify: Verify, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    _, out, err = verify("--examples", "5")
    assert err == "\r\x1b[K1 of 1: GET /thing\r\x1b[K"
    assert "1 of 1" not in out


def test_the_json_report_has_claims_with_findings_and_examples(verify: Verify) -> None:
    arguments = ("--json", "--examples", "5", "--seed", "7", "--api", "things")
    status, out, _ = verify(*arguments, "--between", "2", "1")
    assert status == 1
    assert json.loads(out) == {
        "holds": False,
        "claims": [
            {
                "api": "things",
                "client": "1",
                "service": "2",
                "operation": "GET /thing",
                "body": "response",
                "status": "200",
                "holds": False,
                "proved": False,
                "examples": 5,
                "failed": 5,
                "findings": [
                    {
                        "field": "/size",
                        "keyword": "type",
                        "reason": "expected a string, found a number",
                        "example": {"size": 0},
                        "converted": {"size": 0},
                    }
                ],
                "more": 0,
                "allowed": [],
            }
        ],
    }


CHAIN = """\
services:
  s: { targets: ["http://127.0.0.1:1"] }
  t: { targets: ["http://127.0.0.1:2"] }
apis:
  things:
    endpoints: [ { path: /thing, version: { in: query, name: v } } ]
    versions:
      "1": { via: "3", schema: v1.yaml }
      "2": { via: "3" }
      "3": { service: s, schema: v2.yaml }
      "4": { service: t }
    conversions:
      - { between: ["1", "2"], changes: [ { type: { field: size, newer: number, older: text } } ] }
      - { between: ["2", "3"], changes: [] }
      - { between: ["3", "4"], changes: [] }
"""


def test_a_chain_is_proven_through_a_version_without_a_document(pair: Path, verify: Verify) -> None:
    rules = CHAIN.replace("{ service: t }", "{ service: t, schema: v2.yaml }")
    (pair / "gateway.yaml").write_text(rules)
    status, out, _ = verify("--examples", "5")
    assert status == 2
    why = f"not checked: version 2 has no OpenAPI document; name one: {NAMED.replace('1', '2')}"
    unchecked = f"  -      all operations                                {why}"
    proven = "  ok     GET /thing                   response 200     proved"
    assert out.splitlines() == [
        "things: version 1, served by version 2",
        unchecked,
        "things: version 1, served by version 3",
        proven,
        "things: version 2, served by version 3",
        unchecked,
        "things: version 3, served by version 4",
        proven,
        "2 of 2 claims hold: 2 proved; not checked: 2",
    ]


def test_claims_about_a_version_without_a_document_are_unknown(pair: Path, verify: Verify) -> None:
    rules = CHAIN.replace('"4": { service: t }', '"4": { via: "3" }')
    (pair / "gateway.yaml").write_text(rules)
    status, out, _ = verify("--examples", "5", "--json")
    assert status == 2
    report = json.loads(out)
    assert report["holds"] is None
    pairs = [(one["client"], one["service"], one["holds"]) for one in report["claims"]]
    assert pairs == [
        ("1", "2", None),
        ("1", "3", True),
        ("2", "3", None),
        ("3", "4", None),
        ("4", "3", None),
    ]
    assert report["claims"][0]["operation"] == "all operations"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--api", "thing"], "no API is called 'thing'; did you mean 'things'?"),
        (["--between", "1", "3"], "things: no version is called '3'; known: 1, 2"),
        (["--between", "8", "9"], "no API has versions 8 and 9; name two of one API"),
        (
            ["--between", "1", "1"],
            ("things: 1 and 1 are the same version; name two different versions"),
        ),
        (["--seconds", "-1"], "in -1 s, nothing is tested; give a time above 0"),
        (["--examples", "0"], "0 examples prove nothing; use 1 or more"),
    ],
)
def test_an_unknown_api_version_or_number_is_refused(
    arguments: list[str], said: str, verify: Verify
) -> None:
    assert verify(*arguments) == (2, "", f"{said}\n")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "schema: v1.yaml",
            "schema: v3.yaml",
            "apis.things.versions.1.schema: 'v3.yaml' cannot be read: No such file or directory",
        ),
        (
            "schema: v1.yaml",
            'schema: "http://127.0.0.1:1/v1"',
            "http://127.0.0.1:1/v1: cannot be loaded (connection refused); is the server running?",
        ),
        (
            ", schema: v2.yaml",
            "",
            (
                "http://127.0.0.1:1/openapi.json: cannot be loaded (connection refused);"
                " is the server running?"
            ),
        ),
        (", schema: v1.yaml", "", f"things: version 1 has no OpenAPI document; name one: {NAMED}"),
        (
            "schema: v1.yaml",
            "schema: gateway.yaml",
            "apis.things.versions.1.schema: 'gateway.yaml' is not an OpenAPI document",
        ),
        (
            '{ between: ["1", "2"], changes: [] }',
            "",
            "no API here has conversions; there is nothing to verify",
        ),
    ],
)
def test_a_missing_or_invalid_document_is_an_error(
    old: str, new: str, said: str, pair: Path, verify: Verify
) -> None:
    assert PAIR.count(old) == 1
    rules = PAIR.replace(old, new)
    if "between" in old:
        rules = rules.replace('{ via: "2", ', "{ service: s, ")
    (pair / "gateway.yaml").write_text(rules)
    status, out, err = verify()
    told = err.replace(f"{pair / 'gateway.yaml'}:6:24: ", "")
    assert (status, out, told[: len(said)]) == (2, "", said)
