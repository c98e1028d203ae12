"""The report of `verify`, as text and as JSON."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from gateway.base.mistakes import printable
from gateway.verify.additional_parts import AdditionalParts
from gateway.verify.claims import Claim, MessagePart, Unproved
from gateway.verify.openapi.excerpt import excerpt, values_at
from gateway.verify.proof import ClaimProof, Finding

# A fraction of a second in RFC 3339.
_FRACTION = re.compile(rb"[Tt ][0-9:]{8}\.[0-9]")

VerificationResult = ClaimProof | Unproved | AdditionalParts


def text(results: Iterable[VerificationResult]) -> Iterator[str]:
    versions = None
    counts: Counter[str] = Counter()
    for result in results:
        about = result.claim if isinstance(result, ClaimProof) else result
        if versions != (versions := (about.api, about.client, about.service)):
            yield f"{about.api}: version {about.client}, served by version {about.service}"
        match result:
            case AdditionalParts():
                counts["additional"] += len(result.names)
                named = ", ".join(map(printable, result.names))
                allowed = f" (allowed: {printable(result.allowed)})" if result.allowed else ""
                only = f"only version {about.service} has {named}{allowed}"
                yield _line("+", result.operation, result.part, only)
            case Unproved(kind="unchecked" | "undocumented" | "unlisted"):
                counts["not checked"] += 1
                part = f"{MessagePart.RESPONSE.value} {result.status}" if result.status else ""
                yield _line("-", result.operation, part, f"not checked: {result.reason}")
            case Unproved(kind="unmatched"):
                counts["without counterpart"] += 1
                yield _line("-", result.operation, "", f"without counterpart: {result.reason}")
            case Unproved(kind="untested"):
                counts["claims"] += 1
                counts["not checked"] += 1
                reason = f"not checked: {printable(result.reason)}"
                yield _line("?", result.operation, _part(result), reason)
            case Unproved():
                counts["claims"] += 1
                counts["gaps"] += 1
                yield _line("GAP", about.operation, "", f"version {about.service} {result.reason}")
            case ClaimProof():
                counts["claims"] += 1
                counts["hold"] += result.holds
                counts["fail"] += not result.holds
                counts["proved"] += result.proved
                counts["examples"] += result.examples if result.holds else 0
                verdict = "ok" if result.holds else "FAILS"
                yield _line(verdict, about.operation, _part(result.claim), _count(result))
                yield from _findings(result)
                for loss in result.allowed:
                    yield f"           {printable(loss.field)}: allowed: {printable(loss.reason)}"
                counts["allowed losses"] += len(result.allowed)
    yield _summary(counts)


_COUNTS = (
    *("fail", "allowed losses", "gaps"),
    *("not checked", "without counterpart", "additional"),
)


def _summary(counts: Counter[str]) -> str:
    ways = [f"{counts['proved']} proved"] if counts["proved"] else []
    if tried := counts["hold"] - counts["proved"]:
        share = 100 * counts["proved"] // counts["hold"]
        ways = [f"{one} ({share} %)" for one in ways]
        ways.append(f"{tried} by {counts['examples']} examples")
    held = f"{counts['hold']} of {counts['claims']} claims hold"
    return "; ".join(
        [
            f"{held}: {', '.join(ways)}" if ways else held,
            *(f"{name}: {counts[name]}" for name in _COUNTS if counts[name]),
        ]
    )


def json(results: Iterable[VerificationResult]) -> Iterator[str]:
    given = list(results)
    listed = [_object(result) for result in given]
    # null means unknown, as for a single claim.
    whole = None if any(is_incomplete(one) for one in given) else True
    holds = whole if all(one.holds for one in given) else False
    report = {"holds": holds, "claims": listed}
    yield msgspec.json.format(msgspec.json.encode(report), indent=2).decode()


def is_incomplete(result: VerificationResult) -> bool:
    return isinstance(result, Unproved) and result.kind in _INCOMPLETE


_INCOMPLETE = ("undocumented", "unlisted", "untested")


def _line(verdict: str, operation: str, part: str, text: str) -> str:
    return f"  {verdict:<6} {operation:<28} {part:<16} {text}".rstrip()


def _part(about: Claim | Unproved) -> str:
    return f"{about.part.value} {about.status}".rstrip() if about.part is not None else ""


def _count(proof: ClaimProof) -> str:
    if proof.proved:
        return "proved"
    if not proof.examples:
        return "by its schemas"
    examples = f"{proof.examples} examples"
    return f"in {proof.failed} of {examples}" if proof.failed else f"holds ({examples})"


def _findings(proof: ClaimProof) -> Iterator[str]:
    for finding in proof.findings:
        if not finding.first:
            yield from _finding(proof.claim, finding)
    for first, number in Counter(one.first for one in proof.findings).items():
        if first:
            yield f"           {number} more as in {first}"
    if proof.more:
        yield f"           and {proof.more} more"


def _finding(claim: Claim, finding: Finding) -> Iterator[str]:
    yield f"           {printable(finding.field) or 'the body'}: {printable(finding.reason)}"
    if finding.example is not None:
        failing = finding.example if finding.converted is None else finding.converted
        values = values_at(failing, finding.field)
        example = excerpt(finding.example, finding.field, values, finding.decisive)
        yield f"             smallest  {example}"
        if claim.conversion is not None and finding.converted is not None:
            yield f"             becomes   {excerpt(finding.converted, finding.field, values)}"
    if remedy := _remedy(claim, finding):
        yield f"             remedy    {remedy}"


def _remedy(claim: Claim, finding: Finding) -> str:
    """Return what to do about a value that a change cannot convert, or converts to a fraction."""
    sender = claim.service if claim.part is MessagePart.RESPONSE else claim.client
    if finding.keyword == "convert" and "unknown in version" not in finding.reason:
        limits = f"with required, minimum, pattern or enum in the document of version {sender}"
        return f"exclude such values {limits}, or set unfit in the change"
    if finding.reason.endswith("found a fraction") and _FRACTION.search(finding.example or b""):
        return "set digits: 0 in the change (time)"
    return ""


def _object(result: VerificationResult) -> dict[str, object]:
    claim = result.claim if isinstance(result, ClaimProof) else result
    about: dict[str, object] = {
        "api": claim.api,
        "client": str(claim.client),
        "service": str(claim.service),
        "operation": claim.operation,
    }
    match result:
        case AdditionalParts():
            body, _, status = result.part.partition(" ")
            names, reason = list(result.names), result.allowed or None
            place = {"body": body, "status": status or None, "holds": None}
            return {**about, **place, "additional": names, "reason": reason}
        case Unproved(kind="gap"):
            return {**about, "holds": False, "reason": result.reason}
        case Unproved(kind="untested"):
            reason = f"not checked: {result.reason}"
            return {**about, **_place(result), "holds": None, "reason": reason}
        case Unproved(kind=kind):
            reason = (
                f"without counterpart: {result.reason}" if kind == "unmatched" else result.reason
            )
            return {**about, "status": result.status or None, "holds": None, "reason": reason}
        case ClaimProof():
            return {
                **about,
                **_place(result.claim),
                "holds": result.holds,
                "proved": result.proved,
                "examples": result.examples,
                "failed": result.failed,
                "findings": [_described(result.claim, each) for each in result.findings],
                "more": result.more,
                "allowed": [
                    {"field": each.field, "reason": each.reason} for each in result.allowed
                ],
            }


def _place(about: Claim | Unproved) -> dict[str, object]:
    response = about.part is MessagePart.RESPONSE
    return {"body": about.part and about.part.value, "status": about.status if response else None}


def _described(claim: Claim, finding: Finding) -> dict[str, object]:
    return {
        "field": finding.field,
        "keyword": finding.keyword,
        "reason": finding.reason,
        "example": _raw(finding.example),
        "converted": _raw(finding.converted),
        **({"first": finding.first} if finding.first else {}),
        **({"remedy": remedy} if (remedy := _remedy(claim, finding)) else {}),
    }


def _raw(body: bytes | None) -> msgspec.Raw | None:
    return None if body is None else msgspec.Raw(body)
