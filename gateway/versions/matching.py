"""Matching: find the version that a range, an alias or an unknown version refers to."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from types import MappingProxyType
from typing import Any

from gateway.versions.version import LABEL, NUMBER, Format, Parsed, Semantic, Version, parse

# `1.2.0+`, `1.2+` or `1+`; `1.2.x` or `1.x`.
_ONWARDS = re.compile(rf"({NUMBER})(?:\.({NUMBER}))?(?:\.({NUMBER}))?\+\Z", re.ASCII)
_WITHIN = re.compile(rf"({NUMBER})(?:\.({NUMBER}))?\.x\Z", re.ASCII)

_LABEL = re.compile(rf"{LABEL}\Z", re.ASCII)

Number = int | Semantic | date
Range = tuple[Number, Number | None]
"""The first number in the range and the first number above it. The second is None if the range
has no upper end."""


@dataclass(frozen=True, slots=True)
class Matching:
    """The rules by which a string that is not a label names a version.

    A semantic version never matches another major version, since the two may be incompatible. A
    pre-release matches only by its label or an alias.

    Attributes:
        ascending: all versions of the API, the oldest first.
        formats: the formats of their labels; empty if labels are free.
        nearest_lower: whether an unknown version names the newest version below it.
        ranges: whether ranges are valid: `1.2+` names the newest version from 1.2 on, `1.x` the
            newest version that begins with 1.
        own: the versions from which ranges select; None for all versions.
    """

    ascending: tuple[Version, ...] = ()
    formats: tuple[Format, ...] = (Format.INTEGER,)
    nearest_lower: bool = False
    ranges: bool = False
    aliases: Mapping[str, Version] = field(default_factory=lambda: MappingProxyType({}))
    own: tuple[Version, ...] | None = None
    parsed: Mapping[Version, Parsed] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found = {one: parse(one.label, *self.formats) for one in self.ascending}
        parsed = {one: label for one, label in found.items() if label is not None}
        object.__setattr__(self, "parsed", parsed)

    @property
    def is_exact(self) -> bool:
        return not self.nearest_lower and not self.ranges and not self.aliases

    def among(self, versions: Collection[Version]) -> "Matching":
        """Return the matching for an endpoint that has only some of the versions.

        A range selects only from the versions of the endpoint. Any other string names the same
        version at every endpoint: a client that requests version 4 does not get version 2 just
        because the endpoint lacks version 3.
        """
        return replace(self, own=tuple(each for each in self.ascending if each in versions))

    def find(self, raw: str) -> Version | None:
        if raw in self.aliases:
            return self.aliases[raw]
        number = {each: label.number for each, label in self.parsed.items()}
        if self.ranges and (asked := self._range(raw)) is not None:
            low, end = asked
            fits = [
                each
                for each in (self.ascending if self.own is None else self.own)
                if each in number
                and _is_upto(low, number[each])
                and (end is None or not _is_upto(end, number[each]))
            ]
        elif self.nearest_lower and (unknown := parse(raw, *self.formats)) is not None:
            fits = [
                each
                for each in self.ascending
                if each in number
                and _is_upto(number[each], unknown.number)
                and _major(number[each]) == _major(unknown.number)
            ]
        else:
            return None
        return self._newest(fits)

    def reads(self, raw: str) -> bool:
        if not self.formats:
            return _LABEL.match(raw) is not None
        return parse(raw, *self.formats) is not None or (
            self.ranges and self._range(raw) is not None
        )

    def forms(self, versions: Collection[Version]) -> str:
        """Return the valid forms besides labels, for messages; empty if only labels are valid."""
        text = ""
        if self.nearest_lower and self._newest(self.ascending) in versions:
            text += ", or a later one, which selects the newest before it"
        offered = [each for each in self.ascending if each in versions] if self.ranges else []
        newest = self._newest(offered)
        if newest is not None and self.find(f"{newest}+") == newest:  # must not select an ended one
            such = f"{newest}+"
            number = self.parsed[newest].number
            if isinstance(number, Semantic):
                such = f"{number.major}.x or {number.major}.{number.minor}+"
            text += f", or a range such as {such}"
        aliases = self.aliases and [one for one, of in self.aliases.items() if of in versions]
        if aliases:
            text += f", or {' or '.join(aliases)}"
        return text

    def _range(self, raw: str) -> Range | None:
        others = [each for each in self.formats if each is not Format.SEMANTIC]
        if others and raw.endswith("+") and (low := parse(raw[:-1], *others)) is not None:
            return low.number, None
        if Format.SEMANTIC not in self.formats:
            return None
        if match := _ONWARDS.match(raw):
            major, minor, patch = (int(part or 0) for part in match.groups())
            return Semantic(major, minor, patch), Semantic(major + 1, 0, 0)
        if match := _WITHIN.match(raw):
            major = int(match[1])
            if match[2] is None:
                return Semantic(major, 0, 0), Semantic(major + 1, 0, 0)
            minor = int(match[2])
            return Semantic(major, minor, 0), Semantic(major, minor + 1, 0)
        return None

    def _newest(self, ascending: Sequence[Version]) -> Version | None:
        for version in reversed(ascending):
            if version not in self.parsed or self.parsed[version].is_release:
                return version
        return None


def _is_upto(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one <= other)


def _major(number: Number) -> int | None:
    return number.major if isinstance(number, Semantic) else None


EXACT = Matching()
"""The default: only labels name versions, and labels are whole numbers."""
