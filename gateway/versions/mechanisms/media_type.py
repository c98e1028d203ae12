"""Media type patterns that contain a version, for the mechanisms `accept` and `content_type`."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

from gateway.base.headers import HeaderFields
from gateway.base.mistakes import Mistakes
from gateway.versions.reader import Reader

# A media type (RFC 6838, section 4.2) with `{version}` in its subtype.
_MEDIA_TYPE = re.compile(
    r"([a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9!#$&^_.+-]*)\{version\}([a-z0-9!#$&^_.+-]*)\Z"
)


def parse_media_type(
    text: str, labels: Iterable[str], mistakes: Mistakes
) -> tuple[str, str, tuple[str, ...]] | None:
    """Return the lower-case strings around `{version}`, and the labels that are not numeric.

    The result is None if the pattern is invalid.
    """
    labels = [*labels]
    match = _MEDIA_TYPE.match(text.lower())
    if match is None:
        mistakes.add(
            "not a media type with one {version} in its subtype; write one like"
            " application/vnd.example-v{version}+json",
        )
        return None
    for label in labels:
        if label != label.lower():
            mistakes.add(
                f"media types are read in lower case, so '{label}' is never found"
                " there; write the version in lower case",
            )
    others = [label for label in labels if not _NUMERIC.fullmatch(label.encode())]
    return match[1], match[2], tuple(sorted(others, key=len, reverse=True))


# In requests to a service of another version, versions are replaced in Accept and Content-Type.
_MEDIA_TYPES = frozenset({b"accept", b"content-type"})
_DIGITS = rb"[0-9]+(?:[.\-][0-9]+)*"
_NUMERIC = re.compile(_DIGITS)

# The parameters of a member of Accept (RFC 9110, section 12.5.1), and its weight. Their length is
# limited, since the cost of a long field with many members would be quadratic.
_QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_PARAMETERS = re.compile(rb'(?:[^,"]|%b)*+' % _QUOTED.pattern, re.DOTALL)
_LONGEST_PARAMETERS = 512
_WEIGHT = re.compile(rb";[ \t]*q=([^ \t;]*)", re.IGNORECASE)
_ZERO = re.compile(rb"0(?:\.0{0,3})?\Z")

# The maximum length of cached values. Most messages have one of a few short values.
_SHORT = 256


class Patterns(NamedTuple):
    """The media type patterns of one header field.

    Attributes:
        around: The strings before and after `{version}` of each pattern, the longest pair first.
        labels: The labels that are not numeric, the longest first.
    """

    around: tuple[tuple[str, str], ...]
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MediaTypeReader(Reader):
    """Reads a media type that names the version.

    Attributes:
        others: The readers of further media types in the same header field. The longest matching
            pattern applies: `v2.raw+json` is version 2 of `v{version}.raw+json`, not version
            `2.raw` of `v{version}+json`, unless `2.raw` is a label.
    """

    prefix: str
    suffix: str
    labels: tuple[str, ...] = ()
    others: tuple["MediaTypeReader", ...] = field(default=(), kw_only=True)
    patterns: Patterns = field(init=False, repr=False, compare=False)
    has_one_type: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found = {(one.prefix, one.suffix) for one in (self, *self.others)}
        key = lambda pair: (-len(pair[0]) - len(pair[1]), -len(pair[0]), pair)  # noqa: E731
        patterns = Patterns(tuple(sorted(found, key=key)), self.labels)
        object.__setattr__(self, "patterns", patterns)
        object.__setattr__(self, "has_one_type", not self.others)

    def media_type(self, version: object) -> str:
        return f"{self.prefix}{version}{self.suffix}"

    @property
    def forms(self) -> str:
        return " or ".join(one.media_type("<version>") for one in (self, *self.others))

    def joined(self, other: Reader) -> Reader | None:
        if type(other) is not type(self):
            return None
        return replace(self, others=(*self.others, other))

    def rewrite_fields(
        self, fields: HeaderFields, label: str, is_replaced: Callable[[str], bool]
    ) -> HeaderFields:
        return [
            (line[0], _rewritten(self.patterns, label, low, line[1]))
            if (low := line[0].lower()) in _MEDIA_TYPES
            and (low == b"accept" or _names(self.patterns, line[1], is_replaced))
            else line
            for line in fields
        ]


def version_in(essence: str, patterns: Patterns) -> tuple[str, int] | None:
    """Return the version in a lower-case media type and the index of the pattern, or None."""
    found = None
    for place, (prefix, suffix) in enumerate(patterns.around):
        end = len(essence) - len(suffix)
        if end >= len(prefix) and essence.startswith(prefix) and essence.endswith(suffix):
            version = essence[len(prefix) : end]
            if version in patterns.labels:
                return version, place
            found = found or (version, place)
    return found


def _names(patterns: Patterns, value: bytes, is_replaced: Callable[[str], bool]) -> bool:
    found = _pattern(patterns, b"content-type").search(value)
    return found is not None and is_replaced(_version_of(found).decode("latin-1").lower())


def _version_of(found: re.Match[bytes]) -> bytes:
    after = found.lastindex or 0
    return found[0][len(found[after - 1]) : len(found[0]) - len(found[after])]


def _rewritten(patterns: Patterns, label: str, name: bytes, value: bytes) -> bytes:
    if len(value) > _SHORT:
        return _renamed(patterns, label, name, value)
    return _remembered(patterns, label, name, value)


def _renamed(patterns: Patterns, label: str, name: bytes, value: bytes) -> bytes:
    version = label.encode()

    def around(match: re.Match[bytes]) -> bytes:
        if name == b"accept" and _is_excluded(value, match.end()):
            return match[0]
        after = match.lastindex or 0
        return match[after - 1].lower() + version + match[after].lower()

    return _pattern(patterns, name).sub(around, value)


_remembered = lru_cache(maxsize=1024)(_renamed)


def _is_excluded(value: bytes, end: int) -> bool:
    parameters = _PARAMETERS.match(value, end, end + _LONGEST_PARAMETERS)
    weight = parameters and _WEIGHT.search(_QUOTED.sub(b"", parameters[0]))
    return weight is not None and _ZERO.match(weight[1]) is not None


@lru_cache(maxsize=64)
def _pattern(patterns: Patterns, field_name: bytes) -> re.Pattern[bytes]:
    """Return a regular expression for versions; its last two groups surround the version.

    In Content-Type, the suffix may differ from the configured one, as in `v2.raw` and `v2+xml`.
    """
    # The limits of a list member, with or without parameters (RFC 9110, section 12.5.1).
    begin, end = rb"(?<![^ \t,])", rb"(?=[ \t]*(?:[;,]|\Z))"
    labels = [re.escape(label.encode()) for label in patterns.labels]
    known = rb"(?:%b)" % rb"|".join([*labels, _DIGITS])
    exact, others, rest = [], [], []
    for prefix, suffix in patterns.around:
        before, after = re.escape(prefix.encode()), re.escape(suffix.encode())
        exact.append(rb"(%b)%b(%b)" % (before, known, after))
        rest.append(rb"(%b)[^ \t,;\"]*?(%b)" % (before, after))
        if field_name == b"content-type" and not prefix.endswith("/"):
            others.append(rb"(%b)%b((?:[.+][^ \t,;\"]*)?)" % (before, known))
    options = (option + end for option in exact + others + rest)
    return re.compile(begin + rb"(?:%b)" % b"|".join(options), re.IGNORECASE)
