"""Trials of hints: a hint is shown only if `check` accepts the rules with that change in them."""

import json
import time
from collections.abc import Mapping
from copy import deepcopy
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gateway.config.build import build
from gateway.config.root import Config
from gateway.config.text.mistakes import ConfigError, Mistakes
from gateway.config.text.source import read
from gateway.verify.checks.field_check import DocumentFolder, look_up_fields
from gateway.verify.claim import Claim, MessagePart
from gateway.verify.hint import hint
from gateway.verify.proof import Finding

_KEYS = {MessagePart.QUERY: "query", MessagePart.HEADERS: "headers"}
# What a hint leaves to the operator, and what is tried in its place.
_PLACEHOLDERS = {"{ ... }": "{ newer: older }", "...": "x"}


class HintTrial:
    """Tries the hints for findings in the rules of one file.

    Args:
        path: of gateway.yaml, which `check` accepts as it is.
        environment: the values of its variables.
    """

    def __init__(self, path: Path, environment: Mapping[str, str]) -> None:
        self._folder = path.absolute().parent
        self._documents = DocumentFolder(self._folder)
        self._rules: Any = read(path.read_bytes(), str(path), environment).data
        self._before: frozenset[str] = self._texts(self._rules) or frozenset()
        # Operations share schemas, so that the same hint comes for many of them.
        self._accepts = lru_cache(maxsize=1024)(self._accepted)

    def hint(self, claim: Claim, finding: Finding) -> str | None:
        """Return the hint for a finding; None where there is none that `check` accepts."""
        change = hint(claim, finding)
        if change is None:
            return None
        older, newer = sorted((claim.client, claim.service))
        key = _KEYS.get(claim.part, "changes")
        return change if self._accepts(claim.api, str(older), str(newer), key, change) else None

    def _accepted(self, api: str, older: str, newer: str, key: str, change: str) -> bool:
        text = change
        for placeholder, value in _PLACEHOLDERS.items():
            text = text.replace(placeholder, value)
        try:
            made = read(text.encode(), "hint", {}).data
        except ConfigError:
            return False
        rules = deepcopy(self._rules)
        conversions: list[Any] = rules["apis"][api]["conversions"]
        labels = list(rules["apis"][api]["versions"])
        between = labels[labels.index(older) : labels.index(newer) + 1]
        for pair in pairwise(between):
            # Before the changes that are there, a change finds the fields of the older version;
            # after them, those of the newer one.
            for place in (0, len(conversions)):
                conversions.insert(place, {"between": pair, key: [made]})
                found = self._texts(rules)
                if found is not None and found <= self._before:
                    return True
                conversions.pop(place)
        return False

    def _texts(self, rules: object) -> frozenset[str] | None:
        """Return what `check` reports of fields in documents; None if it refuses the rules."""
        mistakes, fields = Mistakes(), Mistakes()
        try:
            config = Config.model_validate_json(json.dumps(rules))
        except ValidationError:
            return None
        snapshot = build(config, mistakes, time.time(), self._folder, {})
        if mistakes.found:
            return None
        look_up_fields(config, snapshot.apis, self._documents, fields)
        return frozenset(one.text for one in (*fields.found, *fields.warnings))
