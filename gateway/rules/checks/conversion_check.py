"""What `check` finds in conversions beyond the rules: fields that no document has, and examples."""

import json
from collections.abc import Mapping
from pathlib import Path

from gateway.base.mistakes import ConfigError, Issue, Mistakes
from gateway.routing.snapshot import Snapshot
from gateway.rules.checks.example_check import prove_examples
from gateway.rules.checks.field_check import DocumentFolder, look_up_fields
from gateway.rules.root import Config
from gateway.rules.source import read


def check_conversions(
    path: Path, environment: Mapping[str, str], snapshot: Snapshot
) -> list[Issue]:
    """Return warnings about the conversions of a file; documents at URLs are not asked for.

    Args:
        path: of gateway.yaml.
        environment: the values of its variables.
        snapshot: the rules in it.

    Raises:
        ConfigError: a change names a field that the document forbids, or an example is converted
            to another body.
    """
    rules = read(path.read_bytes(), str(path), environment)
    config = Config.model_validate_json(json.dumps(rules.data))
    mistakes, documents = Mistakes(), DocumentFolder(path.absolute().parent)
    look_up_fields(config, snapshot.apis, documents, mistakes)
    _warn_of_large(snapshot, documents, mistakes)
    prove_examples(config, snapshot.apis, mistakes)
    if mistakes.found:
        issues = [rules.issue(mistake.location, mistake.text) for mistake in mistakes.found]
        raise ConfigError(str(path), issues)
    return [rules.issue(warning.location, warning.text) for warning in mistakes.warnings]


def _warn_of_large(snapshot: Snapshot, documents: DocumentFolder, mistakes: Mistakes) -> None:
    """Warn of documents by which a gateway would validate live messages if they were smaller."""
    for api in snapshot.apis:
        used = set()
        for version in api.versions.values():
            for route in snapshot.routes((api.name, str(version))):
                used.add(None if route.check is None else route.check.schema)
                used.add(None if route.shadow is None else route.shadow.rule.document)
        for version, location in api.schemas.items():
            if location in used and location in documents.too_large:
                at = ("apis", api.name, "versions", str(version), "schema")
                mistakes.warn(f"warning: {documents.too_large[location]}", *at)
