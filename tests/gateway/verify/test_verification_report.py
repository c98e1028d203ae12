"""The text report and the JSON report of `verify`, with every kind of result."""

import json
from pathlib import Path

import pytest

from gateway.verify import verification_report
from gateway.verify.claims import Claim, MessagePart, Unproved
from gateway.verify.proof import ClaimProof, Finding
from gateway.versions.version import Version
from tests.gateway.verify.test_round_trips import described, results

ABOUT = ("things", Version(1, "1"), Version(2, "2"))


def claim(status: str) -> Claim:
    return Claim(*ABOUT, "GET /a", MessagePart.RESPONSE, status, {}, {}, lambda document: document)


LONG = json.dumps({"a": "x" * 90, "b": 7}).encode()
FINDING = Finding("/b", "maximum", "7 is too much", LONG, b'{"b":7}')
RESULTS = (
    ClaimProof(claim("200"), 10, 0, ()),
    ClaimProof(claim("404"), 10, 3, (FINDING, Finding("", "lost", "never arrives"))),
    ClaimProof(claim("201"), 0, 0, (), proved=True),
    Unproved("gap", *ABOUT, "PUT /a", "has no such operation"),
    Unproved("unchecked", *ABOUT, "GET /b", "nothing there", "204"),
    Unproved("unmatched", *ABOUT, "GET /c", "version 1 has no such operation"),
)


def test_the_text_report_has_a_line_for_each_result() -> None:
    lines = verification_report.text(RESULTS)
    assert [" ".join(line.split()) for line in lines] == [
        "things: version 1, served by version 2",
        "ok GET /a response 200 holds (10 examples)",
        "FAILS GET /a response 404 in 3 of 10 examples",
        "/b: 7 is too much",
        'smallest {"b":7,"...":"..."}',
        'becomes {"b":7}',
        "the body: never arrives",
        "ok GET /a response 201 proved",
        "GAP PUT /a version 2 has no such operation",
        "- GET /b response 204 not checked: nothing there",
        "- GET /c without counterpart: version 1 has no such operation",
        (
            "2 of 4 claims hold: 1 proved (50 %), 1 by 10 examples; fail: 1; gaps: 1;"
            " not checked: 1; without counterpart: 1"
        ),
    ]


def test_the_json_report_has_an_object_for_each_result() -> None:
    (text,) = verification_report.json(RESULTS)
    report = json.loads(text)
    assert report["holds"] is False
    assert [one["holds"] for one in report["claims"]] == [True, False, True, False, None, None]
    assert report["claims"][1]["findings"][0] == {
        "field": "/b",
        "keyword": "maximum",
        "reason": "7 is too much",
        "example": json.loads(LONG),
        "converted": {"b": 7},
    }
    assert [one.get("proved") for one in report["claims"][:3]] == [False, False, True]
    assert report["claims"][5]["reason"] == "without counterpart: version 1 has no such operation"


def test_the_json_report_holds_if_no_claim_fails() -> None:
    (text,) = verification_report.json((RESULTS[0], *RESULTS[4:]))
    assert json.loads(text)["holds"] is True


UNIX = {"type": "integer"}
RFC_3339 = {"type": "string", "format": "date-time"}
EXCLUDE = (
    "exclude such values with required, minimum, pattern or enum in the document of version 1,"
    " or set unfit in the change"
)


@pytest.mark.parametrize(
    ("change", "part", "remedies"),
    [
        ("newer: rfc3339, older: unix", "response 200", {"set digits: 0 in the change (time)"}),
        ("newer: rfc3339, older: unix, digits: 0", "response 200", set()),
        ("newer: rfc3339, older: unix", "request", {EXCLUDE}),
    ],
)
def test_a_time_that_the_other_version_cannot_have_is_reported_with_a_remedy(
    tmp_path: Path, change: str, part: str, remedies: set[str]
) -> None:
    documents = described("put", at=UNIX), described("put", at=RFC_3339)
    found = results(tmp_path, f"changes: [ time: {{ field: at, {change} }} ]", *documents)
    proofs = [one for one in found if isinstance(one, ClaimProof)]
    asked = [one for one in proofs if part in f"{one.claim.part.value} {one.claim.status}"]
    lines = [*verification_report.text(asked)]
    marked = {line.split("remedy", 1)[1].strip() for line in lines if "  remedy  " in line}
    assert marked == remedies
    (written,) = verification_report.json(asked)
    findings = [each for one in json.loads(written)["claims"] for each in one["findings"]]
    assert {each["remedy"] for each in findings if "remedy" in each} == remedies
