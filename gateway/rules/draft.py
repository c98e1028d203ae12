"""Draft: rules that somebody considers, checked as the file would be, without any effect.

A draft may come from whoever can see the page, so it runs no code: the functions that it names have
to be named by the rules in force, whose modules are imported already.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from gateway.base.mistakes import ConfigError, Issue, Location
from gateway.rules.load import check
from gateway.rules.source import Data, read

SOURCE = "draft"
MAX_BYTES = 256 * 1024
"""The size of the largest draft; a larger file is for the command `check`."""


class DraftReport(NamedTuple):
    """What was found in a draft.

    Attributes:
        mistakes: what keeps it from being used; empty if it can be.
        warnings: what is worth a look, such as a lossy conversion.
        summary: what it has, in a few words; empty if it cannot be used.
    """

    mistakes: list[Issue]
    warnings: list[Issue]
    summary: str = ""


def check_draft(
    content: bytes, in_force: bytes, environment: Mapping[str, str], folder: Path
) -> DraftReport:
    """Return what is wrong with a draft.

    Args:
        content: the text of the draft.
        in_force: the text of the rules in force.
        environment: the environment variables.
        folder: the folder that relative paths of files start from.
    """
    if len(content) > MAX_BYTES:
        text = f"is larger than {MAX_BYTES // 1024} KiB; check the file with the command `check`"
        return DraftReport([Issue(0, 0, "", text)], [])
    try:
        document = read(content, SOURCE, environment)
        known = {name for _, name in _functions(read(in_force, SOURCE, environment).data, ())}
        unknown = [
            document.issue(
                at,
                f"'{name}' is no function that the rules in force name, and a draft runs no other;"
                " check the file with the command `check`",
            )
            for at, name in _functions(document.data, ())
            if name not in known
        ]
        if unknown:
            return DraftReport(unknown, [])
        rules, warnings = check(content, SOURCE, environment, folder)
    except ConfigError as error:
        return DraftReport([*error.issues], [])
    return DraftReport([], warnings, rules.summary)


def _functions(data: Data, at: Location) -> Iterator[tuple[Location, str]]:
    """Yield the names of functions, as `python_section.py` has them, each with its place."""
    if isinstance(data, dict):
        for key, value in data.items():
            if at[-1:] == ("python",) and key in ("up", "down") and isinstance(value, str):
                yield (*at, key), value
            else:
                yield from _functions(value, (*at, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _functions(value, (*at, index))
