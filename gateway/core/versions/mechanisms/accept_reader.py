"""The version in Accept: `Accept: application/vnd.example-v2+json`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from gateway.core.request import RequestHead
from gateway.core.versions import accept
from gateway.core.versions.chosen_by import ChosenBy
from gateway.core.versions.mechanisms.media_type_reader import MediaTypeReader, version_in
from gateway.core.versions.reader import VersionAddress
from gateway.core.versions.version import Version

# Clients send the same few fields over and over; longer ones would fill the memory of them.
_SHORT = 256


@dataclass(frozen=True, slots=True)
class AcceptReader(MediaTypeReader):
    """Reads the Accept header against the pattern of a media type."""

    mechanism = ChosenBy.ACCEPT
    # The version is part of content negotiation: without it, no representation is acceptable
    # (RFC 9110, section 15.5.7).
    refusal_status = 406
    is_preference = True
    vary = ("Accept",)

    @property
    def place(self) -> str:
        """Show the media type that Accept should name."""
        return f"the header Accept, as {self.media_type('<version>')}"

    def read(self, head: RequestHead, captures: Mapping[str, str]) -> tuple[str, ...]:
        """Return the versions of all members that fit the pattern, the highest weight first.

        Members of equal weight keep the order of the request; weight 0 means "not acceptable"
        (RFC 9110, section 12.4.2) and names no version.
        """
        lines = head.fields.getall("Accept", ())
        if len(lines) == 1 and len(lines[0]) <= _SHORT:
            return _remembered(self.prefix, self.suffix, lines[0])
        return _last(self.prefix, self.suffix, *lines)

    def refuses(self, head: RequestHead, version: Version) -> bool:
        """Return whether the media type of a version has weight 0: not acceptable."""
        lines = head.fields.getall("Accept", ())
        return (str(version), 0) in _weighted(self.prefix, self.suffix, lines)

    def address(self, version: Version) -> VersionAddress:
        """Return the media type of a version, and the header that names it."""
        media_type = self.media_type(version)
        return VersionAddress(header=f"Accept: {media_type}", media_type=media_type)

    def content_type(self, version: Version) -> str:
        """Return the media type of a version."""
        return self.media_type(version)

    def answers_with(
        self, head: RequestHead, version: Version, aliases: Mapping[str, Version]
    ) -> str | None:
        """Return the media type of a version where Accept names such a one, or is open to any.

        It has the alias that Accept names: a client takes no type that it did not name (RFC 9110,
        section 12.5.1). Of a range, or a later version, it says which version the client got.
        Another field may have named the version, and Accept a type like application/json, which
        the client gets if the service sends it.
        """
        label, named = str(version), self.read(head, {})
        if named:
            such = (name for name in named if name == label or aliases.get(name) == version)
            return self.media_type(next(such, label))
        lines = head.fields.getall("Accept", ())
        is_open = all(member.essence == "*/*" for member in accept.parse(lines))
        return self.media_type(version) if is_open else None


def _preferred(prefix: str, suffix: str, *lines: str) -> tuple[str, ...]:
    versions = sorted(_weighted(prefix, suffix, lines), key=lambda version: -version[1])
    return tuple(version for version, weight in versions if weight > 0)


_remembered = lru_cache(maxsize=1024)(_preferred)
# A request may have it read twice.
_last = lru_cache(maxsize=1)(_preferred)


def _weighted(prefix: str, suffix: str, lines: Sequence[str]) -> list[tuple[str, float]]:
    return [
        (version, weight)
        for essence, weight in accept.parse(lines, prefix)
        if (version := version_in(essence, prefix, suffix)) is not None
    ]
