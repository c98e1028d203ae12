"""Round trips: a client that writes back what it has read must not destroy the service's data."""

import json
from pathlib import Path

import pytest

from gateway.rules.load import load_file
from gateway.verify.claims import MessagePart, Unproved
from gateway.verify.proof import ClaimProof
from gateway.verify.verification_report import text
from gateway.verify.verify import VerifyOptions, verify

RULES = """\
services: {{ s: {{ targets: ["http://127.0.0.1:9"] }} }}
apis:
  orders:
    endpoints: [ {{ path: "/v{{version}}/orders/{{id}}", version: {{ in: path }} }} ]
    versions: {{ "1": {{ via: "2", schema: v1.json }}, "2": {{ service: s, schema: v2.json }} }}
    conversions:
      - between: ["1", "2"]
        {conversion}
"""
TEXT = {"type": "string", "minLength": 1}
WORD = {"type": "string", "pattern": "^[a-z]+$"}
LIST = {"type": "array", "items": TEXT, "minItems": 2}
CUSTOMER = {
    "type": "object",
    "required": ["id", "name"],
    "properties": {"id": TEXT, "name": TEXT},
    "additionalProperties": False,
}
LINES = {
    "type": "array",
    "minItems": 1,
    "items": {"type": "object", "required": ["n"], "properties": {"n": TEXT}},
}
CHANNEL = {"type": "string", "enum": ["web", "app"]}
DEFAULT = "default: { field: channel, value: web }"


def described(method: str, **fields: object) -> str:
    schema = {
        "type": "object",
        "required": list(fields),
        "properties": fields,
        "additionalProperties": False,
    }
    body = {"content": {"application/json": {"schema": schema}}}
    answer = {"responses": {"200": {"description": "", **body}}}
    operations = {"get": answer, method: {**answer, "requestBody": body}}
    return json.dumps({"openapi": "3.1.0", "paths": {"/orders/{id}": operations}})


def results(folder: Path, conversion: str, older: str, newer: str) -> list[object]:
    (folder / "gateway.yaml").write_text(RULES.format(conversion=conversion))
    (folder / "v1.json").write_text(older)
    (folder / "v2.json").write_text(newer)
    snapshot = load_file(folder / "gateway.yaml", {})
    return list(verify(snapshot, folder, VerifyOptions(examples=15)))


@pytest.mark.parametrize("method", ["put", "patch"])
@pytest.mark.parametrize(
    ("change", "older", "newer", "put", "patch"),
    [
        (DEFAULT, {}, {"channel": CHANNEL}, ["/channel"], []),
        (
            "default: { field: channel, value: web, keep: true }",
            {"channel": CHANNEL},
            {"channel": CHANNEL},
            [],
            [],
        ),
        ("rename: { field: status, to: state }", {"state": TEXT}, {"status": TEXT}, [], []),
        ("unwrap: { field: tags }", {"tags": TEXT}, {"tags": LIST}, ["/tags/*"], ["/tags/*"]),
        ("unwrap: { field: tags, many: refuse }", {"tags": TEXT}, {"tags": LIST}, [], []),
        (
            "extract: { field: customer, key: id }",
            {"customer": TEXT},
            {"customer": CUSTOMER},
            ["/customer/name"],
            [],
        ),
        (
            "default: { field: 'lines[].n', value: x }",
            {"lines": {"type": "array"}},
            {"lines": LINES},
            ["/lines/*/n"],
            ["/lines/*/n"],
        ),
        ("join: { fields: [a, b], into: c }", {"c": TEXT}, {"a": WORD, "b": WORD}, [], []),
    ],
    ids=["default", "keep", "rename", "unwrap", "refuse", "extract", "elements", "join"],
)
def test_a_finding_names_each_field_that_a_put_or_patch_overwrites(
    tmp_path: Path,
    method: str,
    change: str,
    older: dict[str, object],
    newer: dict[str, object],
    put: list[str],
    patch: list[str],
) -> None:
    documents = described(method, id=TEXT, **older), described(method, id=TEXT, **newer)
    found = results(tmp_path, f"changes: [ {change} ]", *documents)
    (proof,) = [
        each
        for each in found
        if isinstance(each, ClaimProof) and each.claim.part is MessagePart.ROUND_TRIP
    ]
    assert [each.field for each in proof.findings] == (put if method == "put" else patch)
    assert proof.holds == (not proof.findings)


@pytest.mark.parametrize("method", ["put", "patch"])
def test_a_merged_write_overwrites_nothing(tmp_path: Path, method: str) -> None:
    changes = f"writes: merge\n        changes: [ {DEFAULT}, unwrap: {{ field: tags }} ]"
    documents = described(method, tags=TEXT), described(method, channel=CHANNEL, tags=LIST)
    found = results(tmp_path, changes, *documents)
    (proof,) = [
        each
        for each in found
        if isinstance(each, ClaimProof) and each.claim.part is MessagePart.ROUND_TRIP
    ]
    assert proof.holds


REASON = "only the shop writes"
ALLOWED = f"allow_loss: {REASON}"
STATE = "default: { field: state, value: x }"


@pytest.mark.parametrize(
    ("conversion", "allowed", "failing"),
    [
        (f"changes: [ {{ {DEFAULT}, {ALLOWED} }} ]", ["/channel"], []),
        (f"{ALLOWED}\n        changes: [ {DEFAULT}, {STATE} ]", ["/channel", "/state"], []),
        (f"changes: [ {{ {DEFAULT}, {ALLOWED} }}, {STATE} ]", ["/channel"], ["/state"]),
        (
            f"changes: [ {{ {DEFAULT}, {ALLOWED} }}, rename: {{ field: id, to: key }} ]",
            ["/channel"],
            [],
        ),
        (f"changes: [ {{ use: {{ group: order }}, {ALLOWED} }} ]", ["/channel", "/state"], []),
        ("changes: [ use: { group: allowed } ]", ["/channel"], ["/state"]),
        (f"changes: [ {DEFAULT} ]", [], ["/channel"]),
    ],
)
def test_a_loss_that_is_allowed_is_listed_with_its_reason_and_does_not_fail(
    tmp_path: Path, conversion: str, allowed: list[str], failing: list[str]
) -> None:
    state = {"state": TEXT} if "state" in conversion or "group" in conversion else {}
    groups = (
        f"\n    groups: {{ order: [ {DEFAULT}, {STATE} ],"
        f" allowed: [ {{ {DEFAULT}, {ALLOWED} }}, {STATE} ] }}"
    )
    old = {"key": TEXT} if "rename" in conversion else {"id": TEXT}
    documents = described("put", **old), described("put", id=TEXT, channel=CHANNEL, **state)
    found = results(tmp_path, conversion + groups, *documents)
    (proof,) = [
        each
        for each in found
        if isinstance(each, ClaimProof) and each.claim.part is MessagePart.ROUND_TRIP
    ]
    assert sorted(each.field for each in proof.allowed) == allowed
    assert sorted(each.field for each in proof.findings) == failing
    assert proof.holds == (not failing)
    lines = list(text(found))  # type: ignore[arg-type]  # the results of verify
    for field in allowed:
        what = "a client of version 1 that writes back what it read"
        line = next(each for each in lines if f"{field}: allowed: {what}" in each)
        assert line.endswith(f"({REASON})")
    assert (f"allowed losses: {len(allowed)}" in lines[-1]) == bool(allowed)


def test_the_report_shows_an_example_before_and_after_the_overwriting(tmp_path: Path) -> None:
    documents = described("put", id=WORD), described("put", id=WORD, channel=CHANNEL)
    found = results(tmp_path, f"changes: [ {DEFAULT} ]", *documents)
    lines = list(text(found))  # type: ignore[arg-type]  # the results of verify
    (begin,) = [index for index, line in enumerate(lines) if "round trip" in line]
    assert lines[begin].startswith("  FAILS  PUT /orders/{id}             round trip       ")
    assert lines[begin + 1 : begin + 4] == [
        "           /channel: a client of version 1 that writes back what it read changes it",
        '             smallest  {"channel":"app","id":"a"}',
        '             becomes   {"id":"a","channel":"web"}',
    ]


def test_round_trips_are_not_checked_if_changes_need_more_than_the_body(tmp_path: Path) -> None:
    change = "to_header: { field: channel, header: X-Channel }"
    documents = described("put", id=TEXT), described("put", id=TEXT, channel=CHANNEL)
    found = results(tmp_path, f"changes: [ {change} ]", *documents)
    reasons = [each.reason for each in found if isinstance(each, Unproved)]
    assert reasons == ["whether its writes keep unseen data: changes need more than the body"]
    proofs = [each for each in found if isinstance(each, ClaimProof)]
    assert MessagePart.ROUND_TRIP not in {each.claim.part for each in proofs}


OPERATIONS = """\
operations:
          - { newer: "GET /orders/{id}", older: "GET /order/{id}" }
          - { newer: "PUT /orders/{id}", older: "PUT /order/{id}" }
        changes: [ default: { field: channel, value: web } ]"""


def test_round_trips_are_checked_for_operations_with_other_paths(tmp_path: Path) -> None:
    older = described("put", id=TEXT).replace("/orders/", "/order/")
    newer = described("put", id=TEXT, channel=CHANNEL)
    rest = '/{{rest*}}", upstream_path: "/{{rest*}}"'
    rules = RULES.replace('/orders/{{id}}"', rest).format(conversion=OPERATIONS)
    (tmp_path / "gateway.yaml").write_text(rules)
    (tmp_path / "v1.json").write_text(older)
    (tmp_path / "v2.json").write_text(newer)
    snapshot = load_file(tmp_path / "gateway.yaml", {})
    found = list(verify(snapshot, tmp_path, VerifyOptions(examples=10)))
    failing = [
        (each.claim.operation, each.claim.part)
        for each in found
        if isinstance(each, ClaimProof) and not each.holds
    ]
    assert failing == [("PUT /order/{id} -> /orders/{id}", MessagePart.ROUND_TRIP)]
