"""Entity tags of converted answers (RFC 9110, section 8.8.3), made from those of the service.

The tag `"abc"` of the service becomes `"abc.KEY"` for the client. The key depends on the two
versions and on the rules between them, so that a tag of another version, or of earlier rules, never
matches. A tag of a client is translated back without any memory of it, so every worker can do it.

An answer that clients get in several codings has a tag for each: `"abc.KEY.gzip"`. The suffix is
that of the coding that the client prefers, also where a small answer is not compressed, so that
GET, HEAD and 304 have the same tag.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Self

from gateway.base.errors import Fault, FaultCode, FaultError
from gateway.base.headers import HeaderFields
from gateway.http.content_coding import CODINGS

CONDITIONS = frozenset({b"if-match", b"if-none-match", b"if-range"})
"""The names of the request fields that hold entity tags."""

_TAG = re.compile(rb'(W/)?"([!#-~\x80-\xff]*)"')
# Marks a tag that is weak for the client and strong for the service.
_WEAKENED = b".w"
_ANY = b"*"
# The bytes of all conditions; other servers take no field of more than about 8,000 bytes either.
_MOST = 8192
_TOO_MANY = f"If-Match, If-None-Match and If-Range may have {_MOST} bytes in all at this endpoint."


@dataclass(frozen=True, slots=True)
class EntityTags:
    """Translates the entity tags of one route."""

    key: bytes
    # The ends of tags for clients, by coding.
    _ends: Mapping[str | None, bytes] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ends: dict[str | None, bytes] = {None: b'%b"' % self.key}
        ends |= {coding: b'%b.%b"' % (self.key, coding.encode()) for coding in CODINGS}
        object.__setattr__(self, "_ends", ends)

    @classmethod
    def of(cls, parts: Iterable[str]) -> Self:
        """Return the translation for the versions and the rules, as texts."""
        digest = blake2b(digest_size=6)
        for part in parts:
            digest.update(b"%d:%b" % (len(part), part.encode()))
        return cls(b"." + digest.hexdigest().encode())

    def for_client(self, tag: bytes, coding: str | None, *, weak: bool = False) -> bytes | None:
        """Return a tag of the service for the client, or None if it is malformed.

        Args:
            coding: The coding that the client prefers; None for no coding.
            weak: Whether equal bodies of the service may become bodies that are not equal byte for
                byte, so that the tag is not strong.
        """
        tag = tag.strip(b" \t")
        if _TAG.fullmatch(tag) is None:
            return None
        end = self._ends[coding]
        if weak and tag.startswith(b'"'):
            return b"W/%b%b%b%b" % (tag[:-1], self.key, _WEAKENED, end.removeprefix(self.key))
        return tag[:-1] + end

    def for_service(self, value: bytes) -> bytes:
        """Return the tags of If-Match or If-None-Match for the service.

        Tags that the client was not given match nothing and are left out; empty if none remains.
        """
        if value.strip(b" \t") == _ANY:
            return _ANY
        tags = (self._given(*match.groups(b"")) for match in _TAG.finditer(value))
        return b", ".join(tag for tag in tags if tag)

    def current(
        self, tag: bytes, given: Iterable[bytes], coding: str | None, *, weak: bool = False
    ) -> bytes | None:
        """Return the tag of a 304 for the client: the one that it has, in its coding."""
        strong = not weak and not tag.strip(b" \t").startswith(b"W/")
        for value in given:
            for match in _TAG.finditer(value):
                if _opaque(self._given(*match.groups(b""))) == _opaque(tag):
                    return match[0].removeprefix(b"W/") if strong else match[0]
        return self.for_client(tag, coding, weak=weak)

    def conditions(self, fields: HeaderFields) -> HeaderFields:
        """Return the fields of a request with conditions that the service can evaluate.

        If-Match without a tag that the client was given gets one that matches nothing, as does an
        If-Range without such a strong one, unless it is a date (RFC 9110, section 13.1.5). Such an
        If-None-Match is true, so it is left out, and with it If-Modified-Since, which counts only
        without it (section 13.1.3).

        Raises:
            FaultError: the tags have more bytes than any client was given; each costs time.
        """
        if sum(len(value) for name, value in fields if name.lower() in CONDITIONS) > _MOST:
            raise FaultError(Fault(FaultCode.HEADERS_TOO_LARGE, _TOO_MANY))
        kept: HeaderFields = []
        has_none_match, has_tags = False, False
        for name, value in fields:
            lower = name.lower()
            if lower == b"if-range":
                if b'"' in value:
                    weak = value.lstrip(b" \t").startswith(b"W/")
                    value = (not weak and self.for_service(value)) or self._none
            elif lower in CONDITIONS:
                value = self.for_service(value)
                if lower == b"if-match":
                    value = value or self._none
                else:
                    has_none_match, has_tags = True, has_tags or bool(value)
                    if not value:
                        continue
            kept.append((name, value))
        if has_none_match and not has_tags:
            kept = [line for line in kept if line[0].lower() != b"if-modified-since"]
        return kept

    @property
    def _none(self) -> bytes:
        return b'"none%b"' % self.key

    def _given(self, prefix: bytes, opaque: bytes) -> bytes:
        """Return the service's tag for a tag that the client was given, else nothing."""
        own, key, suffix = opaque.rpartition(self.key)
        weakened = suffix.startswith(_WEAKENED)
        if not key or (weakened and not prefix):
            return b""
        if suffix.removeprefix(_WEAKENED) not in _SUFFIXES:
            return b""
        return b'%b"%b"' % (b"" if weakened else prefix, own)


_SUFFIXES = frozenset({b"", *(b".%b" % coding.encode() for coding in CODINGS)})


def _opaque(tag: bytes) -> bytes:
    return tag.strip(b" \t").removeprefix(b"W/")
