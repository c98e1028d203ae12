"""Matching: which version on offer a text stands for that spells none of them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.core.versions.version import NUMBER, Format, Semantic, Version, parse

# From a semantic version on, whose last parts may be left out; and within one of its first parts.
_ONWARDS = re.compile(rf"({NUMBER})(?:\.({NUMBER}))?(?:\.({NUMBER}))?\+\Z", re.ASCII)
_WITHIN = re.compile(rf"({NUMBER})(?:\.({NUMBER}))?\.x\Z", re.ASCII)

Range = tuple[Version, Version | None]
"""The first version that is in it, and the first that is no longer; None where it has no end."""


@dataclass(frozen=True, slots=True)
class Matching:
    """How a text that is not the label of a version may name one all the same.

    A semantic version promises nothing beyond its major version, and a pre-release is for those
    who ask for it by name: the one is not left here, the other not handed out.

    Attributes:
        ladder: the versions on offer, the oldest first.
        written: their format.
        nearest_lower: a version that is not on offer stands for the newest one before it.
        ranges: `1.2+` is the newest version from there on, `1.x` the newest that begins so.
    """

    ladder: tuple[Version, ...] = ()
    written: Format = Format.INTEGER
    nearest_lower: bool = False
    ranges: bool = False

    @property
    def is_exact(self) -> bool:
        """Whether nothing but the labels themselves names a version."""
        return not self.nearest_lower and not self.ranges

    def find(self, raw: str) -> Version | None:
        """Return the version that `raw` stands for, or None."""
        if self.ranges and (asked := self._range(raw)) is not None:
            low, end = asked
            fits = [each for each in self.ladder if low <= each and (end is None or each < end)]
        elif self.nearest_lower and (version := parse(raw, self.written)) is not None:
            fits = [each for each in self.ladder if each <= version and _compatible(each, version)]
        else:
            return None
        return _newest(fits)

    def reads(self, raw: str) -> bool:
        """Whether `raw` has a form that names a version, on offer or not."""
        return parse(raw, self.written) is not None or (
            self.ranges and self._range(raw) is not None
        )

    @property
    def forms(self) -> str:
        """Say, for a person, what is understood beside the versions themselves; may be empty."""
        said = ""
        if self.nearest_lower:
            said += ", or a later one, which stands for the newest before it"
        newest = _newest(self.ladder)
        if self.ranges and newest is not None:
            such = f"{newest}+"
            if isinstance(newest.value, Semantic):
                such = f"{newest.value.major}.x or {newest.value.major}.{newest.value.minor}+"
            said += f", or a range such as {such}"
        return said

    def _range(self, raw: str) -> Range | None:
        if self.written is not Format.SEMANTIC:
            low = parse(raw[:-1], self.written) if raw.endswith("+") else None
            return None if low is None else (low, None)
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
    return (
        not isinstance(one.value, Semantic)
        or not isinstance(other.value, Semantic)
        or one.value.major == other.value.major
    )


def _newest(ladder: Sequence[Version]) -> Version | None:
    """Return the newest that is not a pre-release."""
    for version in reversed(ladder):
        if not isinstance(version.value, Semantic) or version.value.is_release:
            return version
    return None
