"""Readers: the raw version values that a request carries. They decide nothing.

One reader knows one mechanism at one place. What it finds may be missing, contradictory or
nonsense; `selection` says what follows from that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Protocol
from urllib.parse import unquote, unquote_plus

from gateway.core.request import RequestHead
from gateway.core.versions import accept

# Clients send the same few fields over and over; longer ones would fill the memory of them.
_SHORT = 256


class Mechanism(StrEnum):
    """Where a version is carried."""

    PATH = "path"
    QUERY = "query"
    HEADER = "header"
    ACCEPT = "accept"


class Reader(Protocol):
    """Reads one mechanism."""

    @property
    def mechanism(self) -> Mechanism:
        """Return the mechanism that this reader reads."""
        ...

    @property
    def place(self) -> str:
        """Say, for a person, where the version belongs: `the query parameter 'version'`."""
        ...

    def read(self, head: RequestHead, captures: Mapping[str, str]) -> tuple[str, ...]:
        """Return the raw values found, in order of preference; empty when there is none."""
        ...


@dataclass(frozen=True, slots=True)
class PathReader:
    """Reads the `{version}` capture of the endpoint's path."""

    mechanism = Mechanism.PATH
    place = "the path"

    def read(self, head: RequestHead, captures: Mapping[str, str]) -> tuple[str, ...]:
        """Return the captured text, raw: a percent-encoded digit is not a digit."""
        return (captures["version"],)


@dataclass(frozen=True, slots=True)
class QueryReader:
    """Reads a query parameter; its name is case-sensitive."""

    name: str

    mechanism = Mechanism.QUERY

    @property
    def place(self) -> str:
        """Name the parameter."""
        return f"the query parameter '{self.name}'"

    def read(self, head: RequestHead, captures: Mapping[str, str]) -> tuple[str, ...]:
        """Return every value of the parameter, form-decoded (WHATWG URL, section 5.1).

        But a plus stays one: `1.2+` names a version, and what has a space does not.
        """
        if not head.query:
            return ()
        found = []
        for pair in head.query.split("&"):
            name, _, value = pair.partition("=")
            if decode(name) == self.name:
                found.append(unquote(value) if "%" in value else value)
        return tuple(found)


@dataclass(frozen=True, slots=True)
class HeaderReader:
    """Reads a header field; its name is case-insensitive."""

    name: str

    mechanism = Mechanism.HEADER

    @property
    def place(self) -> str:
        """Name the header."""
        return f"the header {self.name}"

    def read(self, head: RequestHead, captures: Mapping[str, str]) -> tuple[str, ...]:
        """Return the value of every line, without the optional white space around it."""
        return tuple([value.strip(" \t") for value in head.fields.getall(self.name, ())])


@dataclass(frozen=True, slots=True)
class AcceptReader:
    """Reads the Accept header against a media type pattern such as `a/b-v{version}+json`.

    `prefix` and `suffix` are what stands before and after `{version}`, in lower case.
    """

    prefix: str
    suffix: str

    mechanism = Mechanism.ACCEPT

    @property
    def place(self) -> str:
        """Show the media type that Accept should name."""
        return f"the header Accept, as {self.media_type('<version>')}"

    def media_type(self, version: object) -> str:
        """Return the vendor media type of a version."""
        return f"{self.prefix}{version}{self.suffix}"

    def read(self, head: RequestHead, captures: Mapping[str, str]) -> tuple[str, ...]:
        """Return the versions of all members that fit the pattern, the highest weight first.

        Members of equal weight keep the order of the request; weight 0 means "not acceptable"
        (RFC 9110, section 12.4.2) and speaks for no version.
        """
        lines = tuple(head.fields.getall("Accept", ()))
        if sum(map(len, lines)) <= _SHORT:
            return _remembered(self.prefix, self.suffix, lines)
        return _preferred(self.prefix, self.suffix, lines)

    def refuses(self, head: RequestHead, version: object) -> bool:
        """Whether the request says that the media type of a version is not acceptable."""
        lines = head.fields.getall("Accept", ())
        return (str(version), 0) in _weighted(self.prefix, self.suffix, lines)


def _preferred(prefix: str, suffix: str, lines: Sequence[str]) -> tuple[str, ...]:
    versions = sorted(_weighted(prefix, suffix, lines), key=lambda version: -version[1])
    return tuple(version for version, weight in versions if weight > 0)


_remembered = lru_cache(maxsize=1024)(_preferred)


def _weighted(prefix: str, suffix: str, lines: Sequence[str]) -> list[tuple[str, float]]:
    shortest = len(prefix) + len(suffix)
    return [
        (essence[len(prefix) : len(essence) - len(suffix)], weight)
        for essence, weight in accept.parse(lines)
        if essence.startswith(prefix) and essence.endswith(suffix) and len(essence) >= shortest
    ]


def decode(text: str) -> str:
    """Return the name of a query parameter, form-decoded (WHATWG URL, section 5.1)."""
    return unquote_plus(text) if "%" in text or "+" in text else text
