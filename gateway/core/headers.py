"""Header fields between two hops: what is dropped, what is added (RFC 9110, RFC 7239).

Field lines are pairs of raw bytes; order, case and duplicates are kept.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

HeaderFields = list[tuple[bytes, bytes]]
FieldLines = tuple[tuple[bytes, bytes], ...]

# RFC 9110, section 7.6.1, and the fields that older specifications bound to one hop.
HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)

# These would say something of the bytes that were converted, not of those that are sent
# (RFC 9110 8.8.3 and 14.3, RFC 9530, RFC 1864, RFC 3230).
ABOUT_BYTES = frozenset(
    {
        b"accept-ranges",
        b"content-digest",
        b"content-encoding",
        b"content-length",
        b"content-md5",
        b"digest",
        b"etag",
        b"last-modified",
        b"repr-digest",
    }
)

# A converted representation has no validators and no byte ranges, so a request must not select by
# any. If-Match and If-Unmodified-Since stay: dropping them would make a guarded write unguarded.
SELECTING = frozenset(
    {
        b"accept-encoding",
        b"if-modified-since",
        b"if-none-match",
        b"if-range",
        b"range",
        b"want-content-digest",
        b"want-repr-digest",
    }
)

# Likewise, of a request that writes. If-None-Match guards that one: with `*`, what is there already
# is not written over (RFC 9110, section 13.1.2).
SELECTING_WRITE = SELECTING - {b"if-none-match"}

# What may not come behind a body, where it would be looked at too late or by nobody: framing,
# routing, what a request selects by, credentials, what says how to read the body (RFC 9110, 6.5.1).
_NEVER_BEHIND = (
    HOP_BY_HOP
    | SELECTING
    | frozenset(
        {
            b"authorization",
            b"cache-control",
            b"content-encoding",
            b"content-length",
            b"content-range",
            b"content-type",
            b"cookie",
            b"expect",
            b"host",
            b"max-forwards",
            b"set-cookie",
            b"vary",
            b"www-authenticate",
        }
    )
)

# Where the gateway says when a version ends, it alone does; links are a list, to which it adds.
ENDING = frozenset({b"deprecation", b"sunset"})

# Fields that cannot carry a version: HTTP, or the gateway, means something else by them.
SPOKEN_FOR = (
    _NEVER_BEHIND
    | ABOUT_BYTES
    | ENDING
    | frozenset(
        {
            b"age",
            b"allow",
            b"date",
            b"expires",
            b"link",
            b"location",
            b"retry-after",
            b"via",
            b"x-request-id",
        }
    )
)

# How the gateway describes the client and its request.
_DESCRIBING = frozenset(
    {b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto"}
)

# Only we and those we trust say such things; a client's word would be believed behind us.
FORWARDING = _DESCRIBING | {
    b"x-forwarded-port",
    b"x-forwarded-prefix",
    b"x-forwarded-scheme",
    b"x-forwarded-server",
    b"x-forwarded-ssl",
}

# What the gateway writes itself, and so never passes on.
OURS = frozenset({b"content-length", b"host", b"x-request-id", b"x-shadow"}) | FORWARDING

# What Connection says when it names no field.
_ORDINARY = frozenset({b"close", b"keep-alive", b"Keep-Alive"})

PSEUDONYM = b"version-gateway"

# Of a name of ten dashes there are a thousand others; who makes up more gets no further.
_MOST_MIXTURES = 1024

# Fields of which a hop has to know that they are there.
_WATCHED = frozenset({b"connection", b"date", b"expect", b"vary"})
# A memo of names has at most so many, none of them longer than this.
_MOST_NAMES = 1024
_LONGEST_NAME = 64
_DROPPED = b""


class FieldFates(dict[bytes, bytes | None]):
    """What becomes of header fields on their way through, by name as it is written.

    Clients and services write the same few names over and over, so each is looked into once; the
    memo is bounded. None passes a field on, an empty name drops it, and any other is the name in
    lower case of a field that is watched.

    Args:
        drop: the names to drop beside those of hop-by-hop fields, in lower case.
    """

    def __init__(self, drop: frozenset[bytes]) -> None:
        super().__init__()
        self._drop = drop

    def __missing__(self, name: bytes) -> bytes | None:
        lower = name.lower()
        fate: bytes | None = None
        if lower in self._drop:
            fate = _DROPPED
        elif lower in _WATCHED:
            fate = lower
        elif lower in HOP_BY_HOP:
            fate = _DROPPED
        if len(self) < _MOST_NAMES and len(name) <= _LONGEST_NAME:
            self[name] = fate
        return fate

    def sort(self, fields: Iterable[tuple[bytes, bytes]]) -> tuple[HeaderFields, list[bytes]]:
        """Return the fields that may pass on, and the names of the watched ones that are there.

        What Connection names is dropped as well. It cannot name Content-Length, which frames the
        message (RFC 9110, section 7.6.1).
        """
        kept: HeaderFields = []
        watched: list[bytes] = []
        named: set[bytes] | None = None
        for line in fields:
            fate = self[line[0]]
            if fate is None:
                kept.append(line)
            elif fate:
                watched.append(fate)
                if fate != b"connection":
                    kept.append(line)
                elif line[1] not in _ORDINARY:
                    options = {option.strip(b" \t").lower() for option in line[1].split(b",")}
                    named = options if named is None else named | options
        if named is not None:
            named.discard(b"content-length")  # without it, nobody would know where the body ends
            kept = [line for line in kept if line[0].lower() not in named]
        return kept, watched


def end_to_end(fields: Iterable[tuple[bytes, bytes]], drop: frozenset[bytes]) -> HeaderFields:
    """Return the fields that may pass on: not hop-by-hop, not in `drop`, not named by Connection.

    Args:
        fields: field lines as received.
        drop: further names to leave out, in lower case.
    """
    return _fates(drop).sort(fields)[0]


_fates = lru_cache(maxsize=64)(FieldFates)


def lookalikes(names: frozenset[bytes]) -> frozenset[bytes]:
    """Return other names that a service may take for one of `names`, in lower case.

    CGI (RFC 3875, section 4.1.18), and all that follows it, calls X-Forwarded-For and
    X_Forwarded_For the same, so a client could say behind us what it may not say to us.
    """
    spelt: set[bytes] = set()
    for name in names:
        mixtures = [b""]
        for part in re.split(b"([-_])", name):
            marks = (b"-", b"_") if part in (b"-", b"_") else (part,)
            mixtures = [begun + mark for begun in mixtures for mark in marks][:_MOST_MIXTURES]
        spelt.update(mixtures, (name.replace(b"-", b"_"), name.replace(b"_", b"-")))
    return frozenset(spelt) - names


def withheld(read: Iterable[str] = ()) -> frozenset[bytes]:
    """Return the names of request fields that are not passed on as they came, in lower case.

    They are those that the gateway writes itself, and those that a service may take for one that
    it writes or reads.

    Args:
        read: further names by which it decides something, such as whose request it is.
    """
    return OURS | lookalikes(OURS | HOP_BY_HOP | {name.lower().encode() for name in read})


def takes_trailers(values: Iterable[str]) -> bool:
    """Whether TE says that trailer fields are welcome (RFC 9110, section 10.1.4)."""
    return any(
        member.partition(";")[0].strip(" \t").lower() == "trailers"
        for value in values
        for member in value.split(",")
    )


def trailing(fields: Iterable[tuple[bytes, bytes]]) -> HeaderFields:
    """Return the fields that may pass on behind a body."""
    return [line for line in fields if line[0].lower() not in _NEVER_BEHIND]


def forwarded_node(address: str) -> bytes:
    """Return an address as a node of Forwarded: IPv6 in brackets and quoted (RFC 7239, 6)."""
    return f'"[{address}]"'.encode() if ":" in address else address.encode()


@lru_cache(maxsize=1024)
def forwarding(
    peer: str, authority: str, scheme: str, inherited: tuple[tuple[bytes, bytes], ...]
) -> tuple[tuple[bytes, bytes], ...]:
    """Return Forwarded and X-Forwarded-* for a request that came from `peer`.

    Args:
        peer: the address that the request came from.
        authority: host and port that the client used.
        scheme: `http` or `https`.
        inherited: the fields of a trusted proxy before this one; empty where none is trusted.
    """
    given: dict[bytes, bytes] = {}
    for name, value in inherited:  # several lines are one list (RFC 9110, section 5.3)
        given[name.lower()] = _appended(given.get(name.lower()), value)
    host = authority.encode()
    element = b"for=%b;host=%b;proto=%b" % (forwarded_node(peer), _quoted(host), scheme.encode())
    return (
        (b"Forwarded", _appended(given.get(b"forwarded"), element)),
        (b"X-Forwarded-For", _appended(given.get(b"x-forwarded-for"), peer.encode())),
        (b"X-Forwarded-Host", given.get(b"x-forwarded-host") or host),
        (b"X-Forwarded-Proto", given.get(b"x-forwarded-proto") or scheme.encode()),
        *(line for line in inherited if line[0].lower() not in _DESCRIBING),
    )


def vary(fields: HeaderFields, names: tuple[str, ...]) -> HeaderFields:
    """Return `fields` with Vary listing `names` as well (RFC 9110, section 12.5.5)."""
    given = [value for name, value in fields if len(name) == 4 and name.lower() == b"vary"]
    if given:
        listed = {member.strip(b" \t").lower() for value in given for member in value.split(b",")}
        if b"*" in listed:
            return fields
        names = tuple(name for name in names if name.lower().encode() not in listed)
    return [*fields, (b"Vary", listing(names))] if names else fields


@lru_cache(maxsize=1024)
def listing(names: tuple[str, ...]) -> bytes:
    """Return names as a list in a field value (RFC 9110, section 5.6.1)."""
    return ", ".join(names).encode()


def upgrade(fields: HeaderFields) -> HeaderFields:
    """Return what says to which protocol a connection switches (RFC 9110, section 7.8)."""
    kept = [line for line in fields if line[0].lower() == b"upgrade"]
    return [(b"Connection", b"Upgrade"), *kept]


def retyped(fields: HeaderFields, content_type: bytes) -> HeaderFields:
    """Return `fields` with a Content-Type of the same format called `content_type`.

    `application/json` and `application/other+json` become `application/vnd.example+json`; a
    representation of another format keeps its name.
    """
    suffix = content_type.rpartition(b"+")[2]
    return [
        (line[0], content_type)
        if len(line[0]) == 12 and line[0].lower() == b"content-type" and _format(line[1]) == suffix
        else line
        for line in fields
    ]


def _format(content_type: bytes) -> bytes:
    essence = content_type.partition(b";")[0].strip(b" \t").lower()
    return essence.removeprefix(b"application/").rpartition(b"+")[2]


def _appended(before: bytes | None, element: bytes) -> bytes:
    return element if not before else before + b", " + element


def _quoted(value: bytes) -> bytes:
    return b'"' + value.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'
