"""`version: { in: accept, media_type: "application/vnd.example-v{version}+json" }`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import Field

from gateway.base.mistakes import Location, Mistakes
from gateway.base.request import RequestHead
from gateway.versions import accept
from gateway.versions.mechanisms.mechanism import OptionalMechanismConfig
from gateway.versions.mechanisms.media_type import (
    MediaTypeReader,
    Patterns,
    parse_media_type,
    version_in,
)
from gateway.versions.reader import VersionAddress
from gateway.versions.version import Version

# Clients send the same few fields over and over; longer ones would fill the memory of them.
_SHORT = 256


@dataclass(frozen=True, slots=True)
class AcceptReader(MediaTypeReader):
    """Reads the Accept header against the patterns of media types.

    Attributes:
        names_response: Whether responses get the media type that was asked for; otherwise they keep
            that of the service.
    """

    names_response: bool = False
    others: tuple["AcceptReader", ...] = field(default=(), kw_only=True)

    mechanism = "accept"
    # The version is part of content negotiation: without it, no representation is acceptable
    # (RFC 9110, section 15.5.7).
    refusal_status = 406
    is_preference = True
    vary = ("Accept",)

    @property
    def place(self) -> str:
        """Show the media type that Accept should name."""
        return f"the header Accept, as {self.forms}"

    def read(self, head: RequestHead, captures: Mapping[str, str]) -> tuple[str, ...]:
        """Return the versions of all members that fit a pattern, the highest weight first.

        Members of equal weight keep the order of the request; weight 0 means "not acceptable"
        (RFC 9110, section 12.4.2) and names no version.
        """
        lines = head.fields.getall("Accept", ())
        if len(lines) == 1 and len(lines[0]) <= _SHORT:
            return _remembered(self.patterns, lines[0])[0]
        return _last(self.patterns, *lines)[0]

    def refuses(self, head: RequestHead, version: Version) -> bool:
        """Return whether the media type of a version has weight 0: not acceptable."""
        lines = head.fields.getall("Accept", ())
        label = str(version)
        return any(one[0] == label and one[2] == 0 for one in _weighted(self.patterns, lines))

    def address(self, version: Version) -> VersionAddress:
        """Return the media type of a version, and the header that names it."""
        media_type = self.media_type(version)
        return VersionAddress(header=f"Accept: {media_type}", media_type=media_type)

    def content_type(self, version: Version) -> str | None:
        """Return the first media type of a version that responses are given; None for none."""
        named = (one for one in (self, *self.others) if one.names_response)
        return next((one.media_type(version) for one in named), None)

    def answers_with(
        self, head: RequestHead, version: Version, aliases: Mapping[str, Version]
    ) -> str | None:
        """Return the media type of a version where Accept names such a one, or is open to any.

        It has the alias that Accept names: a client takes no type that it did not name (RFC 9110,
        section 12.5.1). Of a range, or a later version, it says which version the client got.
        Another field may have named the version, and Accept a type like application/json, which
        the client gets if the service sends it.
        """
        lines = head.fields.getall("Accept", ())
        label, (named, places) = str(version), _last(self.patterns, *lines)
        if named:
            such = (name == label or aliases.get(name) == version for name in named)
            found = next((index for index, is_such in enumerate(such) if is_such), None)
            pattern = self.patterns[places[found or 0]]
            own = next(one for one in (self, *self.others) if (one.prefix, one.suffix) == pattern)
            called = own.media_type(label if found is None else named[found])
            return called if own.names_response else None
        is_open = all(member.essence == "*/*" for member in accept.parse(lines))
        return self.content_type(version) if is_open else None


# The versions, and the place of the pattern of each.
_Preferred = tuple[tuple[str, ...], tuple[int, ...]]


def _preferred(patterns: Patterns, *lines: str) -> _Preferred:
    named = sorted(_weighted(patterns, lines), key=lambda one: -one[2])
    kept = [one for one in named if one[2] > 0]
    return tuple(one[0] for one in kept), tuple(one[1] for one in kept)


_remembered = lru_cache(maxsize=1024)(_preferred)
# A request may have it read twice.
_last = lru_cache(maxsize=1)(_preferred)


def _weighted(patterns: Patterns, lines: Sequence[str]) -> list[tuple[str, int, float]]:
    part = patterns[0][0] if len(patterns) == 1 else "/"
    return [
        (*named, weight)
        for essence, weight in accept.parse(lines, part)
        if (named := version_in(essence, patterns)) is not None
    ]


class AcceptVersion(OptionalMechanismConfig):
    """The version is part of a media type in Accept."""

    in_: Annotated[Literal["accept"], Field(alias="in")]
    media_type: str
    """The media type, with `{version}` where the version stands."""
    response_type: Literal["service", "vendor"] = "service"
    """The Content-Type of JSON responses: that of the service (service), or the media type that
    was asked for (vendor)."""

    def build(
        self, versions: Mapping[str, Version], at: Location, mistakes: Mistakes
    ) -> AcceptReader | None:
        """Return the reader."""
        around = parse_media_type(self.media_type, versions, (*at, "media_type"), mistakes)
        vendor = self.response_type == "vendor"
        return None if around is None else AcceptReader(*around, names_response=vendor)
