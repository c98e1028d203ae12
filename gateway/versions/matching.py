"""Matching: find the version that a range, an alias or an unknown version refers to."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from gateway.versions.version import NUMBER, Format, Semantic, Version, parse

# `1.2.0+`, `1.2+` or `1+`; `1.2.x` or `1.x`.
_ONWARDS = re.compile(rf"({NUMBER})(?:\.({NUMBER}))?(?:\.({NUMBER}))?\+\Z", re.ASCII)
_WITHIN = re.compile(rf"({NUMBER})(?:\.({NUMBER}))?\.x\Z", re.ASCII)

Range = tuple[Version, Version | None]
"""The first version in the range and the first version above it. The second is None if the range
has no upper end."""


@dataclass(frozen=True, slots=True)
class Matching:
    """How a string that is not a label names a version.

    A semantic version never matches another major version, since the two may be incompatible. A
    pre-release matches only by its label or an alias.

    Attributes:
        ladder: all versions of the API in ascending order.
        own: the versions from which ranges select; None for all versions.
        nearest_lower: whether an unknown version names the newest version below it.
        ranges: whether ranges are valid: `1.2+` names the newest version from 1.2 on, `1.x` the
            newest version that begins with 1.
        aliases: the versions by alias, such as `latest`.
    """

    ladder: tuple[Version, ...] = ()
    formats: tuple[Format, ...] = (Format.INTEGER,)
    nearest_lower: bool = False
    ranges: bool = False
    aliases: Mapping[str, Version] = field(default_factory=lambda: MappingProxyType({}))
    own: tuple[Version, ...] | None = None

    @property
    def is_exact(self) -> bool:
        return not self.nearest_lower and not self.ranges and not self.aliases

    def among(self, versions: Collection[Version]) -> "Matching":
        """Return the matching for an endpoint that has only some of the versions.

        A range selects only from the versions of the endpoint. Any other string names the same
        version at every endpoint: a client that requests version 4 does not get version 2 just
        because the endpoint lacks version 3.
        """
        return replace(self, own=tuple(each for each in self.ladder if each in versions))

    def find(self, raw: str) -> Version | None:
        """Return the version that a string names, or None."""
        if raw in self.aliases:
            return self.aliases[raw]
        if self.ranges and (asked := self._range(raw)) is not None:
            low, end = asked
            fits = [
                each
                for each in (self.ladder if self.own is None else self.own)
                if low <= each and (each < end if end else each.written is low.written)
            ]
        elif self.nearest_lower and (version := parse(raw, *self.formats)) is not None:
            fits = [each for each in self.ladder if each <= version and _compatible(each, version)]
        else:
            return None
        return _newest(fits)

    def reads(self, raw: str) -> bool:
        """Return whether a string has the form of a version or range, known or unknown."""
        return parse(raw, *self.formats) is not None or (
            self.ranges and self._range(raw) is not None
        )

    def forms(self, versions: Collection[Version]) -> str:
        """Return the valid forms besides labels, for messages; empty if only labels are valid."""
        text = ""
        if self.nearest_lower and _newest(self.ladder) in versions:
            text += ", or a later one, which selects the newest before it"
        offered = [each for each in self.ladder if each in versions] if self.ranges else []
        newest = _newest(offered) if offered else None
        if newest is not None and self.find(f"{newest}+") == newest:  # must not select an ended one
            such = f"{newest}+"
            if isinstance(newest.value, Semantic):
                such = f"{newest.value.major}.x or {newest.value.major}.{newest.value.minor}+"
            text += f", or a range such as {such}"
        aliases = self.aliases and [one for one, of in self.aliases.items() if of in versions]
        if aliases:
            text += f", or {' or '.join(aliases)}"
        return text

    def _range(self, raw: str) -> Range | None:
        others = [each for each in self.formats if each is not Format.SEMANTIC]
        if others and raw.endswith("+") and (low := parse(raw[:-1], *others)) is not None:
            return low, None
        if Format.SEMANTIC not in self.formats:
            return None
        if match := _ONWARDS.match(raw):
            major, minor, patch = (int(part or 0) for part in match.groups())
            return Version(Semantic(major, minor, patch)), Version(Semantic(major + 1, 0, 0))
        if match := _WITHIN.match(raw):
            major = int(match[1])
            if match[2] is None:
                return Version(Semantic(major, 0, 0)), Version(Semantic(major + 1, 0, 0))
            minor = int(match[2])
            return Version(Semantic(major, minor, 0)), Version(Semantic(major, minor + 1, 0))
        return None


EXACT = Matching()
"""Only labels name versions."""


def _compatible(one: Version, other: Version) -> bool:
    if not isinstance(one.value, Semantic) or not isinstance(other.value, Semantic):
        return one.written is other.written
    return one.value.major == other.value.major


def _newest(ladder: Sequence[Version]) -> Version | None:
    """Return the newest version that is not a pre-release."""
    for version in reversed(ladder):
        if not isinstance(version.value, Semantic) or version.value.is_release:
            return version
    return None
