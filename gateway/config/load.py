"""Load: from a file to a Snapshot, for the start, a reload, `check` and `explain` alike."""

import json
import time
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from gateway.config.build import build
from gateway.config.python_functions import look_in
from gateway.config.root import Config
from gateway.config.schema_files import check_documents
from gateway.config.text.mistakes import ConfigError, Issue, Mistakes
from gateway.config.text.source import read
from gateway.config.violation import explain
from gateway.core.snapshot import Snapshot


def load_file(path: Path, environment: Mapping[str, str]) -> Snapshot:
    """Return the Snapshot that a file describes.

    Raises:
        ConfigError: the file cannot be read or used; it has every mistake with its line.
    """
    return check_file(path, environment)[0]


def check_file(path: Path, environment: Mapping[str, str]) -> tuple[Snapshot, list[Issue]]:
    """Return the Snapshot that a file describes, and the warnings about it.

    Raises:
        ConfigError: the file cannot be read or used; it has every mistake with its line.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        issue = Issue(0, 0, "", f"cannot be read: {error.strerror}; is the path right?")
        raise ConfigError(str(path), [issue]) from None
    folder = path.absolute().parent
    look_in(folder)
    return check(content, str(path), environment, folder)


def load(
    content: bytes, source: str, environment: Mapping[str, str], folder: Path | None = None
) -> Snapshot:
    """Return the Snapshot that the content of a file describes.

    Args:
        content: the content of the file.
        source: the name of the file in reports.
        environment: the environment variables.
        folder: the folder that relative paths of files start from; without it, files are not
            checked.

    Raises:
        ConfigError: the content cannot be used; it has every mistake with its line.
    """
    return check(content, source, environment, folder)[0]


def check(
    content: bytes, source: str, environment: Mapping[str, str], folder: Path | None = None
) -> tuple[Snapshot, list[Issue]]:
    """Return the Snapshot as `load` does, and the warnings, such as of a lossy conversion."""
    document = read(content, source, environment)
    try:
        # Through JSON, so that strict models accept a list for a tuple, as the schema does.
        config = Config.model_validate_json(json.dumps(document.data))
    except ValidationError as error:
        raise ConfigError(source, explain(document, error)) from None
    mistakes = Mistakes()
    snapshot = build(config, mistakes, time.time(), folder or Path())
    if folder is not None:
        check_documents(snapshot.apis, folder, mistakes)
    if mistakes.found:
        issues = [document.issue(mistake.location, mistake.text) for mistake in mistakes.found]
        raise ConfigError(source, issues)
    warnings = (document.issue(warning.location, warning.text) for warning in mistakes.warnings)
    return snapshot, sorted(warnings, key=lambda issue: (issue.line, issue.column))
