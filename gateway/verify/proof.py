"""Proofs: a claim, tried on many generated examples, and the findings."""

from dataclasses import dataclass, field

import msgspec

from gateway.core.conversion.document import ConversionError
from gateway.verify.claim import Claim, MessagePart
from gateway.verify.openapi.examples import generate
from gateway.verify.openapi.schema_fields import declared, fields_of
from gateway.verify.openapi.smallest import smallest
from gateway.verify.openapi.validation import Validator, Violation


@dataclass(frozen=True, slots=True)
class Finding:
    """One field that is wrong.

    Attributes:
        field: a JSON Pointer (RFC 6901) with `*` for any element of an array.
        keyword: the violated keyword of JSON Schema; else `convert` where an example cannot be
            converted, `lost` where a field never arrives, `ignored` where no reader knows it.
        reason: a sentence for a person, without its subject, which is the field.
        example: the smallest example that fails so; None where no single one shows it.
        converted: that example, converted; None where it cannot be.
    """

    field: str
    keyword: str
    reason: str
    example: bytes | None = None
    converted: bytes | None = None


@dataclass(frozen=True, slots=True)
class ClaimProof:
    """A claim, the number of examples tried and of those that failed, and the findings."""

    claim: Claim
    examples: int
    failed: int
    findings: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        """Whether there are no findings."""
        return not self.findings


def prove(claim: Claim, count: int, start: int) -> ClaimProof:
    """Return the proof of a claim by `count` examples, the same ones for the same `start`.

    Raises:
        NoExamplesError: none can be generated.
        ValueError: one of the two is no valid schema.
    """
    trial = _Trial(claim)
    failed = 0
    for document in generate(claim.given, count, start):
        failed += trial.run(document)
    findings = [trial.finding(*known) for known in trial.failures.items()]
    return ClaimProof(claim, trial.examples, failed, (*findings, *trial.differences()))


@dataclass(slots=True)
class _Trial:
    claim: Claim
    given: Validator = field(init=False)
    wanted: Validator = field(init=False)
    examples: int = 0
    failures: dict[tuple[str, str], object] = field(default_factory=dict)
    before: set[str] = field(default_factory=set)
    after: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.given = Validator(self.claim.given)
        self.wanted = Validator(self.claim.wanted)

    def run(self, document: object) -> bool:
        """Try one example; return whether it fails."""
        self.examples += 1
        self.before |= fields_of(document)
        arrived, violations = self._outcome(document)
        if arrived is not _NOTHING:
            self.after |= fields_of(arrived)
        for violation in violations:
            self.failures.setdefault((violation.field, violation.keyword), document)
        return bool(violations)

    def finding(self, failure: tuple[str, str], document: object) -> Finding:
        """Return the finding for a failing field and keyword, with the smallest example."""

        def still(smaller: object) -> bool:
            return self.given.allows(smaller) and failure in {
                (violation.field, violation.keyword) for violation in self._outcome(smaller)[1]
            }

        example = smallest(document, still)
        arrived, violations = self._outcome(example)
        reason = next(
            violation.reason
            for violation in violations
            if (violation.field, violation.keyword) == failure
        )
        converted = None if arrived is _NOTHING else msgspec.json.encode(arrived)
        return Finding(*failure, reason, msgspec.json.encode(example), converted)

    def differences(self) -> list[Finding]:
        """Return what only all examples show: fields that never arrive or that no reader knows."""
        if any(keyword == "convert" for _, keyword in self.failures):
            return []  # some examples never arrived, so that missing fields prove nothing
        wanted, given = declared(self.claim.wanted), declared(self.claim.given)
        failing = self._failing(wanted.fields | self.after)
        if self.claim.part is MessagePart.RESPONSE:
            never = {name for name in given.fields if name not in self.before}
            names = wanted.fields - self.after - failing - never
            lost = {
                name
                for name in names
                if _parent(name) in self.after and _inside_of_root(name) not in self.claim.named
            }
            return self._different(lost, "lost", "has nothing for it")
        unknown = self.after - wanted.fields - failing
        ignored = {name for name in unknown if _parent(name) in wanted.objects}
        return self._different(ignored, "ignored", "does not know it")

    def _failing(self, names: set[str]) -> set[str]:
        """Return the fields that fail, and the fields inside them."""
        tops = {field for field, _ in self.failures}
        return {
            name
            for name in names
            if name in tops or any(name.startswith(f"{field}/") for field in tops)
        }

    def _different(self, names: set[str], keyword: str, predicate: str) -> list[Finding]:
        reason = f"version {self.claim.service} {predicate}"
        return [Finding(name, keyword, reason) for name in sorted(names)]

    def _outcome(self, document: object) -> tuple[object, list[Violation]]:
        arrived = document
        if self.claim.conversion is not None:
            try:
                arrived = self.claim.conversion(document)
            except ConversionError as error:
                keys = error.pointer.split("/")[1:]
                steps = tuple(int(key) if key.isdecimal() else key for key in keys)
                violation = Violation(steps, "convert", f"cannot be converted: {error.reason}")
                return _NOTHING, [violation]
        return arrived, self.wanted.violations(arrived)


_NOTHING = object()


def _inside_of_root(name: str) -> str:
    """Return a field without the array at the root, whose elements changes are applied to."""
    while name.startswith("/*"):
        name = name.removeprefix("/*")
    return name


def _parent(name: str) -> str:
    return name.rpartition("/")[0]
