"""Clients: the name of a client, which may be logged and stored, and the proof of that name.

A name serves to count requests by and to choose versions by. It is as reliable as its proof: a
checked credential, the network of the connection, or nothing but the claim of the client. A secret
is never used as a name.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from hashlib import blake2b
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Protocol

from gateway.core.request import RequestHead
from gateway.core.versions.mechanisms.query_reader import QueryReader

ANONYMOUS = ""
"""The name of a client for which no source finds a name."""

# The maximum length of a name, in characters. Names are keys of tables that are kept for long.
LONGEST = 64
# What tables have in place of a name.
_RESERVED = frozenset({"(anonymous)", "(others)"})
_HASHED = re.compile(r"hash-[0-9a-f]{12}\Z")
UNVERIFIED = "unverified:"
"""The prefix of a claimed, unproved name, where another source can verify names."""
# Invisible characters (Unicode: Default_Ignorable_Code_Point, and the blank of Braille): two names
# that differ in one would look the same.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)

Network = IPv4Network | IPv6Network


class Proof(Enum):
    """The proof of a client's name.

    It is the credential of a known owner, the possession of a key whose owner is unknown, the
    network that the connection came from, or nothing but the claim of the client.
    """

    CREDENTIAL = "credential"
    POSSESSION = "possession"
    NETWORK = "network"
    CLAIM = "claim"


class ClientSource(Protocol):
    """A source of client names, such as a header field or the address of the request."""

    @property
    def proof(self) -> Proof:
        """The proof of the names that this source finds."""
        ...

    def read(self, head: RequestHead, peer: str) -> str | None:
        """Return the name that this source finds, or None if it finds none.

        Args:
            head: The head of the request.
            peer: The address that the request came from; empty where it is unknown.
        """
        ...


def digest(text: str, key: bytes = b"") -> str:
    """Return the short keyed hash of a text (BLAKE2, RFC 7693, section 2.9).

    An attacker without the key cannot find the text by hashing candidates.

    Args:
        text: The text that a client sent; lone surrogates in it are hashed as they are.
        key: The key of the hash, at most 64 bytes.
    """
    content = text.encode("utf-8", "surrogatepass")
    return f"hash-{blake2b(content, key=key, digest_size=6).hexdigest()}"


@dataclass(frozen=True, slots=True)
class ClientNaming:
    """The rules by which clients are named: the first source that finds a name decides.

    Where any source checks a credential, a name that a client only claims is marked as UNVERIFIED,
    so that it never counts as the name of a client that proved it.

    Attributes:
        sources: The sources of names, in order of preference.
        key: The key by which every name is replaced by its hash; empty keeps plain names.
    """

    sources: tuple[ClientSource, ...]
    key: bytes = field(default=b"", repr=False)
    _mark: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_mark", UNVERIFIED if self.verifies else "")

    def name(self, head: RequestHead, peer: str) -> str:
        """Return the name of the client, or ANONYMOUS."""
        for source in self.sources:
            found = source.read(head, peer)
            if found:
                claimed = source.proof is Proof.CLAIM
                # Clients send the same few names over and over.
                named = _remembered if len(found) <= LONGEST else _shown
                name = named(found.strip(" "), self.key, claimed)
                if name:
                    return self._mark + name if claimed else name
        return ANONYMOUS

    @property
    def verifies(self) -> bool:
        """Whether any source checks credentials."""
        return any(source.proof is Proof.CREDENTIAL for source in self.sources)

    def known_as(self, name: str) -> str:
        """Return the name, as requests carry it, of a client that an operator names.

        A hash, as logs and tables show it, is kept. A name with the prefix UNVERIFIED means the
        clients that claim the name without proof.
        """
        mark = UNVERIFIED if name.startswith(UNVERIFIED) else ""
        name = name.removeprefix(UNVERIFIED)
        return mark + (name if _HASHED.match(name) else _shown(name, self.key))


def _shown(name: str, key: bytes, claimed: bool = False) -> str:
    """Return a name as logs and tables show it; empty for an empty one.

    A name that could break a log line or a table is hashed, and so is one that stands for others
    there, or that is too long, since truncation could merge two clients. The hash of a credential
    stays as it is, and a claimed name that could be mistaken for one is hashed.
    """
    if claimed and _HASHED.match(name):
        name = digest(name)
    if not name or (
        not key
        and len(name) <= LONGEST
        and name.isprintable()
        and not _INVISIBLE.search(name)
        and not name.startswith(UNVERIFIED)
        and name not in _RESERVED
    ):
        return name
    return digest(name, key)


_remembered = lru_cache(maxsize=1024)(_shown)


@dataclass(frozen=True, slots=True)
class HeaderName:
    """A header field that holds the name of the client; the first field line counts."""

    field: str

    proof = Proof.CLAIM

    def read(self, head: RequestHead, peer: str) -> str | None:
        """Return the value of the header field without the white space around it, or None."""
        values = head.fields.getall(self.field, ())
        return values[0].strip(" \t") if values else None


@dataclass(frozen=True, slots=True)
class QueryName:
    """A query parameter that holds the name of the client; the first of its name counts."""

    reader: QueryReader

    proof = Proof.CLAIM

    def read(self, head: RequestHead, peer: str) -> str | None:
        """Return the value of the query parameter, or None if it is absent."""
        return next(iter(self.reader.read(head, {})), None)


@dataclass(frozen=True, slots=True)
class KeyName:
    """An API key, a secret for which the name of its owner or its hash is used as the name.

    Attributes:
        place: The source that holds the API key.
        owners: The names of the owners by the hashes of their API keys, which are not kept.
        key: The key of the hashes.
    """

    place: ClientSource
    owners: Mapping[str, str]
    key: bytes = field(default=b"", repr=False)

    @property
    def proof(self) -> Proof:
        """The proof of the names: CREDENTIAL where owners are configured, else POSSESSION."""
        return Proof.CREDENTIAL if self.owners else Proof.POSSESSION

    def read(self, head: RequestHead, peer: str) -> str | None:
        """Return the owner of the API key, or its hash if the owner is unknown."""
        secret = self.place.read(head, peer)
        if not secret:
            return None
        hashed = digest(secret, self.key)
        return self.owners.get(hashed, hashed)


Claims = Callable[[str], Mapping[str, object] | None]
"""A function that returns the claims of a token, or None if the token is not accepted."""


@dataclass(frozen=True, slots=True)
class ClaimName:
    """A claim of a JSON Web Token (RFC 7519) that holds the name of the client.

    Attributes:
        place: The source that holds the token.
        claim: The name of the claim.
        claims: The function that returns the claims of a token.
        proof: CREDENTIAL where `claims` verifies signatures, else CLAIM.
    """

    place: ClientSource
    claim: str
    claims: Claims
    proof: Proof = Proof.CREDENTIAL

    def read(self, head: RequestHead, peer: str) -> str | None:
        """Return the value of the claim if it is a text or an integer, else None."""
        said = self.place.read(head, peer)
        if not said:
            return None
        scheme, _, token = said.rpartition(" ")
        if scheme.rstrip(" ").lower() not in ("", "bearer"):  # RFC 6750, section 2.1
            return None
        value = (self.claims(token) or {}).get(self.claim)
        if isinstance(value, bool) or not isinstance(value, str | int):
            return None
        return str(value)


@dataclass(frozen=True, slots=True)
class AddressName:
    """The address of the client, or the network of that address, as its name.

    Attributes:
        ipv4: The length, in bits, of the prefix that is kept of an IPv4 address.
        ipv6: The length, in bits, of the prefix that is kept of an IPv6 address.
        trusted: The networks of trusted proxies, whose forwarding fields hold the address of the
            client.
    """

    ipv4: int = 32
    ipv6: int = 128
    trusted: tuple[Network, ...] = ()

    proof = Proof.NETWORK

    def read(self, head: RequestHead, peer: str) -> str | None:
        """Return the network of the nearest address that is not a trusted proxy's, or None."""
        address = parse_address(peer)
        if address is not None and _lies_in(address, self.trusted):
            for before in _forwarded_for(head):
                address = before
                if not _lies_in(address, self.trusted):
                    break
        return None if address is None else _network(address, self.ipv4, self.ipv6)


def trusts(networks: Sequence[Network], peer: str) -> bool:
    """Return whether the address `peer` lies in one of the networks; invalid ones never do."""
    if not networks:
        return False
    address = parse_address(peer)
    return address is not None and _lies_in(address, networks)


def _lies_in(address: IPv4Address | IPv6Address, networks: Sequence[Network]) -> bool:
    return any(address in network for network in networks)


# RFC 7239, section 4: the node that sent the request, in quotes where it contains a colon.
_FOR = re.compile(r'(?:^|[;,])[ \t]*for=(?:"([^"\\]*)"|([^",; \t]+))', re.IGNORECASE)
# An address as proxies write it: with or without brackets, with or without a port.
_NODE = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::[0-9]+)?\Z|([0-9.]+):[0-9]+\Z")


def _forwarded_for(head: RequestHead) -> Iterator[IPv4Address | IPv6Address]:
    """Yield the addresses of X-Forwarded-For and Forwarded, the nearest first, while reliable.

    A proxy that writes only one of the two fields forwards the other as the client sent it. So
    where both are present, addresses count as far as both fields agree. Addresses beyond one that
    is unknown or obfuscated may be forged, and do not count.
    """
    lines = head.fields.getall("X-Forwarded-For", ())
    listed = [node for line in lines for node in line.split(",")]
    lines = head.fields.getall("Forwarded", ())
    nodes = [quoted or plain for line in lines for quoted, plain in _FOR.findall(line)]
    # Only the nearest are parsed: of what a client itself has written, that takes long.
    chain = [
        (parse_address(node.strip(" \t")) for node in reversed(each))
        for each in (listed, nodes)
        if each
    ]
    for address, *other in zip(*chain, strict=False):
        if address is None or other not in ([], [address]):
            return
        yield address


# The maximum length of an address with brackets and port, in characters; IPv6 may have a zone.
_LONGEST_NODE = 64


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a proxy or a socket writes as `text`, or None if it is invalid.

    An IPv4-mapped IPv6 address is returned as the IPv4 address (RFC 4291, section 2.5.5.2).
    """
    return _read(text) if len(text) <= _LONGEST_NODE else None


def plain_address(text: str) -> str:
    """Return the address of a socket; of an IPv4-mapped IPv6 address, the IPv4 address.

    A socket that listens on `::` has such addresses for its IPv4 clients.
    """
    return text.removeprefix("::ffff:") if "." in text else text


@lru_cache(maxsize=1024)
def _read(text: str) -> IPv4Address | IPv6Address | None:
    node = _NODE.match(text)
    try:
        address = ip_address(text if node is None else node[1] or node[2])
    except ValueError:
        return None
    return (address.ipv4_mapped if isinstance(address, IPv6Address) else None) or address


@lru_cache(maxsize=1024)
def _network(address: IPv4Address | IPv6Address, ipv4: int, ipv6: int) -> str:
    kept = ipv4 if address.version == 4 else ipv6
    network = ip_network((address, kept), strict=False)
    return str(address) if kept == network.max_prefixlen else str(network)
