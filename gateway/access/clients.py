"""`clients` in gateway.yaml: the name of a client, which may be logged and stored, and its proof.

A secret is never used as a name.
"""

import re
from collections.abc import Callable, Collection
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from gateway.access.api_keys import ApiKey
from gateway.access.jwt import Jwt
from gateway.access.key_sets import KeySet
from gateway.access.name_source import Certificate, NameReader, NameSource
from gateway.base.addresses import Network, client_network, trusts
from gateway.base.client_names import (
    CREDENTIALS,
    LONGEST,
    NOBODY,
    UNVERIFIED,
    Credential,
    Identity,
    Rejection,
    digest,
)
from gateway.base.files import ConfigFiles
from gateway.base.headers import is_identity_field
from gateway.base.mistakes import Location, Mistakes
from gateway.base.model import FieldName, NumberText, Secret, SectionModel, Some
from gateway.base.request import RequestHead
from gateway.base.urls import with_hidden

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
    """The request header in which clients give their own name. A header such as X-Forwarded-User,
    in which proxies name the client, is accepted only from trusted_proxies."""
    api_key: ApiKey | None = None
    """Names a client by its API key."""
    jwt: Jwt | None = None
    """Names a client by a claim of its JSON Web Token. For an expired, not yet valid or
    unverifiable token, the next source applies."""
    certificate: Literal["subject", "dns", "uri", "email"] | None = None
    """Names a client by its verified TLS certificate: by its subject as in `CN=acme,O=Example`
    (RFC 4514), or by the first DNS name, URI or email address in it."""
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
            return _header_source(self.header, trusted, (*at, "header"), mistakes)
        if self.certificate is not None:
            named = partial(_certificate_name, self.certificate, partial(_shown, key=hash_key))
            place = "the TLS handshake"
            return NameSource(named, "certificate", place, challenge=("ClientCertificate", ""))
        if self.api_key is not None:
            here = Mistakes(mistakes.found, mistakes.warnings, (*at, "api_key"))
            return self.api_key.compile(hash_key, files, partial(_shown, key=hash_key), here)
        if self.jwt is not None:
            shown = partial(_shown, key=hash_key)
            return mistakes.attempt(partial(self.jwt.compile, files, shown), *at, "jwt")
        if isinstance(self.address, ClientAddress):
            return address_source(trusted, self.address.ipv4, self.address.ipv6)
        return address_source(trusted)


class Clients(SectionModel):
    """The sources of the names that clients have in logs, usage and the configuration."""

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
            given = (
                source.header,
                source.jwt and source.jwt.header,
                source.api_key and source.api_key.field,
            )
            names |= {name: None for name in given if name}
            if source.address is not None or source.certificate is not None:
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
            if source is None or not source.claimed:
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


def header_value(name: str) -> NameReader:
    """Return the reader of the first line of a header field, without surrounding white space."""

    def read(head: RequestHead, peer: str, certificate: Certificate | None) -> str | None:
        values = head.fields.getall(name, ())
        return values[0].strip(" \t") if values else None

    return read


def _header_source(
    name: str, trusted: tuple[Network, ...], at: Location, mistakes: Mistakes
) -> NameSource:
    read = header_value(name)
    if not is_identity_field(name.lower().encode()):
        return NameSource(read, claimed=True, field=name)
    if not trusted:
        text = "warning:is accepted only from trusted proxies; add them to trusted_proxies"
        mistakes.warn(text, *at)

    def trusted_value(
        head: RequestHead, peer: str, certificate: Certificate | None
    ) -> Identity | str | None:
        return read(head, peer, certificate) if trusts(trusted, peer) else None

    return NameSource(trusted_value, field=name)


# The short names of RFC 4514, section 3; the others are written as OpenSSL names them.
_ATTRIBUTES = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
_ESCAPED = re.compile(r'([,+"\\<>;=]|\A[# ]| \Z)')
_ALTERNATIVES = {"dns": "DNS", "uri": "URI", "email": "email"}


def _certificate_name(
    part: str,
    shown: Callable[[str], str],
    head: RequestHead,
    peer: str,
    certificate: Certificate | None,
) -> Identity | None:
    if certificate is None:
        return None
    if part == "subject":
        name = ",".join(
            "+".join(
                f"{_ATTRIBUTES.get(kind, kind)}={_ESCAPED.sub(_BACKSLASH, value)}"
                for kind, value in parts
            )
            for parts in reversed(certificate.get("subject", ()))
        )
    else:
        kind = _ALTERNATIVES[part]
        found = (value for each, value in certificate.get("subjectAltName", ()) if each == kind)
        name = next(found, "")
    if name:
        return Identity(shown(name), "certificate")
    reason = f"has no {part if part != 'dns' else 'DNS name'}"
    return Identity(rejection=Rejection("certificate", "the TLS handshake", reason))


_BACKSLASH = r"\\\1"


def address_source(
    trusted: tuple[Network, ...] = (), ipv4: int = 32, ipv6: int = 128
) -> NameSource:
    """Return the source of the client's address, or its network, behind trusted proxies.

    `ipv4` and `ipv6` are the lengths, in bits, of the prefixes that are kept of an address.
    """
    return NameSource(lambda head, peer, _: client_network(head, peer, ipv4, ipv6, trusted))


class ClientNaming:
    """The rules by which clients are named: the first source that finds a name decides.

    Where any source verifies credentials, a name that a client only claims is marked as UNVERIFIED,
    so that it never counts as the name of a client that proved it.

    Attributes:
        key: The key by which every name is replaced by its hash; empty keeps plain names.
        verified: The clients that each kind of credential can prove; None if they are not known.
    """

    __slots__ = ("fields", "key", "parameters", "sources", "verified", "verifies")

    def __init__(self, sources: tuple[NameSource, ...], key: bytes = b"") -> None:
        self.sources = sources
        self.key = key
        self.verified: dict[Credential, tuple[Identity, ...] | None] = {}
        for kind in CREDENTIALS:
            owners = [source.owners for source in sources if source.credential == kind]
            known = [owner for each in owners for owner in each or ()]
            if owners:
                self.verified[kind] = None if None in owners else tuple(known)
        self.verifies = bool(self.verified)
        self.fields = frozenset(
            one.field.lower().encode() for one in sources if one.field and one.credential
        )
        self.parameters = tuple(one.parameter for one in sources if one.parameter is not None)

    def identify(
        self, head: RequestHead, peer: str, certificate: Certificate | None = None
    ) -> Identity:
        """Return the client of a request, by the first source that has a name or a credential.

        An invalid credential does not end the search. A later source may verify it, such as a token
        of another issuer, or may have a name for the client. The rejection of the credential
        remains in the result unless a source for the same place verifies it.

        Args:
            peer: The IP address of the connection; empty if it is unknown.
        """
        rejected = None
        for source in self.sources:
            found = source.read(head, peer, certificate)
            if not found:
                continue
            if isinstance(found, str):
                # Clients send the same few names over and over.
                named = _cached_identity if len(found) <= LONGEST else _identity
                found = named(found, self.key, source.claimed, self.verifies)
            if found.pending is not None:
                return found
            if rejected is None:
                if found.rejection is None:
                    if found.name:
                        return found
                    continue
                rejected = found
            elif found.rejection is None:
                assert rejected.rejection is not None
                if found.proof and source.place == rejected.rejection.place:
                    return found
                if not rejected.proof and (found.proof or not rejected.name):
                    rejected = found._replace(rejection=rejected.rejection)
        return rejected or NOBODY

    @property
    def key_sets(self) -> list[KeySet]:
        return [source.key_set for source in self.sources if source.key_set is not None]

    def challenges(
        self, realm: str, kinds: Collection[Credential]
    ) -> tuple[tuple[Credential, str], ...]:
        found = {
            (source.credential, f'{source.challenge[0]} realm="{realm}"{source.challenge[1]}'): None
            for source in self.sources
            if source.credential is not None and source.credential in kinds
        }
        return tuple(found)

    def vary_of(self, kinds: Collection[Credential]) -> tuple[str, ...]:
        """Return the request header fields that contain credentials; `*` for a certificate."""
        found = [one for one in self.sources if one.credential in kinds and not one.parameter]
        return tuple(dict.fromkeys(source.field or "*" for source in found))

    def redacted(self, query: str | None) -> str | None:
        for name in self.parameters:
            query = with_hidden(query, name)
        return query

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
    unchanged, and a claimed name that could be mistaken for one is hashed.
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


def _identity(found: str, key: bytes, claimed: bool, verifies: bool) -> Identity:
    name = _shown(found.strip(" "), key, claimed)
    return Identity(UNVERIFIED + name if name and claimed and verifies else name)


_cached_identity = lru_cache(maxsize=1024)(_identity)
