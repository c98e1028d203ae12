"""Header fields of forwarded messages: removal and addition of fields (RFC 9110, RFC 7239).

Field lines are pairs of raw bytes. Their order, case and duplicates are preserved.
"""

import re
from collections.abc import Iterable, Mapping, Set
from functools import lru_cache
from typing import Final

from gateway.base.request import HeaderLookup

HeaderFields = list[tuple[bytes, bytes]]
FieldLines = tuple[tuple[bytes, bytes], ...]

FIELD_LINE: Final = b": ".join

# RFC 9110, section 7.6.1, and the fields that older specifications define as hop-by-hop.
HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer"
    b" transfer-encoding upgrade".split()
)

# Digests of a body, and signatures, which may include one (RFC 9530, 1864, 3230 and 9421).
DIGESTS = frozenset(
    b"content-digest content-md5 digest repr-digest signature signature-input".split()
)

# Fields that describe the bytes of a body. Changing the bytes invalidates these fields (RFC 9110,
# section 14.3).
BYTE_FIELDS = DIGESTS | {b"accept-ranges", b"content-encoding", b"content-length"}

# Fields that are not forwarded with a request whose response is converted: byte ranges do not apply
# to a converted representation; the gateway would have to decode content codings; and it would have
# to remove digests and signatures. Entity tags are translated (`gateway.routing.links`).
SELECTION_FIELDS = frozenset(
    b"accept-encoding accept-signature if-range range want-content-digest want-digest"
    b" want-repr-digest".split()
)

RANGES = frozenset({b"accept-ranges", b"content-range", b"if-range", b"range"})
"""Fields about ranges of bytes or of another unit, such as the items of a list."""

# Fields that are forbidden in trailers: framing, routing, request conditions, credentials, the
# format of the body (RFC 9110, section 6.5.1).
_FORBIDDEN_IN_TRAILERS = (
    HOP_BY_HOP
    | SELECTION_FIELDS
    | frozenset(
        b"authorization cache-control content-encoding content-length content-range content-type"
        b" cookie expect host if-modified-since if-none-match max-forwards set-cookie vary"
        b" www-authenticate".split()
    )
)

PREFIX_LINE: Final = b"\r\nX-Forwarded-Prefix: "
"""The end of the previous line, followed by the name of the field for the removed path prefix."""

LINK: Final = b"link"
"""The shared watched name of Location, Content-Location, Link, Refresh and Set-Cookie."""

# When the gateway announces the end of a version, it replaces these fields of the service. It
# appends to Link, which is a list.
LIFECYCLE_FIELDS = frozenset({b"deprecation", b"sunset"})

# Fields that cannot carry a version, since HTTP or the gateway uses them for another purpose.
RESERVED_FIELDS = (
    _FORBIDDEN_IN_TRAILERS
    | BYTE_FIELDS
    | LIFECYCLE_FIELDS
    | frozenset(
        b"age allow date etag expires last-modified link location retry-after via"
        b" x-request-id".split()
    )
)

# The fields with which the gateway describes the client and its request.
_CLIENT_FIELDS = frozenset(
    {b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto"}
)

# Services trust these fields, so only the gateway and trusted proxies may set them. Some services
# route by x-original-url or x-rewrite-url instead of the path (CVE-2018-14773).
FORWARDING = _CLIENT_FIELDS | frozenset(
    b"x-forwarded-port x-forwarded-prefix x-forwarded-scheme x-forwarded-server x-forwarded-ssl"
    b" x-original-url x-rewrite-url".split()
)

# Fields in which proxies describe the client that they have authenticated: oauth2-proxy, Envoy,
# nginx, Traefik, Kong, Authelia, authentik, Grafana, Kubernetes, Azure, Cloudflare, RFC 9440.
_IDENTITY = re.compile(
    rb"x-forwarded-(user|email|groups|preferred-username|access-token|(tls-)?client-cert(-info)?)"
    rb"|x-(auth-request|authenticated|consumer|authentik|webauth|ms-client-principal)(-.+)?"
    rb"|(x-)?ssl-client(-.+)?|(x-)?client-(cert|dn|verify)(-.+)?|cf-access-authenticated-user-.+"
    rb"|(x-)?remote-(user|groups?|name|email|extra-.+)|x-(credential-identifier|anonymous-consumer)"
    rb"|x-(amzn-oidc-identity|goog-authenticated-user-.+)|tailscale-user-.+"
)


@lru_cache(maxsize=256)
def is_identity_field(name: bytes) -> bool:
    """Return whether services trust a field as the client's identity; `name` is in lower case."""
    return _IDENTITY.fullmatch(name.replace(b"_", b"-")) is not None


# Request fields that the gateway writes itself, so it never forwards the client's.
GATEWAY_FIELDS = frozenset({b"content-length", b"host", b"x-request-id", b"x-shadow"}) | FORWARDING

# Fields removed from responses of services. The gateway writes X-Request-Id itself. Alt-Svc names a
# port of the service (RFC 7838), at which clients would bypass the gateway; Caddy and YARP remove
# it as well.
REPLACED = frozenset({b"alt-svc", b"x-request-id"})

# The maximum length of a cached Content-Type; services send few different values.
_SHORT = 256

# Values of Connection that name no other field.
_ORDINARY: Final = frozenset({b"close", b"keep-alive", b"Keep-Alive"})

PSEUDONYM = b"version-gateway"

# The maximum number of spellings of a name; a name with ten dashes has 1,024.
_MAX_SPELLINGS = 1024

# Fields that some services read instead of the method in the request line.
METHOD_OVERRIDES = frozenset({b"x-http-method", b"x-http-method-override", b"x-method-override"})

# Fields that `filtered` reports, since they affect the handling of a message.
_WATCHED = METHOD_OVERRIDES | DIGESTS | {b"connection", b"date", b"expect", b"vary"}
_LINKS = frozenset({b"content-location", b"link", b"location", b"refresh", b"set-cookie"})
_DROPPED: Final = b""
# The maximum number of names in a cache, and the maximum length of each.
_MOST_NAMES, _LONGEST_NAME = 1024, 64


class FieldNames:
    """A set of field names, each with a value, and a bounded cache by the name as received.

    Most messages contain the same few names, so each spelling is lowercased and looked up only
    once.

    Args:
        names: The names, in lower case.
        values: The values of these and other names; by default, each name is its own value.

    Attributes:
        known: The cache, which performance-critical code reads directly. It maps a name to its
            value, or to None if the name has no value.
    """

    def __init__(self, names: Set[bytes], values: Mapping[bytes, bytes] | None = None) -> None:
        self.names = frozenset(names)
        self.known: dict[bytes, bytes | None] = {}
        self._values = {name: name for name in names} if values is None else values

    def examine(self, name: bytes) -> bytes | None:
        value = self._values.get(name.lower())
        # Only filters of requests drop the fields that describe the client.
        if value is None and b"x-forwarded-for" in self.names and is_identity_field(name.lower()):
            value = _DROPPED
        if len(self.known) < _MOST_NAMES and len(name) <= _LONGEST_NAME:
            self.known[name] = value
        return value


def watching_filter(names: frozenset[bytes], watch: frozenset[bytes] = frozenset()) -> FieldNames:
    """Return the actions of `filtered` on header fields, by field name.

    A field without a value is forwarded, and a field with an empty value is removed. Any other
    value is the lower-case name of a watched field, or LINK for all fields that contain links.

    Args:
        names: The fields to remove in addition to the hop-by-hop fields, in lower case.
        watch: The fields to watch in addition to those that are always watched.
    """
    values = dict.fromkeys(HOP_BY_HOP, _DROPPED) | dict.fromkeys(_LINKS, LINK)
    values |= {name: name for name in watch | _WATCHED} | dict.fromkeys(names, _DROPPED)
    return FieldNames(names, values)


header_filter = lru_cache(maxsize=64)(watching_filter)
"""Cached `watching_filter`, so that equal filters share their caches."""


def filtered(
    fields: Iterable[tuple[bytes, bytes]], actions: FieldNames
) -> tuple[HeaderFields, list[bytes]]:
    """Return the fields to forward, and the names of the watched fields that are present.

    Connection is reported only if it has options other than close and keep-alive. The fields that
    it names are also removed, except Content-Length, which frames the message (RFC 9110, section
    7.6.1).
    """
    kept: HeaderFields = []
    watched: list[bytes] = []
    named: set[bytes] | None = None
    known = actions.known
    for line in fields:
        try:
            action = known[line[0]]
        except KeyError:
            action = actions.examine(line[0])
        if action is None:
            kept.append(line)
        elif action:
            if action != b"connection":
                watched.append(action)
                kept.append(line)
            elif line[1] not in _ORDINARY:
                watched.append(action)
                named = set() if named is None else named
                named |= connection_options(line[1])
    if named is not None:
        named.discard(b"content-length")  # without it, the end of the body would be unknown
        kept = [line for line in kept if line[0].lower() not in named]
    return kept, watched


def connection_options(value: bytes) -> set[bytes]:
    """Return the options in a Connection value, in lower case."""
    # The set removes duplicates first, as clients may send thousands.
    return {option.strip(b" \t") for option in set(value.lower().split(b","))}


def end_to_end(fields: Iterable[tuple[bytes, bytes]], drop: frozenset[bytes]) -> HeaderFields:
    """Return the fields that are not hop-by-hop, not in `drop`, and not named by Connection."""
    return filtered(fields, header_filter(drop))[0]


def lookalikes(names: frozenset[bytes]) -> frozenset[bytes]:
    """Return the spellings that a service may confuse with one of `names`, in lower case.

    CGI (RFC 3875, section 4.1.18) and similar interfaces map X-Forwarded-For and X_Forwarded_For to
    the same variable. With such a spelling, a client could forge a field that the gateway removes.
    """
    spelt: set[bytes] = set()
    for name in names:
        mixtures = [b""]
        for part in re.split(b"([-_])", name):
            marks = (b"-", b"_") if part in (b"-", b"_") else (part,)
            mixtures = [begun + mark for begun in mixtures for mark in marks][:_MAX_SPELLINGS]
        spelt.update(mixtures, (name.replace(b"-", b"_"), name.replace(b"_", b"-")))
    return frozenset(spelt) - names


def unforwarded_names(read: Iterable[str] = ()) -> frozenset[bytes]:
    """Return the names of the request fields that are not forwarded, in lower case.

    These are the fields that the gateway writes itself, and the names that a service may confuse
    with a field that the gateway writes or reads.
    """
    names = {name.lower().encode() for name in read}
    return GATEWAY_FIELDS | lookalikes(GATEWAY_FIELDS | HOP_BY_HOP | METHOD_OVERRIDES | names)


def accepts_trailers(values: Iterable[str]) -> bool:
    """Return whether the values of TE accept trailer fields (RFC 9110, section 10.1.4)."""
    return any(
        member.partition(";")[0].strip(" \t").lower() == "trailers"
        for value in values
        for member in value.split(",")
    )


# `none` is a value of Accept-Ranges.
_OF_BYTES = re.compile(rb"[ \t]*(?:bytes\b|none\b|\Z)", re.IGNORECASE)


def without_byte_ranges(fields: HeaderFields) -> HeaderFields:
    """Return the fields without ranges of bytes, which do not apply to a converted body.

    Ranges of another unit stay, such as those of items for pages of a list (RFC 9110, section
    14.1).
    """
    kept = [
        line for line in fields if line[0].lower() not in RANGES or not _OF_BYTES.match(line[1])
    ]
    if any(line[0].lower() == b"range" for line in kept):
        return kept
    return [line for line in kept if line[0].lower() != b"if-range"]


def is_byte_part(fields: HeaderFields) -> bool:
    """Return whether a 206 response contains a range of bytes."""
    ranges = [value for name, value in fields if name.lower() == b"content-range"]
    return not ranges or any(map(_OF_BYTES.match, ranges))


def trailer_fields(fields: Iterable[tuple[bytes, bytes]]) -> HeaderFields:
    return [line for line in fields if line[0].lower() not in _FORBIDDEN_IN_TRAILERS]


def forwarded_node(address: bytes) -> bytes:
    """Return an address as a node of Forwarded: IPv6 in quoted brackets (RFC 7239, section 6)."""
    if address.count(b":") > 1 and not address.startswith(b"["):
        address = b"[%b]" % address
    return address if _TOKEN.match(address) else _quoted(address)


# More addresses than in any chain of proxies; a client may send very long fields.
_MOST_NODES = 64
# The addresses in Forwarded (RFC 7239, section 4).
_FOR = re.compile(rb'(?:^|[;,])[ \t]*for=(?:"([^"\\]*)"|([^",; \t]+))', re.IGNORECASE)
_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")


def _element(node: bytes, scheme: str, authority: str) -> bytes:
    proto = scheme.encode()
    return b"for=%b;host=%b;proto=%b" % (forwarded_node(node), _quoted(authority.encode()), proto)


def _derived(nodes: bytes, origin: tuple[str, str]) -> bytes:
    """Return the elements of Forwarded for the addresses in X-Forwarded-For."""
    if nodes.count(b",") >= _MOST_NODES:
        return b""
    first, *others = [node.strip(b" \t") for node in nodes.split(b",")]
    elements = [b"for=" + forwarded_node(node) for node in others if node]
    return b", ".join([_element(first, *origin), *elements]) if first else b""


def forwarding(
    peer: str,
    scheme: str,
    authority: str,
    inherited: FieldLines,
    origin: tuple[str, str] | None = None,
) -> FieldLines:
    """Return the Forwarded and X-Forwarded-* fields of a request that came from `peer`.

    Services differ in which of the fields they prefer, so all fields name the same client: if the
    proxy has written only one kind, the other is derived from it (RFC 7239, section 7.4).

    Args:
        inherited: the fields of the trusted proxy that sent the request, if one did.
        origin: the scheme and the authority that the client used, according to these fields.
    """
    given: dict[bytes, bytes] = {}
    for name, value in inherited:  # several lines form one list (RFC 9110, section 5.3)
        given[name.lower()] = _appended(given.get(name.lower()), value)
    own, sender = (scheme, authority), peer.encode()
    nodes, forwarded = given.get(b"x-forwarded-for"), given.get(b"forwarded")
    host, proto = given.get(b"x-forwarded-host"), given.get(b"x-forwarded-proto")
    if origin is None:
        pass
    elif not forwarded:
        forwarded = _derived(nodes or b"", origin)
        own = own if forwarded else origin
    elif not (nodes or host or proto) and forwarded.count(b",") < _MOST_NODES:
        nodes = b", ".join(quoted or plain for quoted, plain in _FOR.findall(forwarded))
        proto, host = (each.encode() for each in origin)
    return (
        (b"Forwarded", _appended(forwarded, _element(sender, *own))),
        (b"X-Forwarded-For", _appended(nodes, sender)),
        (b"X-Forwarded-Host", host or authority.encode()),
        (b"X-Forwarded-Proto", proto or scheme.encode()),
        *(line for line in inherited if line[0].lower() not in _CLIENT_FIELDS),
    )


def with_vary(fields: HeaderFields, names: tuple[str, ...]) -> HeaderFields:
    """Return `fields` with `names` added to Vary (RFC 9110, section 12.5.5)."""
    given = [value for name, value in fields if len(name) == 4 and name.lower() == b"vary"]
    if given:
        listed = {member.strip(b" \t").lower() for value in given for member in value.split(b",")}
        if b"*" in listed:
            return fields
        names = tuple(name for name in names if name.lower().encode() not in listed)
    return [*fields, (b"Vary", field_list(names))] if names else fields


def without_shared_caching(fields: HeaderFields) -> HeaderFields:
    """Return the fields of a response, changed so that no shared cache stores the response.

    Some caches ignore `Vary: *`, and some use their own fields (RFC 9213; Surrogate-Control;
    X-Accel-Expires of nginx).
    """
    kept: HeaderFields = []
    directives: list[bytes] = []
    for line in fields:
        name = line[0].lower()
        if name == b"cache-control":
            directives += (each.strip(b" \t") for each in _DIRECTIVES.findall(line[1]))
        elif name != b"vary" and not _FOR_SHARED.search(name):
            kept.append(line)
    directives = [each for each in directives if each and not _SHARES.match(each)]
    if not any(each.lower() == b"no-store" for each in directives):
        directives.insert(0, b"private")
    return [*kept, (b"Cache-Control", b", ".join(directives)), (b"Vary", b"*")]


# The members of a list. A quoted string may contain commas.
_DIRECTIVES = re.compile(rb'(?:[^,"]|"(?:[^"\\]|\\.)*"?)+', re.DOTALL)
# Directives that allow shared caches to store the response, and `private`, which may be limited to
# single fields.
_SHARES = re.compile(rb"(?:public|private|s-maxage)[ \t]*(?:=|\Z)", re.IGNORECASE)
_FOR_SHARED = re.compile(
    rb"cdn-cache-control\Z|\A(?:surrogate-control|x-accel-expires|edge-control)\Z"
)


@lru_cache(maxsize=1024)
def field_list(names: tuple[str, ...]) -> bytes:
    """Return names as a list in a field value (RFC 9110, section 5.6.1)."""
    return ", ".join(names).encode()


def upgrade(fields: HeaderFields) -> HeaderFields:
    """Return the Connection and Upgrade fields of a protocol switch (RFC 9110, section 7.8)."""
    kept = [line for line in fields if line[0].lower() == b"upgrade"]
    return [(b"Connection", b"Upgrade"), *kept]


def retype(fields: HeaderFields, content_type: str) -> None:
    """Replace Content-Type in `fields` by `content_type` if both have the same format.

    With `application/vnd.example+json`, `application/json` and `application/other+json` are
    replaced. A Content-Type of another format is unchanged.
    """
    for place, (name, value) in enumerate(fields):
        if len(name) == 12 and name.lower() == b"content-type":
            chosen = _cached_type if len(value) <= _SHORT else _type
            fields[place] = name, chosen(value, content_type)


def _type(given: bytes, content_type: str) -> bytes:
    called = content_type.encode()
    return called if _format(given) == _format(called) else given


def _format(content_type: bytes) -> bytes:
    essence = content_type.partition(b";")[0].strip(b" \t").lower()
    return essence.removeprefix(b"application/").rpartition(b"+")[2]


_cached_type = lru_cache(maxsize=256)(_type)


def _appended(before: bytes | None, element: bytes) -> bytes:
    return element if not before else before + b", " + element


def _quoted(value: bytes) -> bytes:
    return b'"' + value.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


BOUNDED_METHODS: Final = frozenset({"OPTIONS", "TRACE"})
"""The methods that Max-Forwards applies to (RFC 9110, section 7.6.2)."""

_MAX_FORWARDS = 10**9
"""The largest value to forward; larger values are reduced to it."""

_NUMBER = re.compile(r"[0-9]+")


def is_final_recipient(fields: HeaderLookup) -> bool:
    """Return whether Max-Forwards is 0, which forbids forwarding the request."""
    values = fields.getall("Max-Forwards", ())
    return len(values) == 1 and _number(values[0]) == 0


def with_fewer_forwards(fields: HeaderFields) -> HeaderFields:
    places = [place for place, line in enumerate(fields) if line[0].lower() == b"max-forwards"]
    if len(places) != 1:
        return fields
    (place,) = places
    name, value = fields[place]
    number = _number(value.decode("latin-1"))
    if not number:
        return fields
    line = name, b"%d" % min(number - 1, _MAX_FORWARDS)
    return [*fields[:place], line, *fields[place + 1 :]]


def _number(value: str) -> int | None:
    if not _NUMBER.fullmatch(value):
        return None
    digits = value.lstrip("0")
    # int() takes quadratic time for long numbers.
    return _MAX_FORWARDS + 1 if len(digits) > len(str(_MAX_FORWARDS)) else int(digits or "0")
