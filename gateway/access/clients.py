"""Clients: the name of a client, which may be logged and stored, and the proof of that name.

A name serves to count requests by and to choose versions by. It is as reliable as its proof: a
checked credential, the network of the connection, or nothing but the claim of the client. A secret
is never used as a name.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from hashlib import blake2b
from typing import Protocol

from gateway.base.addresses import (
    Network,
    client_network,
)
from gateway.base.client_names import ANONYMOUS, LONGEST, UNVERIFIED
from gateway.base.query_parameters import parameter_values
from gateway.base.request import RequestHead

# What tables have in place of a name.
_RESERVED = frozenset({"(anonymous)", "(others)"})
_HASHED = re.compile(r"hash-[0-9a-f]{12}\Z")
# Invisible characters (Unicode: Default_Ignorable_Code_Point, and the blank of Braille): two names
# that differ in one would look the same.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


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

    parameter: str

    proof = Proof.CLAIM

    def read(self, head: RequestHead, peer: str) -> str | None:
        """Return the value of the query parameter, or None if it is absent."""
        return next(iter(parameter_values(head.query, self.parameter)), None)


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
        return client_network(head, peer, self.ipv4, self.ipv6, self.trusted)
