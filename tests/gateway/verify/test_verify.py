"""Verification of an API with two versions and the changes between them."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from gateway.rules.load import load
from gateway.verify import verification_report
from gateway.verify import verify as verify_module
from gateway.verify.additional_parts import AdditionalParts
from gateway.verify.claims import Claim, Unproved
from gateway.verify.proof import ClaimProof, Finding
from gateway.verify.time_limit import OutOfTimeError
from gateway.verify.verification_report import VerificationResult
from gateway.verify.verify import Begins, VerifyError, VerifyOptions, verify

RULES = """
services: {{ s: {{ targets: ["http://127.0.0.1:1"] }} }}
apis:
  things:
    endpoints: [ {{ path: /thing, version: {{ in: query, name: v }} }} ]
    versions:
      "1": {{ via: "2", schema: v1.json }}
      "2": {{ service: s, schema: v2.json }}
    conversions: [ {{ between: ["1", "2"], statuses: [404], changes: [{changes}] }} ]
"""
TEXT, NUMBER = {"type": "string"}, {"type": "integer", "minimum": 0, "maximum": 99}
JOIN = "join: { fields: [name.first, name.last], into: name }"


def thing(_required: tuple[str, ...] | None = None, **properties: object) -> dict[str, Any]:
    required = list(properties) if _required is None else list(_required)
    return {"type": "object", "required": required, "properties": properties}


CODES = [f"c{number}" for number in range(400)]
NAME = thing(first=TEXT, last=TEXT)


def document(response: object, request: object = None, **operations: object) -> dict[str, object]:
    operation: dict[str, object] = {"responses": {"200": body(response)}}
    if request is not None:
        operation["requestBody"] = body(request)
    return {"openapi": "3.1.0", "paths": {"/thing": {"put": operation, **operations}}}


def body(schema: object) -> dict[str, object]:
    return {"content": {"application/json": {"schema": schema}}}


def outcomes(
    folder: Path,
    older: Mapping[str, object],
    newer: Mapping[str, object],
    changes: str = "",
    seconds: float | None = None,
    begins: Begins = lambda *_: None,
    operation: str | None = None,
) -> list[VerificationResult]:
    (folder / "v1.json").write_text(json.dumps(older))
    (folder / "v2.json").write_text(json.dumps(newer))
    snapshot = load(RULES.format(changes=changes).encode(), "gateway.yaml", {})
    options = VerifyOptions(examples=20, seconds=seconds, operation=operation)
    results = verify(snapshot, folder, options, begins)
    return [one for one in results if not isinstance(one, AdditionalParts)]


def proven(folder: Path, older: Any, newer: Any, changes: str = "") -> ClaimProof:
    (proof,) = outcomes(folder, older, newer, changes)
    assert isinstance(proof, ClaimProof)
    return proof


def findings(folder: Path, older: Any, newer: Any, changes: str = "") -> list[Finding]:
    return list(proven(folder, older, newer, changes).findings)


def test_a_correct_conversion_is_proved_by_the_schemas(tmp_path: Path) -> None:
    proof = proven(tmp_path, document(thing(name=TEXT)), document(thing(name=NAME)), JOIN)
    assert proof.proved
    assert (proof.holds, proof.examples, proof.failed) == (True, 0, 0)


SIZES = {"type": "array", "items": NUMBER}
# For each fault: the message, both schemas, and the finding's field, keyword and example.
FAULTS: dict[str, tuple[str, object, object, tuple[str, str, bytes | None]]] = {
    "joined": (
        *("response", thing(name=TEXT), thing(name=NAME)),
        ("/name", "type", b'{"name":{"first":"","last":""}}'),
    ),
    "split": (*("response", thing(name=NAME), thing(name=TEXT)), ("/name", "type", b'{"name":""}')),
    "retyped": (
        *("response", thing(size=TEXT), thing(size=NUMBER)),
        ("/size", "type", b'{"size":0}'),
    ),
    "wrapped": (
        *("response", thing(size=SIZES), thing(size=NUMBER)),
        ("/size", "type", b'{"size":0}'),
    ),
    "unwrapped": (
        *("response", thing(size=NUMBER), thing(size=SIZES)),
        ("/size", "type", b'{"size":[]}'),
    ),
    "renamed": (
        *("response", thing(a=TEXT, b=TEXT), thing(a=TEXT, c=TEXT)),
        ("/b", "required", b'{"a":"","c":""}'),
    ),
    "removed": (
        *("response", thing(a=TEXT, b=TEXT), thing(a=TEXT)),
        ("/b", "required", b'{"a":""}'),
    ),
    "added": (
        *("response", {**thing(a=TEXT), "additionalProperties": False}, thing(a=TEXT, b=TEXT)),
        ("/b", "additionalProperties", b'{"a":"","b":""}'),
    ),
    "another member": (
        "response",
        thing(a={"type": "array", "items": {"enum": ["x"]}}),
        thing(a={"type": "array", "items": {"enum": ["x", "y"]}}),
        ("/a/*", "enum", b'{"a":["y"]}'),
    ),
    "narrowed": (
        *("response", thing(size={**NUMBER, "maximum": 36}), thing(size=NUMBER)),
        ("/size", "maximum", b'{"size":37}'),
    ),
    "one of many words is missing, which no example has": (
        "response",
        thing(size={"enum": [word for word in CODES if word != "c217"]}),
        thing(size={"enum": CODES}),
        ("/size", "enum", None),
    ),
    "optional and removed": (
        *("response", thing((), a=TEXT, b=TEXT), thing((), a=TEXT)),
        ("/b", "lost", None),
    ),
    "newly required": (
        *("request", thing(a=TEXT), thing(a=TEXT, b=TEXT)),
        ("/b", "required", b'{"a":""}'),
    ),
    "no longer known": (
        *("request", thing(a=TEXT, b=TEXT), thing(a=TEXT)),
        ("/b", "ignored", None),
    ),
    "renamed in a request": (
        *("request", thing(b=TEXT), thing(c=TEXT)),
        ("/c", "required", b'{"b":""}'),
    ),
    "narrowed in a request": (
        *("request", thing(a=TEXT), thing(a={**TEXT, "minLength": 1})),
        ("/a", "minLength", b'{"a":""}'),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_planted_fault_is_found_with_field_keyword_and_example(
    tmp_path: Path, fault: str
) -> None:
    place, older, newer, expected = FAULTS[fault]
    if place == "response":
        (found,) = findings(tmp_path, document(older), document(newer))
    else:
        request, response = outcomes(tmp_path, document(thing(), older), document(thing(), newer))
        assert response.holds
        assert isinstance(request, ClaimProof)
        found = next(found for found in request.findings if found.field == expected[0])
    assert (found.field, found.keyword, found.example) == expected


def test_undeclared_keys_are_a_finding_if_the_other_version_forbids_them(tmp_path: Path) -> None:
    """Undeclared keys are generated if a schema allows them. The finding names their object."""
    free = {**thing(a=TEXT), "additionalProperties": NUMBER}
    older = thing(a=TEXT, in_it=free)
    outcome, _ = outcomes(
        tmp_path, document(thing(), older), document(thing(), thing(a=TEXT, in_it=thing(a=TEXT)))
    )
    assert isinstance(outcome, ClaimProof)
    (found,) = outcome.findings
    assert (found.field, found.reason) == ("/in_it/*", "version 2 allows no further fields")


def test_a_claim_about_equal_alternatives_with_undeclared_keys_holds(tmp_path: Path) -> None:
    both = {"allOf": [thing(a={"const": "y"}), thing(c=TEXT)]}
    either = {"oneOf": [thing(a={"const": "x"}, b=NUMBER), both]}
    documents = document(thing(), either), document(thing(), either)
    assert all(outcome.holds for outcome in outcomes(tmp_path, *documents))


@pytest.mark.parametrize(
    "of", [lambda schema: schema, lambda schema: {"type": "array", "items": schema}]
)
def test_a_field_that_a_change_removes_is_not_a_finding(
    tmp_path: Path, of: Callable[[object], object]
) -> None:
    older, newer = document(of(thing((), a=TEXT, b=TEXT))), document(of(thing((), a=TEXT)))
    assert findings(tmp_path, older, newer, "remove: { field: b }") == []
    assert [found.keyword for found in findings(tmp_path, older, newer)] == ["lost"]


def test_array_elements_without_an_example_are_not_reported_as_lost(tmp_path: Path) -> None:
    """Whether examples fill an array is random. Here, the schema keeps every array empty."""
    texts = {"type": "array", "items": TEXT}
    older, newer = document(thing(b=texts)), document(thing(a={**texts, "maxItems": 0}))
    assert findings(tmp_path, older, newer, "rename: { field: a, to: b }") == []


@pytest.mark.parametrize(
    ("meta", "findings_at"), [(thing(), ["/meta"]), (thing((), x=TEXT), []), (thing(x=TEXT), [])]
)
def test_an_object_that_changes_fill_and_empty_stays_if_it_was_sent_empty(
    tmp_path: Path, meta: dict[str, Any], findings_at: list[str]
) -> None:
    """The older version allows `meta` only if the newer version's object has fields of its own."""
    closed = {"additionalProperties": False}
    known = thing(("was",), was=TEXT, **({"meta": meta} if meta["properties"] else {}))
    newer = document({**thing(meta={**meta, **closed}, state=TEXT), **closed})
    spread = "spread: { field: state, into: meta.state, keep: false }"
    changes = f"{{ rename: {{ field: meta.state, to: was }} }}, {{ {spread} }}"
    (_, response) = outcomes(tmp_path, document({**known, **closed}, {}), newer, changes)[-2:]
    assert isinstance(response, ClaimProof)
    assert response.proved is (findings_at == [])
    assert [found.field for found in response.findings] == findings_at


def parameters(place: str, **schemas: object) -> dict[str, object]:
    taken = [
        {"name": name.replace("_", "-"), "in": place, "required": True, "schema": schema}
        for name, schema in schemas.items()
    ]
    operation = {"parameters": taken, "responses": {}}
    return {"openapi": "3.1.0", "paths": {"/thing": {"get": operation}}}


ENUM = {"enum": ["up", "down"]}
LIST = {"type": "array", "items": NUMBER, "minItems": 1}


@pytest.mark.parametrize("place", ["query", "header"])
@pytest.mark.parametrize(
    ("older", "newer", "expected"),
    [
        ({"a": NUMBER}, {"a": NUMBER}, []),
        ({"a": LIST}, {"a": LIST}, []),
        ({"a": ENUM}, {"a": ENUM}, []),
        (
            {"X_Size": NUMBER},
            {"X_Length": NUMBER},
            [("X-Length", "required"), ("X-Size", "ignored")],
        ),
        ({"a": TEXT}, {"a": NUMBER}, [("a", "type")]),
        ({"a": {"enum": ["up", "left"]}}, {"a": ENUM}, [("a", "enum")]),
    ],
)
def test_a_parameter_that_the_other_version_does_not_accept_is_a_finding(
    tmp_path: Path,
    place: str,
    older: dict[str, object],
    newer: dict[str, object],
    expected: list[tuple[str, str]],
) -> None:
    def named(text: str) -> str:
        return text.lower() if place == "header" else text

    proof = proven(tmp_path, parameters(place, **older), parameters(place, **newer))
    assert [(found.field, found.keyword) for found in proof.findings] == [
        (f"/{named(name)}", keyword) for name, keyword in expected
    ]


def test_an_example_that_cannot_be_converted_is_a_finding(tmp_path: Path) -> None:
    older, newer = document(thing(name=TEXT)), document(thing(name=thing(first=NUMBER, last=TEXT)))
    (found,) = findings(tmp_path, older, newer, JOIN)
    assert (found.field, found.keyword, found.converted) == ("/name/first", "convert", None)
    assert found.reason == "cannot be converted: expected a string, found a number"


def test_each_wrong_field_has_a_finding(tmp_path: Path) -> None:
    older, newer = document(thing(a=TEXT, b=TEXT)), document(thing(a=NUMBER, b=NUMBER))
    assert [found.field for found in findings(tmp_path, older, newer)] == ["/a", "/b"]


@pytest.mark.parametrize(
    ("older", "newer", "operation", "reason"),
    [
        ({"get": {}}, {}, "GET /thing", "has no such operation"),
        ({"post": {"requestBody": body(TEXT)}}, {"post": {}}, "POST /thing", "takes no JSON body"),
        (
            {"post": {}},
            {"post": {"requestBody": {**body(TEXT), "required": True}}},
            "POST /thing",
            "requires a body, and this version has no body",
        ),
        (
            {"post": {}},
            {"post": {"responses": {"202": body(TEXT)}}},
            "POST /thing",
            "responds with 202, which this version does not declare",
        ),
    ],
)
def test_missing_operations_and_statuses_are_gaps(
    tmp_path: Path, older: dict[str, object], newer: dict[str, object], operation: str, reason: str
) -> None:
    found = outcomes(tmp_path, document(thing(), **older), document(thing(), **newer))
    (gap,) = (outcome for outcome in found if not outcome.holds)
    assert isinstance(gap, Unproved)
    assert (gap.operation, gap.reason, gap.holds) == (operation, reason, False)


def test_only_error_responses_with_a_configured_status_are_converted(tmp_path: Path) -> None:
    responses = [{"default": body(thing(name=schema))} for schema in (TEXT, NAME)]
    older, newer = (document(thing(), get={"responses": one}) for one in responses)
    others, named, _ = outcomes(tmp_path, older, newer, JOIN)
    assert isinstance(named, ClaimProof)
    assert isinstance(others, ClaimProof)
    assert (named.claim.status, named.holds) == ("404", True)
    assert (others.claim.status, others.holds) == ("default", False)


def test_the_same_seed_gives_the_same_report(tmp_path: Path) -> None:
    documents = document(thing(a=TEXT)), document(thing(a=NUMBER))
    one, other = (list(verification_report.text(outcomes(tmp_path, *documents))) for _ in range(2))
    assert one == other


def test_a_claim_about_a_contradictory_schema_is_not_proven(tmp_path: Path) -> None:
    odd = {"type": "string", "minLength": 3, "maxLength": 2}
    fine = {"responses": {"200": body(thing(a=TEXT))}}
    older, newer = document(thing(), get=fine), document(odd, get=fine)
    fits, unproven = outcomes(tmp_path, older, newer)
    assert isinstance(unproven, Unproved)
    assert unproven.operation == "PUT /thing"
    assert unproven.reason.startswith(
        "its schema in v2.json allows nothing that could be generated"
    )
    assert isinstance(fits, ClaimProof)
    report = json.loads("".join(verification_report.json([unproven])))
    assert (report["holds"], report["claims"][0]["holds"]) == (None, None)


def test_claims_after_the_time_limit_are_listed_as_not_proven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify_module, "_LISTING", 60.0)
    documents = document(thing(a=TEXT)), document(thing(a=NUMBER))
    found = outcomes(tmp_path, *documents, seconds=1e-9)
    passed = "the time limit has passed; increase --seconds"
    reason, rest = (
        f"not checked: {passed}",
        f"not checked: the parts that only version 2 has: {passed}",
    )
    assert list(verification_report.text(found))[1:] == [
        f"  ?      PUT /thing                   response 200     {reason}",
        f"  -      all operations                                {rest}",
        "0 of 1 claims hold; not checked: 2",
    ]
    with pytest.raises(VerifyError, match="in 0 s, nothing is tested; give a time above 0"):
        outcomes(tmp_path, *documents, seconds=0)


def out_of_time(*_: object) -> None:
    raise OutOfTimeError


@pytest.mark.parametrize(
    ("phase", "runs"), [("fetch", lambda *_: sleep(60)), ("claims", out_of_time)]
)
def test_a_limit_that_passes_before_the_claims_are_listed_makes_the_result_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: str, runs: Callable[..., None]
) -> None:
    monkeypatch.setattr(verify_module, phase, runs)
    documents = document(thing(a=TEXT)), document(thing(a=NUMBER))
    found = outcomes(tmp_path, *documents, seconds=0.01 if phase == "fetch" else 60)
    passed = "not checked: the time limit has passed; increase --seconds"
    assert list(verification_report.text(found))[1:] == [
        f"  -      all operations                                {passed}",
        "0 of 0 claims hold; not checked: 1",
    ]
    assert any(map(verification_report.is_incomplete, found))


def test_the_callback_is_called_before_each_claim(tmp_path: Path) -> None:
    responses = {"200": body(thing(a=TEXT)), "202": body(thing(a=TEXT))}
    both = document(thing(a=TEXT), get={"responses": responses})
    begun: list[tuple[str, int, int]] = []

    def begins(claim: Claim, number: int, count: int) -> None:
        begun.append((claim.status, number, count))

    outcomes(tmp_path, both, both, begins=begins)
    assert begun == [("200", 1, 3), ("202", 2, 3), ("200", 3, 3)]


def test_both_directions_are_verified_if_the_older_version_serves_the_newer(tmp_path: Path) -> None:
    rules = (
        RULES.format(changes=JOIN)
        .replace('via: "2"', "service: s")
        .replace('"2": { service: s', '"2": { via: "1"')
    )
    (tmp_path / "v1.json").write_text(json.dumps(document(thing(name=TEXT))))
    (tmp_path / "v2.json").write_text(json.dumps(document(thing(name=NAME))))
    snapshot = load(rules.encode(), "gateway.yaml", {})
    found = [
        outcome.claim
        for outcome in verify(snapshot, tmp_path, VerifyOptions(examples=5))
        if isinstance(outcome, ClaimProof) and outcome.holds
    ]
    assert [(str(claim.client), str(claim.service)) for claim in found] == [("1", "2"), ("2", "1")]


def test_versions_without_conversions_between_them_are_refused(tmp_path: Path) -> None:
    rules = RULES.format(changes="").replace('via: "2"', "service: s")
    start = rules.index("    conversions")
    snapshot = load(rules[:start].encode(), "gateway.yaml", {})
    with pytest.raises(VerifyError, match="no conversions lead from 1 to 2; declare them"):
        list(verify(snapshot, tmp_path, VerifyOptions(between=("2", "1"))))


def test_a_document_without_operations_at_the_endpoints_is_refused(tmp_path: Path) -> None:
    elsewhere = {"openapi": "3.1.0", "paths": {"/other": {"get": {}}}}
    with pytest.raises(VerifyError, match=r"v1.json has none of the operations"):
        outcomes(tmp_path, elsewhere, elsewhere)


def form_document(properties: dict[str, Any], *nested: str) -> dict[str, object]:
    form = {
        "encoding": {name: {"style": "deepObject", "explode": True} for name in nested},
        "schema": {"type": "object", "properties": properties},
    }
    content = {"content": {"application/x-www-form-urlencoded": form}}
    operation = {"requestBody": content, "responses": {"200": body(thing())}}
    return {"openapi": "3.1.0", "paths": {"/thing": {"put": operation}}}


PROMOTION = thing(("type",), coupon=TEXT, type={"enum": ["coupon"]})
FREE = {"type": "object", "additionalProperties": TEXT}


@pytest.mark.parametrize(
    ("names", "holds"),
    [
        (("promotion[coupon]", "promotion[type]"), True),
        ((r"promotion\\[coupon\\]", r"promotion\\[type\\]"), True),
        (("promotion.coupon", "promotion.type"), False),
    ],
)
def test_a_nested_field_of_a_form_has_the_name_that_clients_write(
    tmp_path: Path, names: tuple[str, str], holds: bool
) -> None:
    older = form_document({"coupon": TEXT, "metadata": FREE}, "metadata")
    newer = form_document({"promotion": PROMOTION, "metadata": FREE}, "promotion", "metadata")
    changes = (
        f'{{ rename: {{ field: "{names[0]}", to: coupon }} }},'
        f' {{ default: {{ field: "{names[1]}", value: coupon }} }}'
    )
    (form, *_) = outcomes(tmp_path, older, newer, changes)
    assert isinstance(form, ClaimProof)
    assert form.holds is holds
    reasons = [finding.reason for finding in form.findings]
    assert all("changes name its nested field as 'promotion[" in reason for reason in reasons)


def test_renamed_and_inlined_components_are_equal(tmp_path: Path) -> None:
    """`oneOf` and `pattern` are otherwise tested on examples."""
    node = thing((), text={**TEXT, "pattern": "^a"}, next={"$ref": "#/components/schemas/Node"})
    either = {"oneOf": [node, thing((), other=NUMBER)]}
    older = {**document(either), "components": {"schemas": {"Node": node}}}
    other = json.loads(json.dumps(node).replace("Node", "Item"))
    newer = document({"oneOf": [{"$ref": "#/components/schemas/Item"}, thing((), other=NUMBER)]})
    (proof,) = outcomes(tmp_path, older, {**newer, "components": {"schemas": {"Item": other}}})
    assert isinstance(proof, ClaimProof)
    assert proof.proved


def test_a_difference_in_several_operations_is_shown_at_the_first(tmp_path: Path) -> None:
    other = {"responses": {"200": body({"type": "array", "items": thing(a=TEXT)})}}
    more = {"responses": {"200": body({"type": "array", "items": thing(a=NUMBER)})}}
    older, newer = document(thing(a=TEXT), get=other), document(thing(a=NUMBER), get=more)
    first, second = outcomes(tmp_path, older, newer)
    assert isinstance(first, ClaimProof)
    assert isinstance(second, ClaimProof)
    assert [one.field for one in (*first.findings, *second.findings)] == ["/*/a", "/a"]
    assert list(verification_report.text([second]))[-2:-1] == [
        "           1 more as in GET /thing response 200"
    ]


def test_verify_can_be_limited_to_one_operation(tmp_path: Path) -> None:
    get = {"responses": {"200": body(thing(a=TEXT))}}
    documents = document(thing(a=TEXT), get=get), document(thing(a=NUMBER), get=get)
    (proof,) = outcomes(tmp_path, *documents, operation="GET /thing")
    assert proof.holds
    with pytest.raises(VerifyError, match="no operation is called 'GET /other'; did you mean"):
        outcomes(tmp_path, *documents, operation="GET /other")


ID = {"type": "string", "readOnly": True}
NAMED = thing(("name",), name=TEXT)


@pytest.mark.parametrize(
    ("request_schema", "components"),
    [
        ({"allOf": [NAMED], "properties": {"id": ID}, "required": ["id"]}, {}),
        ({"allOf": [{"$ref": "#/components/schemas/Base"}], "required": ["id"]}, {"id": ID}),
        ({"allOf": [NAMED, thing(("id",), id=ID)]}, {}),
        ({"allOf": [thing(id=TEXT, name=TEXT), {"properties": {"id": ID}}]}, {}),
        (
            {"allOf": [{"$ref": "#/components/schemas/Base"}, {"properties": {"id": ID}}]},
            {"id": TEXT},
        ),
        (thing(id={"$ref": "#/components/schemas/Id"}, name=TEXT), {}),
        (thing(id={"allOf": [{"$ref": "#/components/schemas/Id"}]}, name=TEXT), {}),
    ],
)
def test_a_read_only_property_is_not_required_in_requests_wherever_the_schema_declares_it(
    tmp_path: Path, request_schema: dict[str, Any], components: dict[str, Any]
) -> None:
    parts = {"schemas": {"Id": ID, "Base": thing(name=TEXT, **components)}}
    newer = {**document(NAMED, request_schema), "components": parts}
    older = document(NAMED, NAMED)
    proofs = [
        one
        for documents in ((older, newer), (newer, older))
        for one in outcomes(tmp_path, *documents)
        if isinstance(one, ClaimProof)
    ]
    assert [(one.proved, one.findings) for one in proofs] == [(True, ())] * 4


KIND = thing(kind={"enum": ["a", "b"]})


def either(**fields: Any) -> dict[str, Any]:
    """Return a schema of objects with different fields for each kind, composed by `allOf`."""
    base = {"$ref": "#/components/schemas/Base"}
    one, other = (
        {"allOf": [base, thing(None, **{"kind": {"const": kind}, fields[kind]: TEXT})]}
        for kind in "ab"
    )
    return {"oneOf": [one, other]}


@pytest.mark.parametrize(
    ("schema", "when", "failing"),
    [
        (either(a="name", b="title"), "is: a", []),
        (either(a="name", b="title"), "is: b", ["/title"]),
        (either(a="name", b="name"), "is: a", ["/title"]),
        (either(a="name", b="name"), "is: [a, b]", []),
        (either(a="name", b="title"), "is_not: b", []),
    ],
)
def test_a_change_with_a_condition_applies_to_the_matching_alternatives_of_a_schema(
    tmp_path: Path, schema: Any, when: str, failing: list[str]
) -> None:
    parts = {"components": {"schemas": {"Base": KIND}}}
    older = {**document({"allOf": [KIND, thing(title=TEXT)]}), **parts}
    change = f"{{ rename: {{ field: name, to: title }}, when: {{ field: kind, {when} }} }}"
    proof = proven(tmp_path, older, {**document(schema), **parts}, change)
    assert [one.field for one in proof.findings if one.keyword == "required"] == failing
    assert proof.holds is (not failing)
