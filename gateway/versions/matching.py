"""Matching: the version that a text other than a label names."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from gateway.versions.version import NUMBER, Format, Semantic, Version, parse

# `1.2+`, of which the last parts may be left out, and `1.x`.
_ONWARDS = re.compile(rf"({NUMBER})(?:\.({NUMBER}))?(?:\.({NUMBER}))?\+\Z", re.ASCII)
_WITHIN = re.compile(rf"({NUMBER})(?:\.({NUMBER}))?\.x\Z", re.ASCII)

Range = tuple[Version, Version | None]
"""The first version in it, and the first one behind it; None where it has no end."""


@dataclass(frozen=True, slots=True)
class Matching:
    """How a text that is not the label of a version can name one.

    A semantic version promises nothing beyond its major version, so another major version is never
    chosen. A pre-release is chosen only by its own label or an alias.

    Attributes:
        ladder: the versions of the API, the oldest first.
        own: the versions among which ranges select; None for all.
        nearest_lower: a version that the API lacks stands for the newest one before it.
        ranges: `1.2+` is the newest version from there on, `1.x` the newest that begins so.
        aliases: the versions that other names stand for, such as `latest`.
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
        """Return the matching at an endpoint that has only some of the versions.

        A range leaves the choice to the gateway, which selects among these. Every other text stands
        for one version, whether the endpoint has it or not: a client of version 4 never gets
        version 2 because the endpoint lacks version 3.
        """
        return replace(self, own=tuple(each for each in self.ladder if each in versions))

    def find(self, raw: str) -> Version | None:
        """Return the version that `raw` stands for, or None."""
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
        """Return whether `raw` has a form that names a version, whether the API has it or not."""
        return parse(raw, *self.formats) is not None or (
            self.ranges and self._range(raw) is not None
        )

    def forms(self, versions: Collection[Version]) -> str:
        """Return the forms, beside labels, that name offered versions; may be empty."""
        text = ""
        if self.nearest_lower and _newest(self.ladder) in versions:
            text += ", or a later one, which stands for the newest before it"
        offered = [each for each in self.ladder if each in versions] if self.ranges else []
        newest = _newest(offered) if offered else None
        if newest is not None and self.find(f"{newest}+") == newest:  # and not one that is over
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
"""Nothing but the labels themselves."""


def _compatible(one: Version, other: Version) -> bool:
    if not isinstance(one.value, Semantic) or not isinstance(other.value, Semantic):
        return one.written is other.written
    return one.value.major == other.value.major


def _newest(ladder: Sequence[Version]) -> Version | None:
    """Return the newest that is not a pre-release."""
    for version in reversed(ladder):
        if not isinstance(version.value, Semantic) or version.value.is_release:
            return version
    return None
