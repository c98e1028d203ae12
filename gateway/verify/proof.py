"""Proofs: decide a claim by its schemas, or test the claim on generated examples."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from math import inf

import msgspec

from gateway.conversion.conversion_error import Beside, ConversionError
from gateway.conversion.field_path import pointer
from gateway.conversion.schema import Flat, UndecidedError, field_of, properties_of, rest_of
from gateway.conversion.schema_fit import Fit, Verdict, convert_schema, fits
from gateway.verify.claims import Claim, MessagePart
from gateway.verify.openapi.body_fields import generalized
from gateway.verify.openapi.examples import Examples, decisive, smallest
from gateway.verify.openapi.json_schema import longest_list, narrowed
from gateway.verify.openapi.schema_fields import declared, fields_of
from gateway.verify.openapi.validation import Validator, Violation
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
    """

    field: str
    keyword: str
    reason: str
    example: bytes | None = None
    converted: bytes | None = None
    decisive: tuple[str, ...] = ()


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


@dataclass(frozen=True, slots=True)
class Unproven:
    """A claim that could not be tested. It holds, since no mistake was found."""

    claim: Claim
    reason: str

    @property
    def holds(self) -> bool:
        return True


def prove(claim: Claim, examples: Examples, end: float = inf) -> ClaimProof:
    """Decide a claim by its schemas, or else test the claim on examples.

    Raises:
        NoExamplesError: examples cannot be generated.
        ValueError: one of the two schemas is invalid.
        OutOfTimeError: the time limit has passed.
    """
    trial = _Trial(claim, end)
    fit = _fit(claim)
    if fit.verdict is Verdict.PROVED:
        return ClaimProof(claim, 0, 0, (), proved=True)
    failed = 0
    for document in examples.of(claim.given, longest_list(claim.wanted)):
        failed += trial.run(document)
    shown = [trial.finding(*known) for known in islice(trial.failures.items(), _MOST)]
    more = len(trial.failures) - len(shown)
    found = (*shown, *trial.differences())
    if fit.verdict is Verdict.FAILS and not found:  # no generated example fails
        found = (Finding(fit.field, fit.keyword, fit.reason),)
    allowed = tuple(trial.allowed.values())
    return ClaimProof(claim, trial.examples, failed, found, more, allowed=allowed)


def _fit(claim: Claim) -> Fit:
    body = claim.conversion
    if claim.part not in (MessagePart.REQUEST, MessagePart.RESPONSE):
        return Fit(Verdict.UNKNOWN)
    if isinstance(body, ConvertedBody) and not body.conversion.needs_message:
        conversion = body.conversion
    elif body is None:
        conversion = None
    else:
        return Fit(Verdict.UNKNOWN)
    try:
        # Objects are closed, as in examples; see `narrowed`.
        given = convert_schema(conversion, narrowed(claim.given, _ALL))
    except (UndecidedError, RecursionError):
        return Fit(Verdict.UNKNOWN)
    is_other = partial(_loses, claim) if claim.part is MessagePart.RESPONSE else _ignores
    return fits(given, claim.wanted, is_other)


def _loses(claim: Claim, at: str, given: Flat, wanted: Flat) -> bool:
    """Whether an object in a response never has a field that the client's document declares."""
    return any(
        field_of(given, name) is False and _inside_of_root(at + pointer(name)) not in claim.named
        for name in properties_of(wanted)
    )


def _ignores(_: str, given: Flat, wanted: Flat) -> bool:
    """Whether an object in a request may have a field that the service's document lacks."""
    if "properties" not in wanted or rest_of(wanted) is not False:
        return False
    return (
        rest_of(given) is not False
        or not properties_of(given).keys() <= properties_of(wanted).keys()
    )


# The length of arrays is not limited.
_ALL = 2**53


@dataclass(slots=True)
class _Trial:
    claim: Claim
    end: float
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

    def finding(self, failure: tuple[str, str], document: object) -> Finding:
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
                if _parent(name) in self.after and _inside_of_root(name) not in self.claim.named
            }
            return self._different(lost, "lost", "has no field for it")
        unknown = self.after - wanted.fields - failing
        ignored = {name for name in unknown if _parent(name) in wanted.objects}
        # Keys that the sender's document does not declare were generated as undeclared keys.
        free = {name for name in ignored & self.before if name not in given.fields}
        maps = {f"{_parent(name)}/*" for name in free if _parent(name) not in given.objects}
        return [
            *self._different(ignored - free, "ignored", "does not know it"),
            *self._different(maps, "ignored", "knows no further fields"),
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
        return arrived, self.wanted.violations(arrived)

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


def _inside_of_root(name: str) -> str:
    """Return the pointer of a field without the elements of a root array, as changes write it."""
    while name.startswith("/*"):
        name = name.removeprefix("/*")
    return name


def _is_element(name: str) -> bool:
    return name.endswith("/*")


def _parent(name: str) -> str:
    return name.rpartition("/")[0]
