"""Clients: the name of a client, which can go into logs and tables, and what proves it.

A name serves to count and to choose by. It is worth what proves it: a credential that was checked,
the network that a connection came from, or the word of the client alone. Secrets are never names.
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
"""The name of who is not named."""

# Names are keys of tables and are kept for long.
LONGEST = 64
_HASHED = re.compile(r"hash-[0-9a-f]{12}\Z")
UNVERIFIED = "unverified:"
"""What stands before a name that a client only claims, where the rules can verify others."""
# Letters that look like nothing (Unicode: Default_Ignorable_Code_Point, and the blank of Braille):
# two names that differ in one would look the same.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)

Network = IPv4Network | IPv6Network


class Proof(Enum):
    """What proves a name.

    A credential of a known owner, possession of a key of an unknown one, the network that a
    connection came from, or nothing but the claim of the client.
    """

    CREDENTIAL = "credential"
    POSSESSION = "possession"
    NETWORK = "network"
    CLAIM = "claim"


class ClientSource(Protocol):
    """One thing about a request that may name the client."""

    @property
    def proof(self) -> Proof:
        """What proves the names that it gives."""
        ...

    def read(self, head: RequestHead, peer: str) -> str | None:
        """Return what it says, or None where it says nothing.

        Args:
            head: the head of the request.
            peer: the address that it came from; empty where that is not known.
        """
        ...


def digest(text: str, key: bytes = b"") -> str:
    """Return the short keyed hash of a text (BLAKE2, RFC 7693, section 2.9).

    Without the key, nobody finds out whose it is by trying the names there might be.

    Args:
        text: what a client sent; what is no valid Unicode in it is taken as it is.
        key: at most 64 bytes.
    """
    content = text.encode("utf-8", "surrogatepass")
    return f"hash-{blake2b(content, key=key, digest_size=6).hexdigest()}"


@dataclass(frozen=True, slots=True)
class ClientNaming:
    """How clients are named: the first source that finds a name gives it.

    Where any source checks a credential, a name that a client only claims is marked as UNVERIFIED,
    so that it never counts as the name of a client that proved it.

    Attributes:
        sources: in order of preference.
        key: where it is set, names are known as their hashes only.
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
            if found and (found := found.strip(" ")):
                if source.proof is not Proof.CLAIM:
                    return self._shown(found)
                return self._mark + self._shown(_unlike_a_hash(found))
        return ANONYMOUS

    @property
    def verifies(self) -> bool:
        """Whether any source checks a credential."""
        return any(source.proof is Proof.CREDENTIAL for source in self.sources)

    def known_as(self, name: str) -> str:
        """Return the name that requests of a client have which an operator calls so.

        A hash, which stands in logs and tables, is taken as it is. UNVERIFIED before a name means
        the client that only claims it.
        """
        mark = UNVERIFIED if name.startswith(UNVERIFIED) else ""
        name = name.removeprefix(UNVERIFIED)
        return mark + (name if _HASHED.match(name) else self._shown(name))

    def _shown(self, name: str) -> str:
        # What would break out of a line or a table is hashed as well, and so is what is too long:
        # to cut it would make one of two clients. A hash of a credential stays as it is.
        if (
            not self.key
            and len(name) <= LONGEST
            and name.isprintable()
            and not _INVISIBLE.search(name)
            and not name.startswith(UNVERIFIED)
        ):
            return name
        return digest(name, self.key)


def _unlike_a_hash(name: str) -> str:
    """Return a claimed name, hashed where it could be taken for the hash of a credential."""
    return digest(name) if _HASHED.match(name) else name


@dataclass(frozen=True, slots=True)
class HeaderName:
    """A header in which clients give their names; the first line of it counts."""

    field: str

    proof = Proof.CLAIM

    def read(self, head: RequestHead, peer: str) -> str | None:
        """Return its value, without the optional white space around it."""
        values = head.fields.getall(self.field, ())
        return values[0].strip(" \t") if values else None


@dataclass(frozen=True, slots=True)
class QueryName:
    """A query parameter; the first of that name counts."""

    reader: QueryReader

    proof = Proof.CLAIM

    def read(self, head: RequestHead, peer: str) -> str | None:
        """Return its value."""
        return next(iter(self.reader.read(head, {})), None)


@dataclass(frozen=True, slots=True)
class KeyName:
    """An API key: a secret, so that its owner's name or its hash stand for it.

    Attributes:
        place: where the key is.
        owners: names by the hashes of their keys; the keys themselves are not kept.
        key: of the hashes.
    """

    place: ClientSource
    owners: Mapping[str, str]
    key: bytes = field(default=b"", repr=False)

    @property
    def proof(self) -> Proof:
        """Return CREDENTIAL where owners are known."""
        return Proof.CREDENTIAL if self.owners else Proof.POSSESSION

    def read(self, head: RequestHead, peer: str) -> str | None:
        """Return the owner of the key, or the hash of one that nobody is known to own."""
        secret = self.place.read(head, peer)
        if not secret:
            return None
        hashed = digest(secret, self.key)
        return self.owners.get(hashed, hashed)


Claims = Callable[[str], Mapping[str, object] | None]
"""From a token to its claims; None where it has none that count."""


@dataclass(frozen=True, slots=True)
class ClaimName:
    """A claim of a JSON Web Token (RFC 7519).

    Attributes:
        place: where the token is.
        claim: the name of the claim.
        claims: returns the claims of a token.
        proof: CREDENTIAL where `claims` verifies signatures, else CLAIM.
    """

    place: ClientSource
    claim: str
    claims: Claims
    proof: Proof = Proof.CREDENTIAL

    def read(self, head: RequestHead, peer: str) -> str | None:
        """Return the claim, if it is a text or a whole number."""
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
    """The address that the request came from, or the network that it lies in.

    Attributes:
        ipv4: length of the prefix that is kept of an IPv4 address.
        ipv6: likewise, of an IPv6 address.
        trusted: proxies, behind which the address is the one that they give.
    """

    ipv4: int = 32
    ipv6: int = 128
    trusted: tuple[Network, ...] = ()

    proof = Proof.NETWORK

    def read(self, head: RequestHead, peer: str) -> str | None:
        """Return the address nearest to us that is no trusted proxy's."""
        address = parse_address(peer)
        if address is not None and _lies_in(address, self.trusted):
            for before in _forwarded_for(head):
                address = before
                if not _lies_in(address, self.trusted):
                    break
        return None if address is None else _network(address, self.ipv4, self.ipv6)


def trusts(networks: Sequence[Network], peer: str) -> bool:
    """Whether an address lies in one of these networks; one that cannot be read does not."""
    if not networks:
        return False
    address = parse_address(peer)
    return address is not None and _lies_in(address, networks)


def _lies_in(address: IPv4Address | IPv6Address, networks: Sequence[Network]) -> bool:
    return any(address in network for network in networks)


# RFC 7239, section 4: the node that asked, in quotes where it has a colon.
_FOR = re.compile(r'(?:^|[;,])[ \t]*for=(?:"([^"\\]*)"|([^",; \t]+))', re.IGNORECASE)
# An address as proxies write it: in brackets or not, with a port or not.
_NODE = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::[0-9]+)?\Z|([0-9.]+):[0-9]+\Z")


def _forwarded_for(head: RequestHead) -> Iterator[IPv4Address | IPv6Address]:
    """Yield the addresses that proxies forwarded for, the nearest first, while they are certain.

    A proxy that writes one of the two fields passes on what a client wrote into the other. So where
    both are there, addresses count as far as both agree; behind one that is unknown or hidden,
    anybody may have written the rest.
    """
    lines = head.fields.getall("X-Forwarded-For", ())
    listed = [node.strip(" \t") for line in lines for node in line.split(",")]
    chain = [parse_address(node) for node in reversed(listed)]
    lines = head.fields.getall("Forwarded", ())
    nodes = [quoted or plain for line in lines for quoted, plain in _FOR.findall(line)]
    other = [parse_address(node) for node in reversed(nodes)]
    if chain and other:
        chain = [one if one == two else None for one, two in zip(chain, other, strict=False)]
    for address in chain or other:
        if address is None:
            return
        yield address


# The longest address, in brackets and with its port; IPv6 may have a zone.
_LONGEST_NODE = 64


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a proxy or a socket writes so; None where it is none.

    An IPv4 address that came through an IPv6 socket is an IPv4 address (RFC 4291, 2.5.5.2).
    """
    return _read(text) if len(text) <= _LONGEST_NODE else None


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
