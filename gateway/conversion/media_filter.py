"""Media filters: conversions that apply only to messages with certain media types."""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from gateway.base.request import HeaderLookup
from gateway.versions.mechanisms.media_range import MediaRange, parse_accept

NO_TYPE = "none"
"""The name of a missing media type in gateway.yaml, and of an Accept that allows every type."""
_SHORT = 256
_ANY = "*/*"


class MediaRanges(NamedTuple):
    """Media ranges, one of which a media type has to match; with `negated`, none of them.

    The essence of a range may end with `*`. Only the parameters of the range are compared.
    """

    ranges: tuple[MediaRange, ...]
    negated: bool = False

    def match(self, found: MediaRange | None) -> bool:
        return any(_includes(each, found) for each in self.ranges) != self.negated

    def overlaps(self, other: "MediaRanges") -> bool:
        """Return whether a media type may match both."""
        if self.negated or other.negated:
            negated, ranges = (self, other) if self.negated else (other, self)
            return ranges.negated or any(negated.match(each) for each in ranges.ranges)
        return any(_overlap(one, two) for one in self.ranges for two in other.ranges)


def parse_media_ranges(texts: Iterable[str], *, negated: bool = False) -> MediaRanges:
    """Parse media ranges; the message of a ValueError is for operators."""
    found: list[MediaRange] = []
    for text in texts:
        parsed = [MediaRange(NO_TYPE, 1.0)] if text == NO_TYPE else [*parse_accept([text])]
        if len(parsed) != 1:
            raise ValueError(
                f"'{text}' is not a media range; write one such as application/merge-patch+json,"
                " application/* or none"
            )
        found += parsed
    return MediaRanges(tuple(found), negated)


def _includes(one: MediaRange, found: MediaRange | None) -> bool:
    if found is None:
        return one.essence in (NO_TYPE, _ANY)
    kind, _, subtype = one.essence.partition("/")
    if subtype == "*":
        is_type = kind in ("*", found.essence.partition("/")[0])
    else:
        is_type = one.essence == found.essence
    return is_type and {*one.parameters} <= {*found.parameters}


def _overlap(one: MediaRange, two: MediaRange) -> bool:
    values, others = dict(one.parameters), dict(two.parameters)
    if any(values[name] != others[name] for name in values.keys() & others.keys()):
        return False
    bare = one._replace(parameters=()), two._replace(parameters=())
    return _includes(*bare) or _includes(*bare[::-1])


class RequestMedia(NamedTuple):
    """The media type that a request prefers, and that of its body; None if there is none."""

    accept: MediaRange | None = None
    content_type: MediaRange | None = None


class MediaFilter(NamedTuple):
    """The requests that a conversion applies to; None in place of ranges does not restrict them."""

    accept: MediaRanges | None = None
    content_type: MediaRanges | None = None

    def matches(self, media: RequestMedia) -> bool:
        return (self.accept is None or self.accept.match(media.accept)) and (
            self.content_type is None or self.content_type.match(media.content_type)
        )

    def overlaps(self, other: "MediaFilter") -> bool:
        """Return whether both may apply to the same request."""
        return all(
            one is None or two is None or one.overlaps(two)
            for one, two in zip(self, other, strict=True)
        )


_JSON = MediaRange("application/json", 1.0)
JSON_MEDIA = RequestMedia(_JSON, _JSON)


def request_media(fields: HeaderLookup) -> RequestMedia:
    return RequestMedia(
        _of_lines(tuple(fields.getall("Accept", ()))),
        _of_lines(tuple(fields.getall("Content-Type", ()))),
    )


def _of_lines(lines: tuple[str, ...]) -> MediaRange | None:
    return (_remembered if sum(map(len, lines)) <= _SHORT else preferred)(lines)


def preferred(lines: Iterable[str]) -> MediaRange | None:
    """Return the media type with the highest weight, and the first of several with this weight.

    The result is None without a media type, and for `*/*`, which prefers no type.
    """
    found = max(parse_accept(lines), key=lambda each: each.weight, default=None)
    return None if found is None or found.essence == _ANY or not found.weight else found


_remembered = lru_cache(maxsize=128)(preferred)
