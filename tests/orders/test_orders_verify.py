"""All generated documents are converted; if a change is missing, verify names the lost field."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from gateway.rules.document import read
from gateway.rules.load import load
from gateway.verify.proof import ClaimProof
from gateway.verify.verification_report import VerificationResult
from gateway.verify.verify import VerifyOptions, verify
from tests.orders.backend import HERE

RULES = (HERE / "gateway.yaml").read_bytes()
ORDERS = {"ORDERS": "127.0.0.1:1"}


def outcomes(text: str, between: tuple[str, str] | None = None) -> list[VerificationResult]:
    snapshot = load(text.encode(), "gateway.yaml", ORDERS)
    return list(verify(snapshot, HERE, VerifyOptions(between=between, examples=4)))


def conversions() -> tuple[Any, Any]:
    data: Any = read(RULES, "gateway.yaml", ORDERS).data
    return data, data["apis"]["orders"]["conversions"]


def changes() -> Iterator[ParameterSet]:
    for index, conversion in enumerate(conversions()[1]):
        link = "-".join(conversion["between"])
        for kind in ("changes", "query"):
            for place, change in enumerate(conversion.get(kind, ())):
                name, said = next(iter(change.items()))  # `allow_loss` may follow
                title = f"{link} {name} {said.get('field', said.get('into'))}"
                yield pytest.param(index, kind, place, id=title)


def test_all_generated_documents_are_converted() -> None:
    found = outcomes(RULES.decode())
    assert len(found) == 36
    assert [outcome for outcome in found if not outcome.holds] == []


@pytest.mark.parametrize(("index", "kind", "place"), list(changes()))
def test_verify_detects_each_missing_change(index: int, kind: str, place: int) -> None:
    broken, links = conversions()
    said = next(iter(links[index][kind].pop(place).values()))
    found = outcomes(json.dumps(broken), tuple(links[index]["between"]))
    fields = {
        finding.field
        for outcome in found
        if isinstance(outcome, ClaimProof)
        for finding in outcome.findings
    }
    names = [said[key] for key in ("field", "to", "into") if key in said] + said.get("fields", [])
    pointers = [f"/{name.replace('[]', '.*').replace('.', '/')}" for name in names]
    assert any(
        field.endswith(pointer)
        or pointer.startswith(f"{field}/")  # verify may name the parent of the field
        for field in fields
        for pointer in pointers
    ), fields
