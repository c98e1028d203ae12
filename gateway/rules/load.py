"""Functions that load a file into a Snapshot, at the start, at reloads and for commands."""

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from gateway.base.files import ConfigFiles, Stamp, read_regular
from gateway.base.mistakes import ConfigError, Issue, Mistakes, in_order
from gateway.http.certificates import outdated, validities
from gateway.routing.snapshot import Snapshot
from gateway.rules.document import (
    MappingNode,
    ScalarNode,
    SequenceNode,
    YamlDocument,
    YamlError,
    compose,
    read,
)
from gateway.rules.included import KEY, may_include, with_included
from gateway.rules.root import Config
from gateway.rules.violation import explain, with_written_numbers
from gateway.verify.schema_files import check_documents


def load_file(path: Path, environment: Mapping[str, str]) -> Snapshot:
    """Return the Snapshot of a file; a ConfigError has every mistake with its line."""
    return load(read_rules(path), str(path), environment, path.absolute().parent)


def check_file(path: Path, environment: Mapping[str, str]) -> tuple[Snapshot, list[Issue]]:
    return check(read_rules(path), str(path), environment, path.absolute().parent)


def read_rules(path: Path) -> bytes:
    """Return the content of a configuration file, with the files that it includes.

    Raises:
        ConfigError: a file cannot be read, is not a regular file, or is too large.
    """
    return read_files(path)[0]


def read_files(path: Path) -> tuple[bytes, dict[Path, Stamp]]:
    """Return the content as `read_rules` does, and the stamps of included files and folders."""
    try:
        content = read_regular(path)
    except OSError as error:
        text = f"cannot be read: {error.strerror}; is the path right?"
        raise ConfigError(str(path), [Issue(0, 0, "", text)]) from None
    if not may_include(content):
        return content, {}
    try:
        root = compose(content)
    except YamlError:
        return content, {}  # loading reports the mistake
    patterns = [
        [item.text for item in value.items if isinstance(item, ScalarNode)]
        for key, value in (root.pairs if isinstance(root, MappingNode) else ())
        if isinstance(key, ScalarNode) and key.text == KEY and isinstance(value, SequenceNode)
    ]
    return with_included(path, content, [one for some in patterns for one in some])


def load(
    content: bytes,
    source: str,
    environment: Mapping[str, str],
    folder: Path | None = None,
    *,
    documents: bool = True,
    files: Mapping[str, bytes] | None = None,
) -> Snapshot:
    """Return the Snapshot of a file's content. `files` replace files on the disk.

    Args:
        folder: the folder to which paths are relative; without it, files are not checked.

    Raises:
        ConfigError: the content cannot be used. The error has every mistake with its line.
    """
    return _compile(content, source, environment, folder, documents=documents, given=files)[0]


def check(
    content: bytes, source: str, environment: Mapping[str, str], folder: Path | None = None
) -> tuple[Snapshot, list[Issue]]:
    snapshot, document, mistakes = _compile(content, source, environment, folder)
    warnings = [document.issue(warning.location, warning.text) for warning in mistakes.warnings]
    for name, reason in outdated(snapshot.files, validities(snapshot.files)):
        warnings.append(Issue(0, 0, name, f"warning: {reason}"))
    return snapshot, in_order(warnings)


def validated(document: YamlDocument) -> Config:
    """Return the configuration in a document. Raises ValidationError."""
    # Validated as JSON, so that strict models accept a list in place of a tuple.
    try:
        return Config.model_validate_json(json.dumps(document.data))
    except ValidationError as error:
        data = with_written_numbers(document, error)
        if data is document.data:
            raise
    return Config.model_validate_json(json.dumps(data))


def _compile(
    content: bytes,
    source: str,
    environment: Mapping[str, str],
    folder: Path | None,
    *,
    documents: bool = True,
    given: Mapping[str, bytes] | None = None,
) -> tuple[Snapshot, YamlDocument, Mistakes]:
    if folder is not None and str(folder) not in sys.path:
        sys.path.append(str(folder))  # the functions of `python` may be in this folder
    document = read(content, source, environment)
    try:
        config = validated(document)
    except ValidationError as error:
        raise ConfigError(source, explain(document, error)) from None
    mistakes = Mistakes()
    files = ConfigFiles(folder or Path(), given)
    snapshot = config.compile(mistakes, time.time(), files, environment)
    if folder is not None and documents:
        check_documents(snapshot.apis, folder, mistakes)
        if not mistakes.found and any(api.documents for api in snapshot.apis):
            # Imported here, since most gateways never read a document.
            from gateway.verify.document_loading import load_documents

            load_documents(snapshot, folder, mistakes)
    if mistakes.found:
        issues = [document.issue(mistake.location, mistake.text) for mistake in mistakes.found]
        raise ConfigError(source, issues, files.stamps)
    return snapshot, document, mistakes
