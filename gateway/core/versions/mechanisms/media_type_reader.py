"""What readers of media types share: the pattern `application/vnd.example-v{version}+json`."""

import re
from dataclasses import dataclass
from functools import lru_cache

from gateway.core.headers import HeaderFields
from gateway.core.versions.reader import Reader

# Both what a body is called and what it should be called: a service that is asked for another
# version is sent and answers with the media types of that one.
_MEDIA_TYPES = frozenset({b"accept", b"content-type"})


@dataclass(frozen=True, slots=True)
class MediaTypeReader(Reader):
    """Reads a media type that names the version.

    `prefix` and `suffix` are what stands before and after `{version}`, in lower case.
    """

    prefix: str
    suffix: str

    def media_type(self, version: object) -> str:
        """Return the vendor media type of a version."""
        return f"{self.prefix}{version}{self.suffix}"

    def rewrite_fields(self, fields: HeaderFields, label: str) -> HeaderFields:
        """Return the fields with the media type of another version, parameters kept."""
        pattern, media_type = _pattern(self.prefix, self.suffix), self.media_type(label).encode()
        return [
            (line[0], pattern.sub(media_type, line[1])) if line[0].lower() in _MEDIA_TYPES else line
            for line in fields
        ]


def version_in(essence: str, prefix: str, suffix: str) -> str | None:
    """Return the version that a media type, in lower case, names; None if it does not fit."""
    end = len(essence) - len(suffix)
    if end >= len(prefix) and essence.startswith(prefix) and essence.endswith(suffix):
        return essence[len(prefix) : end]
    return None


@lru_cache(maxsize=64)
def _pattern(prefix: str, suffix: str) -> re.Pattern[bytes]:
    # As a member of a list, with or without parameters (RFC 9110, section 12.5.1).
    before, after = (re.escape(text.encode()) for text in (prefix, suffix))
    begin, end = rb"(?<![^ \t,])", rb"(?=[ \t]*(?:[;,]|\Z))"
    return re.compile(begin + before + rb"[^ \t,;\"]*?" + after + end, re.IGNORECASE)
