"""Verify: every claim that the rules make, proven or not."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.config.text.mistakes import suggest
from gateway.core.snapshot import Api, Snapshot
from gateway.core.versions.version import Version
from gateway.verify.claim import Body, Claim, Gap, Side, Unchecked, claims
from gateway.verify.openapi.document_source import fetch
from gateway.verify.openapi.examples import NoExamplesError
from gateway.verify.openapi.openapi import DocumentError
from gateway.verify.proof import Proof, prove


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be verified.

    Attributes:
        api: only this one; None for every one with conversions.
        between: only the way between these two versions, by label; None for every conversion.
        examples: how many for each claim.
        seed: where the generator starts; the same one gives the same examples.
    """

    api: str | None = None
    between: tuple[str, str] | None = None
    examples: int = 100
    seed: int = 0


@dataclass(frozen=True, slots=True)
class VersionPair:
    """A service of one version answers clients of another."""

    api: Api
    client: Version
    service: Version


class UnanswerableError(Exception):
    """A question that the rules give no answer to; the text says why, and what would be right."""


def verify(
    snapshot: Snapshot, folder: Path, question: Question
) -> Iterator[Proof | Gap | Unchecked]:
    """Yield what is found of every claim, one by one.

    Args:
        snapshot: the rules.
        folder: what paths of documents in the rules start from.
        question: what is to be verified.

    Raises:
        UnanswerableError: nothing in the rules is what the question asks for.
        DocumentError: a document cannot be had, or used.
    """
    if question.examples < 1:
        raise UnanswerableError(f"{question.examples} examples prove nothing; ask for 1 or more")
    ways = list(_ways(snapshot, question))
    if not ways and question.between is not None:
        raise UnanswerableError(
            f"no API has versions {' and '.join(question.between)}; name two of one"
        )
    if not ways:
        raise UnanswerableError("no API here has conversions; there is nothing to verify")
    documents = asyncio.run(fetch(_locations(ways), folder))
    for way in ways:
        client, service = (
            Side(version, documents[way.api.schemas[version]])
            for version in (way.client, way.service)
        )
        found = list(claims(way.api, client, service))
        if not found:
            raise UnanswerableError(
                f"{way.api.name}: {client.description.source} has none of the operations that its"
                " endpoints lead to; are upstream_path and servers right?"
            )
        for claim in found:
            if isinstance(claim, Claim):
                sender = client if claim.body is not Body.RESPONSE else service
                yield _proven(claim, sender.description.source, question)
            else:
                yield claim


def _proven(claim: Claim, source: str, question: Question) -> Proof:
    body = f"{claim.body.value} {claim.status}".rstrip()
    try:
        return prove(claim, question.examples, question.seed)
    except NoExamplesError as error:
        raise DocumentError(
            f"{source}: {claim.operation}: its {body} allows nothing that could be generated"
            f" ({error}); does the schema contradict itself?"
        ) from None
    except ValueError as error:
        raise DocumentError(f"{source}: {claim.operation}: its {body}: {error}") from None


def _ways(snapshot: Snapshot, question: Question) -> Iterator[VersionPair]:
    known: Mapping[str, Api] = {api.name: api for api in snapshot.apis}
    if question.api is not None and question.api not in known:
        raise UnanswerableError(
            f"no API is called '{question.api}'; {suggest(question.api, known)}"
        )
    for api in snapshot.apis if question.api is None else (known[question.api],):
        if question.between is not None:
            if question.between[0] in api.versions or question.api is not None:
                yield from _between(api, question.between)
            continue
        # Whoever retires versions serves the older clients from the newer service.
        for older, (link, *_) in api.links.items():
            yield VersionPair(api, older, link.newer)
        for version, served in api.served.items():
            if served < version or _far(api, version, served):
                yield VersionPair(api, version, served)


def _far(api: Api, version: Version, served: Version) -> bool:
    ladder = list(api.versions.values())
    return ladder.index(served) - ladder.index(version) > 1


def _between(api: Api, labels: tuple[str, str]) -> Iterator[VersionPair]:
    for label in labels:
        if label not in api.versions:
            raise UnanswerableError(
                f"{api.name}: no version is called '{label}'; {suggest(label, api.versions)}"
            )
    older, newer = sorted(api.versions[label] for label in labels)
    if older == newer:
        raise UnanswerableError(f"{api.name}: {older} and {newer} are one version; name two")
    between = [version for version in api.versions.values() if older <= version < newer]
    if any(version not in api.links for version in between):
        raise UnanswerableError(
            f"{api.name}: no conversions lead from {older} to {newer}; declare them"
        )
    yield VersionPair(api, older, newer)


def _locations(ways: list[VersionPair]) -> list[str]:
    locations = []
    for way in ways:
        for version in (way.client, way.service):
            if version not in way.api.schemas:
                raise UnanswerableError(
                    f"{way.api.name}: version {version} has no OpenAPI document; name one:"
                    f' "{version}": {{ ..., schema: FILE or URL }}'
                )
            locations.append(way.api.schemas[version])
    return locations
