"""Proofs: decide a claim by its schemas, or test the claim on generated examples."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from math import inf

import msgspec

from gateway.conversion.conversion_error import Beside, ConversionError
from gateway.conversion.schema import (
    Schema,
    Schemas,
    UndecidedError,
    definitions,
    reachable,
    text_of,
    with_components,
)
from gateway.conversion.schema_fit import Difference, SchemaComparer, Verdict, convert_schema
from gateway.verify.claims import Claim, MessagePart
from gateway.verify.openapi.body_fields import generalized
from gateway.verify.openapi.examples import Examples, decisive, smallest
from gateway.verify.openapi.json_schema import longest_list
from gateway.verify.openapi.nested_names import as_schema
from gateway.verify.openapi.schema_fields import declared, fields_of
from gateway.verify.openapi.validation import Validator, Violation, check_schema
from gateway.verify.part_conversion import ConvertedBody
from gateway.verify.time_limit import check_time

# The maximum number of findings per claim, since the search for a smallest example takes many
# trials. If only one version allows undeclared keys, each generated key fails.
_MOST = 20
# The parts of a message that consist of named strings, by their names in errors.
_NAMED = {"query parameter": "query", "header field": "headers"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One wrong field.

    Attributes:
        field: a JSON Pointer (RFC 6901) with `*` for array elements.
        keyword: the violated keyword of JSON Schema; `convert` if an example cannot be converted;
            `lost` if the field never arrives; `ignored` if the recipient's schema lacks the field.
        reason: a sentence for operators; its subject, the field, is omitted.
        decisive: the JSON Pointers of the values in the example on which the failure depends.
        first: an earlier claim with the same difference, which has the example.
    """

    field: str
    keyword: str
    reason: str
    example: bytes | None = None
    converted: bytes | None = None
    decisive: tuple[str, ...] = ()
    first: str = ""


@dataclass(frozen=True, slots=True)
class ClaimProof:
    """The result of testing a claim.

    `more` is the number of omitted findings; `proved` means that no examples were needed.
    `allowed` has the fields that are lost because of changes with `allow_loss`.
    """

    claim: Claim
    examples: int
    failed: int
    findings: tuple[Finding, ...]
    more: int = 0
    proved: bool = False
    allowed: tuple[Finding, ...] = ()

    @property
    def holds(self) -> bool:
        return not self.findings


class Prover:
    """Decides claims by their schemas, and tests on examples what the schemas do not decide.

    A difference between two schemas may occur in many messages. It is tested once, and its example
    is found once.
    """

    def __init__(self, examples: Examples, end: float = inf) -> None:
        self._examples = examples
        self.end = end
        self._comparers: dict[object, SchemaComparer] = {}
        self._tested: dict[object, tuple[int, int, list[Finding]]] = {}
        self._first: dict[object, str] = {}
        self._valid: dict[int, object] = {}

    def prove(self, claim: Claim) -> ClaimProof:
        """Decide a claim by its schemas, or else test the claim on examples.

        Raises:
            NoExamplesError: examples cannot be generated.
            ValueError: one of the two schemas is invalid.
            OutOfTimeError: the time limit has passed.
        """
        found = self._differences(claim)
        if not found and found is not None:
            for schema in (claim.given, claim.wanted):
                check_schema(schema, self._valid)
            return ClaimProof(claim, 0, 0, (), proved=True)
        is_text = claim.part not in _BODIES
        if found is None or is_text or any(one.key is None or _is_wide(one) for one in found):
            return self._by_examples(claim, [] if is_text else found or [])
        failing = [one for one in found if one.fit.verdict is Verdict.FAILS]
        new = [one for one in failing if one.key not in self._first]
        if new and len(definitions(reachable(claim.given))) <= _FEW:
            proof = self._by_examples(claim, found)
        else:
            proof = self._by_places(claim, found)
        name = f"{claim.operation} {claim.part.value} {claim.status}".rstrip()
        for one in found:
            self._first.setdefault(one.key, name)
        return proof

    def _differences(self, claim: Claim) -> list[Difference] | None:
        """Return the differences between the schemas; None if the schemas do not decide."""
        body = claim.conversion
        conversion = None
        if not claim.unchanged:
            if claim.part not in _BODIES:
                return None
            if isinstance(body, ConvertedBody) and body.decided_by_schemas(claim.client):
                conversion = body.conversion
            elif body is not None:
                return None
        try:
            given = convert_schema(conversion, claim.given)
        except (UndecidedError, RecursionError):
            return None
        absent = "lost" if claim.part is MessagePart.RESPONSE else "ignored"
        schemas = definitions(claim.given), definitions(claim.wanted)
        key = (*(id(one) if one else 0 for one in schemas), absent)
        if key not in self._comparers:
            given_schemas, wanted_schemas = map(Schemas, schemas)
            self._comparers[key] = SchemaComparer(
                given_schemas, wanted_schemas, absent, partial(check_time, self.end)
            )
        return self._comparers[key].differences(given, claim.wanted, claim.named)

    def _by_examples(self, claim: Claim, found: Sequence[Difference]) -> ClaimProof:
        """Test a claim on examples of whole messages."""
        trial = _Trial(claim, self.end)
        failed = trial.run_all(self._examples)
        shown = trial.findings()
        places = {one.field for one in shown}
        absent = trial.differences() if claim.part not in _BODIES or not found else []
        for one in found:
            if one.fit.verdict is Verdict.FAILS and one.fit.field not in places:
                absent.append(_structural(claim, one))
        more = len(trial.failures) - len(shown)
        allowed = tuple(trial.allowed.values())
        return ClaimProof(claim, trial.examples, failed, (*shown, *absent), more, allowed=allowed)

    def _by_places(self, claim: Claim, found: Sequence[Difference]) -> ClaimProof:
        """Test a claim only at the places where its schemas differ."""
        findings: list[Finding] = []
        examples = failed = 0
        for one in found:
            if one.fit.verdict is Verdict.FAILS:
                first = self._first.get(one.key, "")
                findings.append(replace(_structural(claim, one), first=first))
                continue
            if one.key not in self._tested:
                self._tested[one.key] = self._test(claim, one)
            count, wrong, there = self._tested[one.key]
            examples, failed = examples + count, failed + wrong
            first = self._first.get(one.key, "")
            findings += [replace(each, field=one.at + each.field, first=first) for each in there]
        return ClaimProof(claim, examples, failed, tuple(findings))

    def _test(self, claim: Claim, one: Difference) -> tuple[int, int, list[Finding]]:
        """Test values at the place of a difference; the schemas are those after the conversion."""

        def of(given: object, wanted: object) -> list[Schema]:
            pairs = (given, claim.given), (wanted, claim.wanted)
            return [with_components(as_schema(one), (source,)) for one, source in pairs]

        given, wanted = of(one.given, one.wanted)
        within = one.within and tuple(map(Validator, of(*one.within)))
        alone = replace(claim, given=given, wanted=wanted, conversion=None)
        trial = _Trial(alone, self.end, within)
        failed = trial.run_all(self._examples)
        return trial.examples, failed, trial.findings()


_BODIES = (MessagePart.REQUEST, MessagePart.RESPONSE)
# With more components, examples of whole messages take long to generate, and rarely contain the
# difference.
_FEW = 30


def _is_wide(one: Difference) -> bool:
    return one.fit.verdict is Verdict.UNKNOWN and b'"x-' in text_of(one.given)


def _structural(claim: Claim, one: Difference) -> Finding:
    fit = one.fit
    absent = {
        "lost": "has no field for it",
        "ignored": "allows no further fields" if fit.field.endswith("/*") else "lacks it",
    }
    reason = fit.reason or f"version {claim.service} {absent[fit.keyword]}"
    return Finding(fit.field, fit.keyword, reason)


@dataclass(slots=True)
class _Trial:
    """A test of a claim on examples.

    Attributes:
        within: the unions that contain the schemas of the claim; see `Difference`.
    """

    claim: Claim
    end: float
    within: tuple[Validator, ...] | None = None
    given: Validator = field(init=False)
    wanted: Validator = field(init=False)
    examples: int = 0
    failures: dict[tuple[str, str], object] = field(default_factory=dict)
    allowed: dict[str, Finding] = field(default_factory=dict)
    before: set[str] = field(default_factory=set)
    after: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.given = Validator(self.claim.given)
        self.wanted = Validator(self.claim.wanted)

    def run(self, document: object) -> bool:
        self.examples += 1
        self.before |= fields_of(document)
        arrived, violations = self._outcome(document)
        if arrived is not _NOTHING:
            self.after |= fields_of(arrived)
        for violation in violations:
            self.failures.setdefault((violation.field, violation.keyword), document)
        return bool(violations)

    def run_all(self, examples: Examples) -> int:
        """Test the claim on all examples, and return the number of failures."""
        longest = longest_list(reachable(self.claim.wanted))
        made = examples.of(self.claim.given, longest)
        return sum(self.run(one) for one in made if self.within is None or self.allows(one))

    def allows(self, document: object) -> bool:
        within = self.within is None or self.within[0].allows(document)
        return within and self.given.allows(document)

    def findings(self) -> list[Finding]:
        return [self.finding(*known) for known in islice(self.failures.items(), _MOST)]

    def finding(self, failure: tuple[str, str], document: object) -> Finding:
        def still(smaller: object) -> bool:
            return self.allows(smaller) and failure in {
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
        places = {violation.field for violation in violations}

        def mended(changed: object) -> bool:
            found = self._outcome(changed)[1]
            failures = {(violation.field, violation.keyword) for violation in found}
            return failure not in failures and {place for place, _ in failures} <= places

        return Finding(
            *failure,
            reason,
            msgspec.json.encode(example),
            converted,
            decisive(example, mended),
        )

    def differences(self) -> list[Finding]:
        if self.claim.part is MessagePart.ROUND_TRIP:
            return []  # each example is tested separately
        if any(keyword == "convert" for _, keyword in self.failures):
            return []  # examples that were not converted may have the missing fields
        wanted, given = declared(self.claim.wanted), declared(self.claim.given)
        failing = self._failing(wanted.fields | self.after)
        if self.claim.part is MessagePart.RESPONSE:
            never = {name for name in given.fields if name not in self.before}
            names = wanted.fields - self.after - failing - never
            if any(map(_is_element, never)):  # elements may have another path in the other version
                names = {name for name in names if not _is_element(name)}
            lost = {
                name
                for name in names
                if _parent(name) in self.after and _without_root_array(name) not in self.claim.named
            }
            return self._different(lost, "lost", "has no field for it")
        unknown = self.after - wanted.fields - failing
        ignored = {name for name in unknown if _parent(name) in wanted.objects}
        # Keys that the sender's document does not declare were generated as undeclared keys.
        free = {name for name in ignored & self.before if name not in given.fields}
        maps = {f"{_parent(name)}/*" for name in free if _parent(name) not in given.objects}
        return [
            *self._different(ignored - free, "ignored", "lacks it"),
            *self._different(maps, "ignored", "allows no further fields"),
        ]

    def _failing(self, names: set[str]) -> set[str]:
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
        check_time(self.end)
        arrived = document
        if self.claim.conversion is not None:
            try:
                arrived = self.claim.conversion(document)
            except ConversionError as error:
                if self.claim.part is MessagePart.ROUND_TRIP:
                    return _NOTHING, []  # nothing is written, and other claims cover the refusal
                steps = _steps(error, self.claim.part)
                # The location is in a partly converted document, so either schema may declare it.
                place = generalized(steps, self.claim.given, self.claim.wanted)
                cause = f" ({error.cause})" if error.cause else ""
                reason = f"cannot be converted: {error.reason}{cause}"
                violation = Violation(steps, place, "convert", reason)
                return _NOTHING, [violation]
        if self.claim.part is MessagePart.ROUND_TRIP:
            return arrived, self._not_allowed(document, [*self._overwritten(document, arrived)])
        if self.within is None:
            return arrived, self.wanted.violations(arrived)
        whole = self.within[1].violations(arrived)
        return arrived, whole and (self.wanted.violations(arrived) or whole)

    def _not_allowed(self, document: object, lost: list[Violation]) -> list[Violation]:
        """Return the losses that also occur without the changes whose losses are allowed."""
        if self.claim.lossless is None or not lost:
            return lost
        try:
            kept = self.claim.lossless(document)
        except ConversionError:
            return lost
        others = {violation.field for violation in self._overwritten(document, kept)}
        why = "; ".join(self.claim.allowed)
        for one in lost:
            if one.field not in others:
                self.allowed.setdefault(
                    one.field, Finding(one.field, "allowed", f"{one.reason} ({why})")
                )
        return [one for one in lost if one.field in others]

    def _overwritten(self, document: object, arrived: object) -> Iterator[Violation]:
        for path, is_gone in _changed(document, arrived, ()):
            place = generalized(path, self.claim.given)
            done = "removes it" if is_gone else "changes it"
            reason = f"a client of version {self.claim.client} that writes back what it read {done}"
            yield Violation(path, place, "overwritten", reason)


_NOTHING = object()
_EMPTY: tuple[object, ...] = (None, {}, [])


def _changed(
    before: object, after: object, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], bool]]:
    """Yield the path of each changed value, and whether the value was removed.

    Null or empty values and added values are ignored.
    """
    if before in _EMPTY:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for name, value in before.items():
            if name in after:
                yield from _changed(value, after[name], (*path, name))
            elif value not in _EMPTY:
                yield (*path, name), True
    elif isinstance(before, list) and isinstance(after, list):
        for index, value in enumerate(before):
            if index < len(after):
                yield from _changed(value, after[index], (*path, index))
            else:
                yield (*path, index), True
    elif before != after or isinstance(before, bool) != isinstance(after, bool):
        yield path, False


def _steps(error: ConversionError, part: MessagePart) -> tuple[str, ...]:
    place = error.place
    if not isinstance(place, Beside):
        return tuple(map(str, place))
    if part in (MessagePart.QUERY, MessagePart.HEADERS):
        return place.names[:1]
    return (_NAMED[place.what], *place.names[:1]) if place.what in _NAMED else ()


def _without_root_array(name: str) -> str:
    """Return the pointer of a field as changes write it, without the elements of a root array."""
    while name.startswith("/*"):
        name = name.removeprefix("/*")
    return name


def _is_element(name: str) -> bool:
    return name.endswith("/*")


def _parent(name: str) -> str:
    return name.rpartition("/")[0]
