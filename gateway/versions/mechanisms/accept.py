"""The mechanism `accept`: a media type in Accept names the version (RFC 9110, section 12.5.1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import Field

from gateway.base.mistakes import Mistakes
from gateway.base.request import RequestHead
from gateway.versions.mechanisms.media_range import MediaRange, parse_accept
from gateway.versions.mechanisms.media_type import (
    MediaTypeReader,
    Patterns,
    parse_media_type,
    version_in,
)
from gateway.versions.mechanisms.media_type_parameter import (
    ParameterReader,
    names_parameter,
    parse_parameter,
    parsed_ranges,
)
from gateway.versions.reader import OptionalMechanism, VersionAddress
from gateway.versions.version import Version

# The maximum length of cached values. Most clients send one of a few short values.
_SHORT = 256


@dataclass(frozen=True, slots=True)
class AcceptReader(MediaTypeReader):
    """Reads versions from the Accept header, which it compares with patterns of media types.

    Attributes:
        names_response: Whether responses get the requested media type. Otherwise they keep the
            media type of the service.
    """

    names_response: bool = False
    others: tuple["AcceptReader", ...] = field(default=(), kw_only=True)

    mechanism = "accept"
    # The version is part of content negotiation: without it, no representation is acceptable (RFC
    # 9110, section 15.5.7).
    refusal_status = 406
    is_preference = True
    vary = ("Accept",)

    @property
    def place(self) -> str:
        return f"the header Accept, as {self.forms}"

    def read(self, head: RequestHead, captures: Mapping[str, str]) -> tuple[str, ...]:
        """Return the versions of all members that match a pattern, the highest weight first.

        Members of equal weight keep their order. Members with weight 0 are skipped, since it means
        "not acceptable" (RFC 9110, section 12.4.2).
        """
        lines = head.fields.getall("Accept", ())
        if len(lines) == 1 and len(lines[0]) <= _SHORT:
            return _remembered(self.patterns, lines[0])[0]
        return _last(self.patterns, *lines)[0]

    def refuses(self, head: RequestHead, version: Version) -> bool:
        lines = head.fields.getall("Accept", ())
        label = str(version)
        return any(one[0] == label and one[2] == 0 for one in _weighted(self.patterns, lines))

    def address(self, version: Version) -> VersionAddress:
        media_type = self.media_type(version)
        return VersionAddress(header=f"Accept: {media_type}", media_type=media_type)

    def content_type(self, version: Version) -> str | None:
        named = (one for one in (self, *self.others) if one.names_response)
        return next((one.media_type(version) for one in named), None)

    def response_media_type(
        self, head: RequestHead, version: Version, aliases: Mapping[str, Version]
    ) -> str | None:
        """Return the media type of the response; None keeps the media type of the service.

        The response gets the media type of the version if Accept names a version or allows any
        type. If Accept has an alias, the media type has the alias too, since a client accepts only
        types that it named (RFC 9110, section 12.5.1). For a range or an unknown version, the media
        type has the selected version. The result is None if another field names the version and
        Accept has a type such as application/json.
        """
        lines = head.fields.getall("Accept", ())
        label, (named, places) = str(version), _last(self.patterns, *lines)
        if named:
            such = (name == label or aliases.get(name) == version for name in named)
            found = next((index for index, is_such in enumerate(such) if is_such), None)
            pattern = self.patterns.around[places[found or 0]]
            own = next(one for one in (self, *self.others) if (one.prefix, one.suffix) == pattern)
            called = own.media_type(label if found is None else named[found])
            return called if own.names_response else None
        is_open = all(member.essence == "*/*" for member in parse_accept(lines))
        return self.content_type(version) if is_open else None


# The named versions, and for each the index of the matching pattern.
_Preferred = tuple[tuple[str, ...], tuple[int, ...]]


def _preferred(patterns: Patterns, *lines: str) -> _Preferred:
    named = sorted(_weighted(patterns, lines), key=lambda one: -one[2])
    kept = [one for one in named if one[2] > 0]
    return tuple(one[0] for one in kept), tuple(one[1] for one in kept)


_remembered = lru_cache(maxsize=1024)(_preferred)
# Serves the second lookup for the same request.
_last = lru_cache(maxsize=1)(_preferred)


def _weighted(patterns: Patterns, lines: Sequence[str]) -> list[tuple[str, int, float]]:
    part = patterns.around[0][0] if len(patterns.around) == 1 else "/"
    return [
        (*named, weight)
        for essence, weight, _ in parse_accept(lines, part)
        if (named := version_in(essence, patterns)) is not None
    ]


@dataclass(frozen=True, slots=True)
class AcceptParameterReader(ParameterReader):
    mechanism = "accept"
    # As for a version in the subtype.
    refusal_status = 406
    is_preference = True

    def read(self, head: RequestHead, captures: Mapping[str, str]) -> tuple[str, ...]:
        """Return the versions of all members, the highest weight first.

        Members with weight 0 are skipped (RFC 9110, section 12.4.2).
        """
        found = [*self.versions(self._ranges(head))]
        if len(found) > 1:
            found.sort(key=lambda one: -one[1])
        return tuple(version for version, weight in found if weight > 0)

    def refuses(self, head: RequestHead, version: Version) -> bool:
        return (version.label, 0) in self.versions(self._ranges(head))

    def address(self, version: Version) -> VersionAddress:
        media_type = self.media_type(version)
        return VersionAddress(header=f"Accept: {media_type}", media_type=media_type)

    def content_type(self, version: Version) -> str | None:
        return self.media_type(version) if self.names_response else None

    def response_media_type(
        self, head: RequestHead, version: Version, aliases: Mapping[str, Version]
    ) -> str | None:
        """Return the media type by the rules of a version in the subtype."""
        if not self.names_response:
            return None
        named = self.read(head, {})
        known = (name for name in named if name == version.label or aliases.get(name) == version)
        if named or all(one.essence == "*/*" for one in self._ranges(head)):
            return self.media_type(next(known, version))
        return None

    def _ranges(self, head: RequestHead) -> tuple[MediaRange, ...]:
        return parsed_ranges(*head.fields.getall("Accept", ()))


class AcceptVersion(OptionalMechanism):
    """The version is part of a media type in Accept."""

    in_: Annotated[Literal["accept"], Field(alias="in")]
    media_type: str
    """The media type with `{version}` in place of the version, also as the value of a parameter:
    `application/json; v={version}`."""
    response_type: Literal["service", "vendor"] = "service"
    """The Content-Type of JSON responses: that of the service's response (service), or the
    requested media type (vendor)."""

    def compile(
        self, versions: Mapping[str, Version], mistakes: Mistakes
    ) -> AcceptReader | AcceptParameterReader | None:
        vendor, here = self.response_type == "vendor", mistakes.below("media_type")
        if names_parameter(self.media_type):
            place = parse_parameter(self.media_type, here)
            if place is not None and vendor and "*" in place[0]:
                here.add(
                    "matches several types; name the one type of the responses", "response_type"
                )
            return None if place is None else AcceptParameterReader(*place, names_response=vendor)
        around = parse_media_type(self.media_type, versions, here)
        return None if around is None else AcceptReader(*around, names_response=vendor)
