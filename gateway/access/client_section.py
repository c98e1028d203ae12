"""`clients` in gateway.yaml: what gives clients their names in logs, usage and rules."""

from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from gateway.access.api_key_section import ApiKeyConfig, build_api_key
from gateway.access.clients import (
    AddressName,
    ClaimName,
    ClientNaming,
    ClientSource,
    HeaderName,
    Proof,
)
from gateway.access.jwt_section import JwtConfig, build_claims
from gateway.base.addresses import Network
from gateway.base.mistakes import Location, Mistakes
from gateway.base.model import FieldName, NumberText, Secret, SectionModel, Some


class AddressConfig(SectionModel):
    """The network of the client's address gives the client its name."""

    ipv4: Annotated[int, Field(ge=1, le=32), NumberText] = 32
    """The length of the prefix that is kept of an IPv4 address, in bits. The default is 32."""
    ipv6: Annotated[int, Field(ge=1, le=128), NumberText] = 128
    """The length of the prefix that is kept of an IPv6 address, in bits. The default is 128."""


def _flag_or_prefixes(value: object) -> str:
    return "flag" if isinstance(value, bool) else "prefixes"


class ClientSourceConfig(SectionModel):
    """One source of client names: a header, an API key, a token or the address."""

    header: FieldName | None = None
    """The request header in which clients give their own name."""
    api_key: ApiKeyConfig | None = None
    """The API key that a client sends gives it its name."""
    jwt: JwtConfig | None = None
    """The JSON Web Token that a client sends gives it its name, by one of its claims. A token that
    is over, not yet valid or cannot be verified gives none: the next source counts."""
    address: (
        Annotated[
            Annotated[Literal[True], Tag("flag")] | Annotated[AddressConfig, Tag("prefixes")],
            Discriminator(_flag_or_prefixes),
        ]
        | None
    ) = None
    """The IP address of a client gives it its name: `true` keeps all of the address. Behind a
    trusted proxy, it is the address that the proxy forwards."""


class ClientsConfig(SectionModel):
    """What gives clients the names that they have in logs, usage and rules."""

    by: Some[ClientSourceConfig]
    """The sources of client names. The first that finds a name in a request counts. If any of them
    checks a credential, a name that a client only claims begins with `unverified:`."""
    hash: Secret | None = None
    """The secret with which client names are hashed before they are kept or shown. Without it,
    names are kept and shown as they are."""

    @property
    def vary(self) -> tuple[str, ...]:
        """Return the request headers that give names; `*` stands for the address."""
        names: dict[str, None] = {}
        for source in self.by:
            for place in (source.api_key, source.jwt, source):
                if place is not None and place.header is not None:
                    names[place.header] = None
            if source.address is not None:
                names["*"] = None  # no header field has it (RFC 9110, section 12.5.5)
        return tuple(names)


def build_naming(
    config: ClientsConfig,
    trusted: tuple[Network, ...],
    folder: Path,
    mistakes: Mistakes,
) -> ClientNaming:
    """Return how clients get their names; mistakes go to `mistakes`.

    Args:
        config: the section of gateway.yaml.
        trusted: the networks of trusted proxies.
        folder: the folder that relative paths of files start from.
        mistakes: collects the mistakes.
    """
    # A secret of any length makes a key that BLAKE2 takes.
    key = b"" if config.hash is None else blake2b(config.hash.encode()).digest()
    sources = [
        _source(source, key, trusted, folder, ("clients", "by", index), mistakes)
        for index, source in enumerate(config.by)
    ]
    naming = ClientNaming(tuple(source for source in sources if source is not None), key)
    for index, source in enumerate(sources):
        if naming.verifies and source is not None and source.proof is Proof.CLAIM:
            mistakes.warn(
                "warning: a name that is only claimed here begins with 'unverified:', as others are"
                " verified; pins and exemptions of clients that prove their names are not for it",
                *("clients", "by", index),
            )
        elif isinstance(source, ClaimName) and source.proof is Proof.CLAIM:
            mistakes.warn(
                "warning: anybody can claim any name, as the token is not verified; add key or"
                " key_file, and algorithms",
                *("clients", "by", index, "jwt"),
            )
    return naming


def _source(
    config: ClientSourceConfig,
    key: bytes,
    trusted: tuple[Network, ...],
    folder: Path,
    at: Location,
    mistakes: Mistakes,
) -> ClientSource | None:
    known = ClientSourceConfig.model_fields
    if sum(getattr(config, name) is not None for name in known) != 1:
        mistakes.add(f"one entry names by exactly one of {', '.join(known)}", *at)
        return None
    if config.header is not None:
        return HeaderName(config.header)
    if config.api_key is not None:
        return build_api_key(config.api_key, key, (*at, "api_key"), mistakes)
    if config.jwt is not None:
        claims = mistakes.attempt(partial(build_claims, config.jwt, folder), *at, "jwt")
        place = HeaderName(config.jwt.header)
        keyed = config.jwt.key is not None or config.jwt.key_file is not None
        proof = Proof.CREDENTIAL if keyed else Proof.CLAIM
        return None if claims is None else ClaimName(place, config.jwt.claim, claims, proof)
    if config.address is None or config.address is True:
        return AddressName(trusted=trusted)
    return AddressName(config.address.ipv4, config.address.ipv6, trusted)
