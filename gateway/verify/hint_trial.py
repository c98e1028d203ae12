"""Trials of hints: a hint is shown only if `check` accepts the rules with that change in them."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

from pydantic import ValidationError

from gateway.config.conversions.clashes import find_clashes
from gateway.config.conversions.conversion_section import ConversionConfig
from gateway.config.conversions.links import build_link
from gateway.config.conversions.part import Part, parts_of
from gateway.config.root import Config
from gateway.config.text.mistakes import ConfigError, Mistakes
from gateway.config.text.source import read
from gateway.core.snapshot import Api, Snapshot
from gateway.core.versions.version import Version
from gateway.verify.checks.field_check import (
    DocumentFolder,
    described_versions,
)
from gateway.verify.claim import Claim, MessagePart
from gateway.verify.hint import hints
from gateway.verify.proof import Finding

_KEYS = {MessagePart.QUERY: "query", MessagePart.HEADERS: "headers"}
# What a hint leaves to the operator, and what is tried in its place.
_PLACEHOLDERS = {"{ ... }": "{ newer: older }", "...": "x"}


class HintTrial:
    """Tries the hints for findings in the rules of one file.

    Args:
        path: of gateway.yaml, which `check` accepts as it is.
        environment: the values of its variables.
        snapshot: what is in the file.
    """

    def __init__(self, path: Path, environment: Mapping[str, str], snapshot: Snapshot) -> None:
        rules = read(path.read_bytes(), str(path), environment).data
        config = Config.model_validate_json(json.dumps(rules))
        documents = DocumentFolder(path.absolute().parent)

        @cache
        def trial(name: str) -> _ApiTrial:
            api = next(api for api in snapshot.apis if api.name == name)
            return _ApiTrial(config, api, documents)

        self._trial = trial

    def hint(self, claim: Claim, finding: Finding) -> str | None:
        """Return the hint for a finding; None where there is none that `check` accepts."""
        key = _KEYS.get(claim.part, "changes")
        older, newer = sorted((claim.client, claim.service))
        accepts = self._trial(claim.api).accepts
        found = hints(claim, finding)
        return next((change for change in found if accepts(older, newer, key, change)), None)


class _ApiTrial:
    """Tries changes in the conversions of one API.

    What is there already is built and looked up once: rules of many operations have much of it.
    """

    def __init__(self, config: Config, api: Api, documents: DocumentFolder) -> None:
        section = config.apis[api.name]
        self._api = api
        self._parts = parts_of(api, section.conversions, section.groups)
        self._described = described_versions(api, documents, Mistakes())
        self._known = cache(lambda older, newer: self._texts(older, newer, self._parts))
        # Operations share schemas, so that the same hint comes for many of them.
        self.accepts = cache(self._accepts)

    def _accepts(self, older: Version, newer: Version, key: str, change: str) -> bool:
        """Whether `check` accepts a change between any two neighbours on the way."""
        text = change
        for placeholder, value in _PLACEHOLDERS.items():
            text = text.replace(placeholder, value)
        try:
            made = read(text.encode(), "hint", {}).data
        except ConfigError:
            return False
        ladder = list(self._api.versions.values())
        between = ladder[ladder.index(older) : ladder.index(newer) + 1]
        return any(self._is_accepted(low, high, {key: [made]}) for low, high in pairwise(between))

    def _is_accepted(self, older: Version, newer: Version, entry: Mapping[str, object]) -> bool:
        given = json.dumps({"between": [str(older), str(newer)], **entry})
        mistakes = Mistakes()
        try:
            config = ConversionConfig.model_validate_json(given)
        except ValidationError:
            return False
        at = ("apis", self._api.name, "conversions", len(self._parts))
        part = Part(config, at, build_link(config, older, newer, at, mistakes))
        others = [other for other in self._parts if other.link.older == older]
        # Before the changes that are there, a change finds the fields of the older version; after
        # them, those of the newer one.
        for before, after in (((), others), (others, ())):
            met = Mistakes()
            find_clashes(part, before, met)
            for other in after:
                find_clashes(other, [part], met)
            if not (mistakes.found or met.found) and (
                self._texts(older, newer, [*before, part, *after]) <= self._known(older, newer)
            ):
                return True
        return False

    def _texts(self, older: Version, newer: Version, parts: Sequence[Part]) -> frozenset[str]:
        """Return what `check` reports of the fields that parts between two versions name."""
        fields = Mistakes()
        if older in self._described:
            self._described[older].look_up(parts, fields, {}, upwards=True)
        if newer in self._described:
            self._described[newer].look_up(parts, fields, {}, upwards=False)
        return frozenset(one.text for one in (*fields.found, *fields.warnings))
