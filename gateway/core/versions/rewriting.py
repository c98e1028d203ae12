"""Version rewriting: a service is asked for the version that it speaks, not the client's.

The client's word stands in a query parameter, a header field or a media type; a service that reads
it there would take what was converted for what it was before. The path tells by its template.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from gateway.core.headers import HeaderFields
from gateway.core.versions.readers import AcceptReader, HeaderReader, QueryReader, Reader, decode

_NEGOTIATED = frozenset({b"accept", b"content-type"})


@dataclass(frozen=True, slots=True)
class VersionRewrite:
    """Puts one version in the place of another, wherever a request or an answer names one.

    Attributes:
        label: of the version that is told.
        parameters: the query parameters that name a version.
        headers: the header fields that do, in lower case.
        media_types: what matches a media type that does, and the one to put in its place.
    """

    label: str
    parameters: frozenset[str]
    headers: frozenset[bytes]
    media_types: Mapping[re.Pattern[bytes], bytes]

    @classmethod
    def of(cls, readers: tuple[Reader, ...], label: str) -> Self | None:
        """Return what tells a version wherever the readers look; None where only the path does."""
        telling = cls(
            label,
            frozenset(reader.name for reader in readers if isinstance(reader, QueryReader)),
            frozenset(
                reader.name.lower().encode()
                for reader in readers
                if isinstance(reader, HeaderReader)
            ),
            {
                _media_type(reader): reader.media_type(label).encode()
                for reader in readers
                if isinstance(reader, AcceptReader)
            },
        )
        return telling if telling.parameters or telling.headers or telling.media_types else None

    def query(self, query: str | None) -> str | None:
        """Return a query that names the version; what it does not name stays, byte for byte."""
        if not query or not self.parameters:
            return query
        return "&".join(self._pair(pair) for pair in query.split("&"))

    def fields(self, fields: HeaderFields) -> HeaderFields:
        """Return header fields that name the version; order, case and all others stay."""
        return [(name, self._value(name.lower(), value)) for name, value in fields]

    def _pair(self, pair: str) -> str:
        name = pair.partition("=")[0]
        return f"{name}={self.label}" if decode(name) in self.parameters else pair

    def _value(self, name: bytes, value: bytes) -> bytes:
        if name in self.headers:
            return self.label.encode()
        if name in _NEGOTIATED:
            for pattern, media_type in self.media_types.items():
                value = pattern.sub(media_type, value)
        return value


def _media_type(reader: AcceptReader) -> re.Pattern[bytes]:
    # As a member of a list, with or without parameters (RFC 9110, section 12.5.1).
    prefix, suffix = (re.escape(text.encode()) for text in (reader.prefix, reader.suffix))
    begin, end = rb"(?<![^ \t,])", rb"(?=[ \t]*(?:[;,]|\Z))"
    return re.compile(begin + prefix + rb"[^ \t,;\"]*?" + suffix + end, re.IGNORECASE)
