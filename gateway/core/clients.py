"""Clients: who asks, by a name that can go into logs and tables.

A name serves to count and to choose by; it lets nobody in. Secrets never are one.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Protocol

from gateway.core.request import RequestHead
from gateway.core.versions.readers import QueryReader

ANONYMOUS = ""
"""The name of who is not named."""

# Names are keys of tables and are kept for long.
LONGEST = 64
_HASHED = re.compile(r"hash-[0-9a-f]{12}\Z")

Network = IPv4Network | IPv6Network


class ClientSource(Protocol):
    """One thing about a request that may name the client."""

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
    content = text.encode("utf-8", "surrogateescape")
    return f"hash-{blake2b(content, key=key, digest_size=6).hexdigest()}"


@dataclass(frozen=True, slots=True)
class ClientNaming:
    """How clients are named: the first source that says something does it.

    Attributes:
        sources: in order of preference.
        key: where it is set, names are known as their hashes only.
    """

    sources: tuple[ClientSource, ...]
    key: bytes = field(default=b"", repr=False)

    def name(self, head: RequestHead, peer: str) -> str:
        """Return the name of who asks, or ANONYMOUS."""
        for source in self.sources:
            said = source.read(head, peer)
            if said:
                return self._shown(said)
        return ANONYMOUS

    def known_as(self, name: str) -> str:
        """Return the name by which requests of a client come that an operator calls so.

        What has been hashed already, and so stands in logs and tables, is taken as it is.
        """
        return name if _HASHED.match(name) else self._shown(name)

    def _shown(self, said: str) -> str:
        # What would break out of a line or a table is hashed as well, and so is what is too long:
        # to cut it would make one of two clients.
        if not self.key and len(said) <= LONGEST and said.isprintable():
            return said
        return digest(said, self.key)


@dataclass(frozen=True, slots=True)
class HeaderName:
    """A header in which clients say who they are; the first line of it counts."""

    field: str

    def read(self, head: RequestHead, peer: str) -> str | None:
        """Return its value, without the optional white space around it."""
        values = head.fields.getall(self.field, ())
        return values[0].strip(" \t") if values else None


@dataclass(frozen=True, slots=True)
class QueryName:
    """A query parameter; the first of that name counts."""

    reader: QueryReader

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
    """A claim of a JSON Web Token (RFC 7519)."""

    place: ClientSource
    claim: str
    claims: Claims

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

    def read(self, head: RequestHead, peer: str) -> str | None:
        """Return the address nearest to us that is no trusted proxy's."""
        address = _address(peer)
        if address is not None and self._trusts(address):
            for given in reversed(_forwarded_for(head)):
                before = _address(given)
                if before is None:  # what lies behind it may be anybody's word
                    break
                address = before
                if not self._trusts(address):
                    break
        return None if address is None else _network(address, self.ipv4, self.ipv6)

    def _trusts(self, address: IPv4Address | IPv6Address) -> bool:
        return any(address in network for network in self.trusted)


# RFC 7239, section 4: the node that asked, in quotes where it has a colon.
_FOR = re.compile(r'(?:^|[;,])[ \t]*for=(?:"([^"\\]*)"|([^",; \t]+))', re.IGNORECASE)
# An address as proxies write it: in brackets or not, with a port or not.
_NODE = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::[0-9]+)?\Z|([0-9.]+):[0-9]+\Z")


def _forwarded_for(head: RequestHead) -> Sequence[str]:
    lines = head.fields.getall("X-Forwarded-For", ())
    if lines:
        return [given.strip(" \t") for line in lines for given in line.split(",")]
    lines = head.fields.getall("Forwarded", ())
    return [quoted or plain for line in lines for quoted, plain in _FOR.findall(line)]


# The longest address, in brackets and with its port; IPv6 may have a zone.
_LONGEST_NODE = 64


def _address(text: str) -> IPv4Address | IPv6Address | None:
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
