"""What `verify` found, for people and for programs."""

from collections.abc import Iterable, Iterator

import msgspec

from gateway.verify.claim import Body, Claim, Gap, Unchecked
from gateway.verify.hint import hint
from gateway.verify.proof import Finding, Proof

VerificationResult = Proof | Gap | Unchecked

_WIDEST = 96


def text(outcomes: Iterable[VerificationResult]) -> Iterator[str]:
    """Yield lines for a person, as the outcomes come."""
    way = None
    claims = examples = bad = unchecked = 0
    for outcome in outcomes:
        claim = outcome.claim if isinstance(outcome, Proof) else outcome
        if way != (way := (claim.api, claim.client, claim.service)):
            yield f"{claim.api}: version {claim.client}, served by version {claim.service}"
        if isinstance(outcome, Unchecked):
            unchecked += 1
            body = f"{Body.RESPONSE.value} {outcome.status}" if outcome.status else ""
            yield _line("-", outcome.operation, body, f"not checked: {outcome.reason}")
            continue
        claims += 1
        if isinstance(outcome, Gap):
            bad += 1
            yield _line("GAP", claim.operation, "", f"version {claim.service} {outcome.reason}")
            continue
        examples += outcome.examples
        bad += not outcome.holds
        yield _line("ok" if outcome.holds else "FAILS", *_what(outcome.claim), _count(outcome))
        for finding in outcome.findings:
            yield from _finding(outcome.claim, finding)
    left = f"; not checked: {unchecked}" if unchecked else ""
    yield f"{claims - bad} of {claims} claims hold, by {examples} examples{left}"


def json(outcomes: Iterable[VerificationResult]) -> Iterator[str]:
    """Yield all of it as one JSON document."""
    listed = [_object(outcome) for outcome in outcomes]
    report = {"holds": all(one["holds"] is not False for one in listed), "claims": listed}
    yield msgspec.json.format(msgspec.json.encode(report), indent=2).decode()


def _line(verdict: str, operation: str, body: str, says: str) -> str:
    return f"  {verdict:<6} {operation:<28} {body:<16} {says}".rstrip()


def _what(claim: Claim) -> tuple[str, str]:
    return claim.operation, f"{claim.body.value} {claim.status}".rstrip()


def _count(proof: Proof) -> str:
    examples = f"{proof.examples} examples"
    return f"{proof.failed} of {examples}" if proof.failed else examples


def _finding(claim: Claim, finding: Finding) -> Iterator[str]:
    yield f"           {finding.field or 'the body'}: {finding.reason}"
    if (advice := hint(claim, finding)) is not None:
        yield f"             missing   {advice}"
    if finding.example is not None:
        yield f"             smallest  {_short(finding.example)}"
        if claim.passage is not None and finding.converted is not None:
            yield f"             becomes   {_short(finding.converted)}"


def _short(body: bytes) -> str:
    shown = body.decode()
    return shown if len(shown) <= _WIDEST else f"{shown[: _WIDEST - 3]}..."


def _object(outcome: VerificationResult) -> dict[str, object]:
    claim = outcome.claim if isinstance(outcome, Proof) else outcome
    about: dict[str, object] = {
        "api": claim.api,
        "client": str(claim.client),
        "service": str(claim.service),
        "operation": claim.operation,
    }
    if isinstance(outcome, Gap):
        return {**about, "holds": False, "reason": outcome.reason}
    if isinstance(outcome, Unchecked):
        return {**about, "status": outcome.status or None, "holds": None, "reason": outcome.reason}
    return {
        **about,
        "body": outcome.claim.body.value,
        "status": outcome.claim.status if outcome.claim.body is Body.RESPONSE else None,
        "holds": outcome.holds,
        "examples": outcome.examples,
        "failed": outcome.failed,
        "findings": [
            {
                "field": finding.field,
                "keyword": finding.keyword,
                "reason": finding.reason,
                "missing": hint(outcome.claim, finding),
                "example": _raw(finding.example),
                "converted": _raw(finding.converted),
            }
            for finding in outcome.findings
        ],
    }


def _raw(body: bytes | None) -> msgspec.Raw | None:
    return None if body is None else msgspec.Raw(body)
