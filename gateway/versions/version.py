"""Versions of an API: formats, parsing and order."""

import re
from collections.abc import Mapping
from datetime import date
from enum import StrEnum
from typing import Any, NamedTuple

# Strict: lenient parsers read `foo1`, `1.0`, `01` or an Arabic-Indic digit as 1. The limit of nine
# digits keeps int() cheap.
NUMBER = r"(?:0|[1-9][0-9]{0,8})"
_INTEGER = re.compile(rf"{NUMBER}\Z", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z", re.ASCII)
# A numeric identifier has no leading zeros (section 9).
_IDENTIFIER = rf"(?:{NUMBER}(?![0-9A-Za-z-])|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_SEMANTIC = re.compile(
    rf"({NUMBER})\.({NUMBER})\.({NUMBER})(?:-({_IDENTIFIER}(?:\.{_IDENTIFIER})*))?\Z", re.ASCII
)
_LONGEST = 64


class Format(StrEnum):
    INTEGER = "integer"
    SEMANTIC = "semantic"
    DATE = "date"


class Identifier(NamedTuple):
    """A part of a pre-release. Numbers sort before strings (Semantic Versioning, section 11.4)."""

    is_text: bool
    number: int
    text: str

    def __str__(self) -> str:
        return self.text if self.is_text else str(self.number)


class Semantic(NamedTuple):
    """A semantic version (semver.org, 2.0.0), whose fields are in the order of precedence.

    Build metadata is not supported: it does not affect precedence, so two different versions could
    have the same position in the order.
    """

    major: int
    minor: int
    patch: int
    is_release: bool = True
    pre: tuple[Identifier, ...] = ()

    def __str__(self) -> str:
        core = f"{self.major}.{self.minor}.{self.patch}"
        return core if self.is_release else f"{core}-{'.'.join(map(str, self.pre))}"


class Version(NamedTuple):
    """A version of an API.

    If an API has several formats, integers sort first, then semantic versions, then dates.
    """

    value: int | Semantic | date

    def __str__(self) -> str:
        return str(self.value)

    @property
    def written(self) -> Format:
        return _FORMATS[type(self.value)]

    def __lt__(self, other: tuple[object, ...]) -> bool:
        return _order(self) < _order(other)

    def __le__(self, other: tuple[object, ...]) -> bool:
        return _order(self) <= _order(other)

    def __gt__(self, other: tuple[object, ...]) -> bool:
        return _order(self) > _order(other)

    def __ge__(self, other: tuple[object, ...]) -> bool:
        return _order(self) >= _order(other)


_FORMATS: Mapping[type, Format] = {
    int: Format.INTEGER,
    Semantic: Format.SEMANTIC,
    date: Format.DATE,
}
_RANKS = {kind: rank for rank, kind in enumerate(_FORMATS)}


def _order(version: tuple[Any, ...]) -> tuple[int, Any]:
    (value,) = version
    return _RANKS[type(value)], value


def parse(raw: str, *formats: Format) -> Version | None:
    """Return the version that a string names; None unless the string is its canonical form.

    Args:
        raw: a string without surrounding white space.
        formats: the formats of the API's versions; the default is integers.
    """
    for written in formats or (Format.INTEGER,):
        if written is Format.INTEGER:
            version = Version(int(raw)) if _INTEGER.match(raw) else None
        else:
            version = _semantic(raw) if written is Format.SEMANTIC else _date(raw)
        if version is not None:
            return version
    return None


def _semantic(raw: str) -> Version | None:
    match = _SEMANTIC.match(raw) if len(raw) <= _LONGEST else None
    if match is None:
        return None
    major, minor, patch = map(int, match.group(1, 2, 3))
    if match[4] is None:
        return Version(Semantic(major, minor, patch))
    pre = tuple(
        Identifier(False, int(part), "") if part.isdigit() else Identifier(True, 0, part)
        for part in match[4].split(".")
    )
    return Version(Semantic(major, minor, patch, is_release=False, pre=pre))


def _date(raw: str) -> Version | None:
    # date.fromisoformat also accepts week dates and the basic format of ISO 8601.
    if not _DATE.match(raw):
        return None
    try:
        return Version(date.fromisoformat(raw))
    except ValueError:
        return None
