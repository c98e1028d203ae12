"""The command `verify`: tests the configured conversions against OpenAPI documents."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.base.mistakes import suggest
from gateway.routing.snapshot import Api, Snapshot
from gateway.verify.additional_parts import AdditionalParts, additional_parts
from gateway.verify.claims import Claim, MessagePart, Outcome, Unproved, claims
from gateway.verify.openapi.document_source import fetch
from gateway.verify.openapi.examples import Examples, NoExamplesError
from gateway.verify.openapi.openapi import Description, shape
from gateway.verify.openapi.shapes import ShapeCompiler
from gateway.verify.proof import ClaimProof, Prover
from gateway.verify.time_limit import OutOfTimeError, end_after, interrupted_at
from gateway.verify.unchecked import Unchecked, unchecked_parts
from gateway.verify.verification_report import VerificationResult
from gateway.versions.version import Version


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """The options of `verify`.

    `operation` is a method and a path, as in `GET /orders/{id}`, in either version. The same `seed`
    generates the same examples; `seconds` is None without a time limit. `started` is the start
    of the limit in monotonic seconds; None for the start of `verify`.
    """

    api: str | None = None
    between: tuple[str, str] | None = None
    examples: int = 100
    seed: int = 0
    seconds: float | None = None
    operation: str | None = None
    started: float | None = None


@dataclass(frozen=True, slots=True)
class _VersionPair:
    api: Api
    client: Version
    service: Version

    @property
    def undocumented(self) -> Unproved | None:
        for version in (self.client, self.service):
            if version not in self.api.schemas:
                reason = (
                    f"version {version} has no OpenAPI document; name one:"
                    f' "{version}": {{ ..., schema: FILE or URL }}'
                )
                versions = self.client, self.service
                return Unproved("undocumented", self.api.name, *versions, "all operations", reason)
        return None


class VerifyError(Exception):
    """Nothing can be verified. The message contains the reason and the remedy."""


# The seconds after the time limit for loading the documents and listing their claims.
_LISTING = 1.0

Begins = Callable[[Claim, int, int], object]
"""Called before a claim is tested, with its number and the number of claims of its version pair."""


def verify(
    snapshot: Snapshot,
    folder: Path,
    options: VerifyOptions,
    begins: Begins = lambda *_: None,
) -> Iterator[VerificationResult]:
    """Yield the results of all claims, one by one.

    Raises:
        VerifyError: the configuration lacks the API, the versions, any conversions or any
            documents.
        DocumentError: a document cannot be loaded or used.
    """
    if options.examples < 1:
        raise VerifyError(f"{options.examples} examples prove nothing; use 1 or more")
    if options.seconds is not None and not options.seconds > 0:
        raise VerifyError(f"in {options.seconds:g} s, nothing is tested; give a time above 0")
    end = end_after(options.seconds, options.started)
    prover = Prover(Examples(options.examples, options.seed, end), end)
    pairs = list(_pairs(snapshot, options))
    if not pairs and options.between is not None:
        raise VerifyError(
            f"no API has versions {' and '.join(options.between)}; name two of one API"
        )
    if not pairs:
        raise VerifyError("no API here has conversions; there is nothing to verify")
    locations = _locations(pairs)
    try:
        with interrupted_at(end + _LISTING):
            documents = asyncio.run(fetch(locations, folder))
    except OutOfTimeError:
        yield from map(_unlisted, pairs)
        return
    if options.operation is not None:
        _check_operation(options.operation, documents.values())
    for pair in pairs:
        if pair.undocumented is not None:
            yield pair.undocumented
        else:
            yield from _of_pair(pair, documents, options, prover, begins)


def _of_pair(
    pair: _VersionPair,
    documents: Mapping[str, Description],
    options: VerifyOptions,
    prover: Prover,
    begins: Begins,
) -> Iterator[VerificationResult]:
    client, service = (
        (version, documents[pair.api.schemas[version]]) for version in (pair.client, pair.service)
    )
    try:
        with interrupted_at(prover.end + _LISTING):
            found = list(claims(pair.api, client, service))
    except OutOfTimeError:
        yield _unlisted(pair)
        return
    if all(
        isinstance(one, Unproved) and one.reason == Unchecked.NO_ENDPOINT.reason for one in found
    ):
        raise VerifyError(
            f"{pair.api.name}: {client[1].source} has none of the operations at its"
            " endpoints; are upstream_path and servers right?"
        )
    found = [one for one in found if _is_about(one.operation, options.operation)]
    yield from _results(found, client[1].source, service[1].source, prover, begins)
    if pair.client < pair.service:
        for part in _additional(pair, client[1], service[1], prover.end):
            if _is_about(part.operation, options.operation):
                yield part
    for reason, places in unchecked_parts((client[1], service[1])).items():
        named = [one for one in places if _is_about(one, options.operation)]
        if named:
            more = f", and of {len(named) - 1} more operations" if named[1:] else ""
            about = pair.api.name, pair.client, pair.service, named[0]
            yield Unproved("unchecked", *about, f"{reason}{more}")


def _unlisted(pair: _VersionPair) -> Unproved:
    versions = pair.client, pair.service
    return Unproved("unlisted", pair.api.name, *versions, "all operations", Unchecked.TIME.reason)


def _results(
    found: Sequence[Outcome], client: str, service: str, prover: Prover, begins: Begins
) -> Iterator[VerificationResult]:
    count, number = sum(isinstance(one, Claim) for one in found), 0
    for one in found:
        if isinstance(one, Claim):
            number += 1
            begins(one, number, count)
            sender = service if one.part is MessagePart.RESPONSE else client
            yield _proven(one, sender, prover)
        else:
            yield one


def _additional(
    pair: _VersionPair, client: Description, service: Description, end: float
) -> Iterator[AdditionalParts | Unproved]:
    found: list[AdditionalParts] = []
    try:
        with interrupted_at(end):
            shapes = [
                (version, ShapeCompiler(one.data, one.source, as_sent=True).compile())
                for version, one in ((pair.client, client), (pair.service, service))
            ]
            found.extend(additional_parts(pair.api, *shapes))
        late = False
    except OutOfTimeError:
        late = True
    yield from (one for one in found if one.part)  # claims list the operations
    if late:
        reason = f"the parts that only version {pair.service} has: {Unchecked.TIME.reason}"
        versions = pair.client, pair.service
        yield Unproved("unchecked", pair.api.name, *versions, "all operations", reason)


def _check_operation(wanted: str, documents: Iterable[Description]) -> None:
    known = {
        f"{one.method} {path}": None
        for description in documents
        for one in description.operations
        for path in (one.path, one.path.removeprefix(one.base))
    }
    if not any(_is_about(one, wanted) for one in known):
        raise VerifyError(f"no operation is called '{wanted}'; {suggest(wanted, known)}")


def _is_about(operation: str, wanted: str | None) -> bool:
    """Return whether a result is about the wanted operation; parameters may have other names."""
    if wanted is None:
        return True
    method, _, path = shape(wanted).partition(" ")
    first, _, other = shape(operation).partition(" -> ")
    found, _, own = first.partition(" ")
    moved, _, there = other.rpartition(" ")
    sides = ((found, own), (moved or found, there))
    return any(each == method.upper() and one.endswith(path) for each, one in sides)


def _proven(claim: Claim, source: str, prover: Prover) -> ClaimProof | Unproved:
    try:
        with interrupted_at(prover.end):
            return prover.prove(claim)
    except OutOfTimeError:
        reason = Unchecked.TIME.reason
    except NoExamplesError as error:
        reason = Unchecked.CONTRADICTION.reason.format(source, error)
    except ValueError as error:
        reason = f"{source}: {error}"
    about = claim.api, claim.client, claim.service, claim.operation
    return Unproved("untested", *about, reason, claim.status, claim.part)


def _pairs(snapshot: Snapshot, options: VerifyOptions) -> Iterator[_VersionPair]:
    known: Mapping[str, Api] = {api.name: api for api in snapshot.apis}
    if options.api is not None and options.api not in known:
        raise VerifyError(f"no API is called '{options.api}'; {suggest(options.api, known)}")
    for api in snapshot.apis if options.api is None else (known[options.api],):
        if options.between is not None:
            if options.between[0] in api.versions or options.api is not None:
                yield from _between(api, options.between)
            continue
        for client, service in dict.fromkeys(_ends(api)):
            yield _VersionPair(api, client, service)


def _ends(api: Api) -> Iterator[tuple[Version, Version]]:
    # If a version is retired, the newer version's service serves its clients.
    for older, (link, *_) in api.links.items():
        newer = link.newer
        yield older, newer
        # A version without a document is skipped, so the conversions to it and from it are tested
        # together.
        while newer not in api.schemas and newer in api.links:
            newer = api.links[newer][0].newer
        if older in api.schemas and newer in api.schemas:
            yield older, newer
    for version, served in api.served.items():
        if served < version or _far(api, version, served):
            yield version, served


def _far(api: Api, version: Version, served: Version) -> bool:
    ascending = list(api.versions.values())
    return ascending.index(served) - ascending.index(version) > 1


def _between(api: Api, labels: tuple[str, str]) -> Iterator[_VersionPair]:
    for label in labels:
        if label not in api.versions:
            raise VerifyError(
                f"{api.name}: no version is called '{label}'; {suggest(label, api.versions)}"
            )
    older, newer = sorted(api.versions[label] for label in labels)
    if older == newer:
        raise VerifyError(
            f"{api.name}: {older} and {newer} are the same version; name two different versions"
        )
    between = [version for version in api.versions.values() if older <= version < newer]
    if any(version not in api.links for version in between):
        raise VerifyError(f"{api.name}: no conversions lead from {older} to {newer}; declare them")
    yield _VersionPair(api, older, newer)


def _locations(pairs: list[_VersionPair]) -> list[str]:
    lacking = [pair.undocumented for pair in pairs]
    if lacking[0] is not None and all(lacking):
        raise VerifyError(f"{lacking[0].api}: {lacking[0].reason}")
    return [
        pair.api.schemas[version]
        for pair, without in zip(pairs, lacking, strict=True)
        for version in (pair.client, pair.service)
        if without is None
    ]
