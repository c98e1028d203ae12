"""A version of an API: what clients name and what the gateway orders."""

import re
from collections.abc import Mapping
from datetime import date
from enum import StrEnum
from typing import Any, NamedTuple

# Strict on purpose: lenient readers have taken `foo1` for 1, and `1.0`, `01` or an Arabic-Indic
# digit for it too. Nine digits keep int() cheap whatever a client sends.
NUMBER = r"(?:0|[1-9][0-9]{0,8})"
_INTEGER = re.compile(rf"{NUMBER}\Z", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z", re.ASCII)
# An identifier of digits alone is a number, so that it has no leading zero (section 9).
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
    """A part of a pre-release: a number comes before every text (Semantic Versioning, 11.4)."""

    is_text: bool
    number: int
    text: str

    def __str__(self) -> str:
        return self.text if self.is_text else str(self.number)


class Semantic(NamedTuple):
    """A semantic version (semver.org, 2.0.0), whose fields in their order are its precedence.

    Build metadata is no part of it: it does not count in the order, so that two versions which
    differ in nothing else could not be distinguished.
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
    """One version of an API, ordered as numbers and not as texts.

    An API may have changed its format: whole numbers come before semantic versions, and both before
    dates.
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
    """Return the version that `raw` spells canonically, or None when it is malformed.

    Args:
        raw: the text a client or an operator wrote, optional white space already removed.
        formats: the formats of the API's versions; without any, whole numbers.
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
    # date.fromisoformat takes the week dates and the basic form of ISO 8601 as well.
    if not _DATE.match(raw):
        return None
    try:
        return Version(date.fromisoformat(raw))
    except ValueError:
        return None
