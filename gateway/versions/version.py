"""Versions of an API: labels, their formats, and their order."""

import re
from datetime import date
from enum import StrEnum
from typing import NamedTuple

LABEL = r"[A-Za-z0-9._~-]{1,64}"
"""The pattern of a label. Its characters need no escape in a URI (RFC 3986, section 2.3)."""
# Strict: lenient parsers read `foo1`, `1.0`, `01` or an Arabic-Indic digit as 1. The limit of nine
# digits keeps int() cheap.
NUMBER = r"(?:0|[1-9][0-9]{0,8})"
_INTEGER = re.compile(rf"{NUMBER}\Z", re.ASCII)
_DATE = re.compile(
    r"([0-9]{4}-[0-9]{2})(-[0-9]{2})?(?:([.-])[A-Za-z][0-9A-Za-z._~-]*)?\Z", re.ASCII
)
# A numeric identifier has no leading zeros (section 9).
_IDENTIFIER = rf"(?:{NUMBER}(?![0-9A-Za-z-])|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_SEMANTIC = re.compile(
    rf"({NUMBER})\.({NUMBER})(?:\.({NUMBER})(?:-({_IDENTIFIER}(?:\.{_IDENTIFIER})*))?)?\Z",
    re.ASCII,
)
_LONGEST = 64


class Version(NamedTuple):
    """A version of an API. Versions are ordered by their rank.

    Attributes:
        rank: the position in `versions` of gateway.yaml, from 1 for the oldest version.
    """

    rank: int
    label: str

    def __str__(self) -> str:
        return self.label


class Format(StrEnum):
    INTEGER = "integer"
    SEMANTIC = "semantic"
    DATE = "date"


_PreReleasePart = tuple[bool, int, str]
"""A part of a pre-release: whether it is a string, and its number or string. Numbers sort before
strings (Semantic Versioning, section 11.4)."""


class Semantic(NamedTuple):
    """A semantic version (semver.org, 2.0.0), whose fields are in the order of precedence.

    Build metadata is not supported: it does not affect precedence, so two different versions could
    have the same position in the order. A missing patch number, as in `1.4`, is 0.
    """

    major: int
    minor: int
    patch: int
    is_release: bool = True
    pre: tuple[_PreReleasePart, ...] = ()


class Parsed(NamedTuple):
    """A label in one of the formats.

    Attributes:
        is_release: whether the label names a release, not a pre-release such as `1.4.0-rc.1` or
            `2026-01-31-preview`.
    """

    number: int | Semantic | date
    is_release: bool = True


def parse(raw: str, *formats: Format) -> Parsed | None:
    """Return a label in the first of the formats that fits; None if no format fits."""
    for written in formats:
        if written is Format.INTEGER:
            found = Parsed(int(raw)) if _INTEGER.match(raw) else None
        else:
            found = _semantic(raw) if written is Format.SEMANTIC else _date(raw)
        if found is not None:
            return found
    return None


def _semantic(raw: str) -> Parsed | None:
    match = _SEMANTIC.match(raw) if len(raw) <= _LONGEST else None
    if match is None:
        return None
    major, minor, patch = (int(part or 0) for part in match.group(1, 2, 3))
    if match[4] is None:
        return Parsed(Semantic(major, minor, patch))
    pre = tuple(
        (False, int(part), "") if part.isdigit() else (True, 0, part)
        for part in match[4].split(".")
    )
    return Parsed(Semantic(major, minor, patch, is_release=False, pre=pre), is_release=False)


def _date(raw: str) -> Parsed | None:
    # date.fromisoformat also accepts week dates and the basic format of ISO 8601.
    match = _DATE.match(raw) if len(raw) <= _LONGEST else None
    if match is None:
        return None
    try:
        return Parsed(date.fromisoformat(match[1] + (match[2] or "-01")), match[3] != "-")
    except ValueError:
        return None
