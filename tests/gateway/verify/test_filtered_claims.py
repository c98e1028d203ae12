"""Claims about messages that `additional` filters, as in live traffic."""

from pathlib import Path
from typing import Any

import pytest

from gateway.rules.load import load_file
from gateway.verify.additional_parts import AdditionalParts
from gateway.verify.proof import ClaimProof
from gateway.verify.verify import VerifyOptions, verify
from tests.gateway.verify.test_additional_parts import TEXT, an_object, document, written

OPEN = an_object(a=TEXT)
CLOSED = {**OPEN, "additionalProperties": False}
MORE = an_object(a=TEXT, b=TEXT)
NESTED = an_object(l={"type": "array", "items": an_object(x=TEXT, y=TEXT)})
FLAT = an_object(l={"type": "array", "items": an_object(x=TEXT)})
UNKNOWN = "cannot be converted: unknown in version 1"
UNDECLARED = "is not declared, and no other fields are allowed"
MISSING = "is missing, but required"


def failures(
    folder: Path, additional: str, older: Any, newer: Any, changes: str = "", keys: str = ""
) -> list[str]:
    """Return the part, field and reason of each failure of POST /orders or PUT /orders."""
    options = f"additional: {additional}\n        {keys or 'statuses: []'}"
    path = written(folder, older, newer, changes, options=options)
    results = verify(load_file(path, {}), folder, VerifyOptions(examples=20))
    proofs = [one for one in results if not isinstance(one, AdditionalParts)]
    assert proofs
    assert all(isinstance(one, ClaimProof) for one in proofs), proofs
    return [
        f"{proof.claim.part.value} {finding.field}: {finding.reason}"
        for proof in proofs
        if isinstance(proof, ClaimProof)
        for finding in proof.findings
    ]


@pytest.mark.parametrize(
    ("additional", "older", "newer", "found"),
    [
        ("pass", CLOSED, MORE, [f"response /b: {UNDECLARED}"]),
        ("drop", CLOSED, MORE, []),
        ("{ requests: refuse, responses: drop }", CLOSED, MORE, []),
        ("{ requests: drop }", CLOSED, MORE, [f"response /b: {UNDECLARED}"]),
        ("pass", OPEN, MORE, []),
        ("drop", OPEN, MORE, []),
        ("refuse", OPEN, MORE, [f"response /b: {UNKNOWN}"]),
        ("{ responses: refuse }", CLOSED, MORE, [f"response /b: {UNKNOWN}"]),
        ("refuse", OPEN, OPEN, []),
        ("refuse", MORE, OPEN, ["response /b: version 2 has no field for it"]),
        ("drop", FLAT, NESTED, []),
        ("refuse", FLAT, NESTED, [f"response /l/*/y: {UNKNOWN}"]),
        # Differences that `drop` does not remove still fail.
        ("drop", {**MORE, "required": ["b"]}, OPEN, [f"response /b: {MISSING}"]),
        ("drop", an_object(a={"type": "integer"}), MORE, ["response /a: "]),
    ],
)
def test_a_response_is_proved_with_the_filter_of_the_older_version(
    tmp_path: Path, additional: str, older: Any, newer: Any, found: list[str]
) -> None:
    failed = failures(tmp_path, additional, document(older), document(newer))
    assert [one[: len(text)] for one, text in zip(failed, found, strict=True)] == found


def test_a_field_that_a_change_moves_before_the_filter_is_not_dropped(tmp_path: Path) -> None:
    older, newer = document({**CLOSED, "required": ["a"]}), {**MORE, "required": ["b"]}
    change = "{ rename: { field: b, to: a } }"
    newer["properties"] = {"b": TEXT, "c": TEXT}
    assert failures(tmp_path, "drop", older, document(newer), change) == []
    (failed,) = failures(tmp_path, "drop", older, document(newer))
    assert failed == f"response /a: {MISSING}"


@pytest.mark.parametrize("additional", ["drop", "refuse"])
def test_a_request_that_the_older_document_describes_passes_the_filter(
    tmp_path: Path, additional: str
) -> None:
    older, newer = (document(OPEN, "page", sent=sent) for sent in (MORE, CLOSED))
    assert failures(tmp_path, additional, older, newer) == [f"request /b: {UNDECLARED}"]
    newer = document(OPEN, "page", sent=MORE)
    assert failures(tmp_path, additional, older, newer) == []


def test_a_put_of_what_drop_has_left_destroys_the_dropped_fields(tmp_path: Path) -> None:
    def both(schema: object) -> Any:
        made = document(schema, sent=schema)
        post = made["paths"]["/orders"].pop("post")
        made["paths"]["/orders"] |= {"put": post, "get": {"responses": post["responses"]}}
        return made

    removed = "round trip /b: a client of version 1 that writes back what it read removes it"
    assert failures(tmp_path, "drop", both(OPEN), both(MORE)) == [removed]
    assert failures(tmp_path, "pass", both(OPEN), both(MORE)) == []
    for keys in ("allow_loss: old clients do not need it", "writes: merge"):
        assert failures(tmp_path, "drop", both(OPEN), both(MORE), keys=keys) == []


def test_the_filter_of_an_operation_with_another_path_is_that_of_its_older_path(
    tmp_path: Path,
) -> None:
    older = document(OPEN)
    older["paths"] = {"/old": older["paths"]["/orders"]}
    keys = 'operations: [ { newer: "POST /orders", older: "POST /old" } ]'
    assert failures(tmp_path, "drop", older, document(MORE), keys=keys) == []
    found = failures(tmp_path, "refuse", older, document(MORE), keys=keys)
    assert found == [f"response /b: {UNKNOWN}"]
