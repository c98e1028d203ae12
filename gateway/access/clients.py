"""`clients` in gateway.yaml: the name of a client, which may be logged and stored, and its proof.

A name serves to count requests by and to choose versions by. It is as reliable as its proof: a
checked credential, the network of the connection, or nothing but the claim of the client. A secret
is never used as a name.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Annotated, Literal, NamedTuple

from pydantic import Discriminator, Field, Tag

from gateway.access.jwt import Jwt
from gateway.base.addresses import Network, client_network
from gateway.base.client_names import ANONYMOUS, LONGEST, UNVERIFIED, digest
from gateway.base.files import ConfigFiles
from gateway.base.mistakes import Location, Mistakes
from gateway.base.model import (
    ClientName,
    FieldName,
    NonEmptyText,
    NumberText,
    Secret,
    SectionModel,
    Some,
)
from gateway.base.request import RequestHead
from gateway.base.urls import parameter_values


class ApiKey(SectionModel):
    """An API key gives the client its name. The key itself is never shown."""

    header: FieldName | None = None
    """The request header that holds the API key. An API key is in either a header or the query."""
    query: NonEmptyText | None = None
    """The query parameter that holds the API key."""
    keys: dict[ClientName, Secret] = Field(default_factory=dict)
    """The API keys by the names of their owners. The name for an unlisted key is a short hash of
    it. By default, none is listed."""

    def compile(
        self, hash_key: bytes, at: Location, mistakes: Mistakes
    ) -> Callable[[str], str] | None:
        if (self.header is None) == (self.query is None):
            mistakes.add(
                "an API key is in either a header or the query; write { header: X-Api-Key } or"
                " { query: key }",
                *at,
            )
            return None
        owners: dict[str, str] = {}
        for owner, secret in self.keys.items():
            other = owners.setdefault(digest(secret, hash_key), owner)
            if other != owner:
                text = f"has the same key as {other}; one key has one owner"
                mistakes.add(text, *at, "keys", owner)

        def name(secret: str) -> str:
            hashed = digest(secret, hash_key)
            return owners.get(hashed, hashed)

        return name


# Texts that tables show in place of a name.
_RESERVED = frozenset({"(anonymous)", "(others)"})
_HASHED = re.compile(r"hash-[0-9a-f]{12}\Z")
# Invisible characters (Unicode: Default_Ignorable_Code_Point, and the blank of Braille): two names
# that differ in one would look the same.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


class ClientAddress(SectionModel):
    """The network of the client's address gives the client its name."""

    ipv4: Annotated[int, Field(ge=1, le=32), NumberText] = 32
    """The prefix length of an IPv4 address, in bits. The default is 32."""
    ipv6: Annotated[int, Field(ge=1, le=128), NumberText] = 128
    """The prefix length of an IPv6 address, in bits. The default is 128."""


def _flag_or_prefixes(value: object) -> str:
    return "flag" if isinstance(value, bool) else "prefixes"


class ClientSource(SectionModel):
    """One source of client names: a header, an API key, a token or the address."""

    header: FieldName | None = None
    """The request header in which clients give their own name."""
    api_key: ApiKey | None = None
    """Names a client by its API key."""
    jwt: Jwt | None = None
    """Names a client by a claim of its JSON Web Token. For an expired, not yet valid or
    unverifiable token, the next source applies."""
    address: (
        Annotated[
            Annotated[Literal[True], Tag("flag")] | Annotated[ClientAddress, Tag("prefixes")],
            Discriminator(_flag_or_prefixes),
        ]
        | None
    ) = None
    """Names a client by its IP address; `true` uses the whole address. Behind a trusted proxy, it
    is the forwarded address."""

    def compile(
        self,
        hash_key: bytes,
        trusted: tuple[Network, ...],
        files: ConfigFiles,
        at: Location,
        mistakes: Mistakes,
    ) -> "NameSource | None":
        known = ClientSource.model_fields
        if sum(getattr(self, name) is not None for name in known) != 1:
            mistakes.add(f"needs exactly one of {', '.join(known)}", *at)
            return None
        if self.header is not None:
            return NameSource(header_value(self.header), Proof.CLAIM)
        if self.api_key is not None:
            header, query = self.api_key.header, self.api_key.query
            owner = self.api_key.compile(hash_key, (*at, "api_key"), mistakes)
            if owner is None:
                return None
            place = header_value(header) if header else query_value(query or "")
            proof = Proof.CREDENTIAL if self.api_key.keys else Proof.POSSESSION
            return NameSource(_converted(place, owner), proof)
        if self.jwt is not None:
            claim = mistakes.attempt(partial(self.jwt.compile, files), *at, "jwt")
            if claim is None:
                return None
            proof = Proof.CREDENTIAL if self.jwt.is_verified else Proof.CLAIM
            return NameSource(_converted(header_value(self.jwt.header), claim), proof)
        if isinstance(self.address, ClientAddress):
            return address_source(trusted, self.address.ipv4, self.address.ipv6)
        return address_source(trusted)


class Clients(SectionModel):
    """What gives clients the names that they have in logs, usage and rules."""

    by: Some[ClientSource]
    """The sources of client names. The first source with a name in the request applies. If any
    source checks a credential, an unproven name begins with `unverified:`."""
    hash: Secret | None = None
    """The secret with which client names are hashed before they are stored or shown. Without it,
    names are stored and shown unchanged."""

    @property
    def vary(self) -> tuple[str, ...]:
        """The request headers that give names; `*` stands for the address."""
        names: dict[str, None] = {}
        for source in self.by:
            for place in (source.api_key, source.jwt, source):
                if place is not None and place.header is not None:
                    names[place.header] = None
            if source.address is not None:
                names["*"] = None  # no header field has it (RFC 9110, section 12.5.5)
        return tuple(names)

    def compile(
        self, trusted: tuple[Network, ...], files: ConfigFiles, mistakes: Mistakes
    ) -> "ClientNaming":
        # A secret of any length becomes a key that BLAKE2 accepts.
        key = b"" if self.hash is None else blake2b(self.hash.encode()).digest()
        sources = [
            source.compile(key, trusted, files, ("clients", "by", index), mistakes)
            for index, source in enumerate(self.by)
        ]
        naming = ClientNaming(tuple(source for source in sources if source is not None), key)
        for index, source in enumerate(sources):
            if source is None or source.proof is not Proof.CLAIM:
                continue
            if naming.verifies:
                mistakes.warn(
                    "warning: names that clients only claim here begin with 'unverified:', since"
                    " other names are verified; pins and exemptions of verified clients do not"
                    " apply to them",
                    *("clients", "by", index),
                )
            elif self.by[index].jwt is not None:
                mistakes.warn(
                    "warning: any client can claim any name, since the token is not verified; add"
                    " algorithms, and key or key_file",
                    *("clients", "by", index, "jwt"),
                )
        return naming


class Proof(Enum):
    CREDENTIAL = "the credential of a known owner"
    POSSESSION = "an API key whose owner is unknown"
    NETWORK = "the network of the connection"
    CLAIM = "nothing but the claim of the client"


NameReader = Callable[[RequestHead, str], str | None]
"""Returns a name, or None, from the head of a request and the address that it came from.

The address is empty where it is unknown.
"""


class NameSource(NamedTuple):
    """A source of client names, such as a header field, and the proof of the names in it."""

    read: NameReader
    proof: Proof


def header_value(name: str) -> NameReader:
    """Return the reader of the first line of a header field, without surrounding white space."""

    def read(head: RequestHead, peer: str) -> str | None:
        values = head.fields.getall(name, ())
        return values[0].strip(" \t") if values else None

    return read


def query_value(parameter: str) -> NameReader:
    return lambda head, peer: next(iter(parameter_values(head.query, parameter)), None)


def address_source(
    trusted: tuple[Network, ...] = (), ipv4: int = 32, ipv6: int = 128
) -> NameSource:
    """Return the source of the client's address, or its network, behind trusted proxies.

    `ipv4` and `ipv6` are the lengths, in bits, of the prefixes that are kept of an address.
    """
    return NameSource(
        lambda head, peer: client_network(head, peer, ipv4, ipv6, trusted), Proof.NETWORK
    )


def _converted(place: NameReader, name: Callable[[str], str | None]) -> NameReader:
    def read(head: RequestHead, peer: str) -> str | None:
        text = place(head, peer)
        return name(text) if text else None

    return read


@dataclass(frozen=True, slots=True)
class ClientNaming:
    """The rules by which clients are named: the first source that finds a name decides.

    Where any source checks a credential, a name that a client only claims is marked as UNVERIFIED,
    so that it never counts as the name of a client that proved it.

    Attributes:
        key: The key by which every name is replaced by its hash; empty keeps plain names.
        verifies: Whether any source checks credentials.
    """

    sources: tuple[NameSource, ...]
    key: bytes = field(default=b"", repr=False)
    verifies: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        verifies = any(source.proof is Proof.CREDENTIAL for source in self.sources)
        object.__setattr__(self, "verifies", verifies)

    def name(self, head: RequestHead, peer: str) -> str:
        for read, proof in self.sources:
            found = read(head, peer)
            if found:
                claimed = proof is Proof.CLAIM
                # Clients send the same few names over and over.
                shown = _cached_shown if len(found) <= LONGEST else _shown
                name = shown(found.strip(" "), self.key, claimed)
                if name:
                    return UNVERIFIED + name if claimed and self.verifies else name
        return ANONYMOUS

    def known_as(self, name: str) -> str:
        """Return the name, as requests have it, of a client that an operator names.

        A hash, as logs and tables show it, is kept. A name with the prefix UNVERIFIED means the
        clients that claim the name without proof.
        """
        prefix = UNVERIFIED if name.startswith(UNVERIFIED) else ""
        name = name.removeprefix(UNVERIFIED)
        return prefix + (name if _HASHED.match(name) else _shown(name, self.key))


def _shown(name: str, key: bytes, claimed: bool = False) -> str:
    """Return a name as logs and tables show it; empty for an empty one.

    A name is hashed if it could break a log line or a table, if tables use it for other clients,
    or if it is too long, since truncation could merge two clients. The hash of a credential stays
    as it is, and a claimed name that could be mistaken for one is hashed.
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


_cached_shown = lru_cache(maxsize=1024)(_shown)
