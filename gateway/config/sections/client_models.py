"""The shape of `clients:` in gateway.yaml: what names who asks."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from gateway.config.shape import FieldName, NumberText, SectionModel, Some

# A name that stands in a table as it is; see gateway.core.clients.
ClientName = Annotated[str, Field(min_length=1, max_length=64)]
Algorithm = Literal[
    "HS256",
    "HS384",
    "HS512",
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
]


class ApiKeyConfig(SectionModel):
    """An API key names the client; the key itself is shown nowhere."""

    header: FieldName | None = None
    """The header that holds it."""
    query: Annotated[str, Field(min_length=1)] | None = None
    """Or the query parameter that does."""
    keys: dict[ClientName, Annotated[str, Field(min_length=1)]] = Field(default_factory=dict)
    """Keys by the name of who owns them; a key that is not here is shown as a short hash."""


class JwtConfig(SectionModel):
    """A claim of a JSON Web Token names the client; without a key, it is believed unverified."""

    claim: Annotated[str, Field(min_length=1)]
    """The claim, such as sub."""
    header: FieldName = "Authorization"
    """The header that holds the token, with or without `Bearer` before it."""
    key: Annotated[str, Field(min_length=1)] | None = None
    """What verifies it: a shared secret, or a public key as PEM."""
    key_file: Annotated[str, Field(min_length=1)] | None = None
    """The file that holds the key."""
    algorithms: tuple[Algorithm, ...] = ()
    """The algorithms to accept (RFC 7518), such as HS256 or RS256."""
    audience: str | None = None
    """Who the token must be meant for."""
    issuer: str | None = None
    """Who must have issued it."""


class AddressConfig(SectionModel):
    """The network that the client's address lies in names it."""

    ipv4: Annotated[int, Field(ge=1, le=32), NumberText] = 32
    """The length of the prefix of an IPv4 address that is kept."""
    ipv6: Annotated[int, Field(ge=1, le=128), NumberText] = 128
    """Likewise, of an IPv6 address."""


def _flag_or_prefixes(value: object) -> str:
    return "flag" if isinstance(value, bool) else "prefixes"


class NamedByConfig(SectionModel):
    """One thing that may name a client."""

    header: FieldName | None = None
    """A header in which clients say who they are."""
    api_key: ApiKeyConfig | None = None
    """An API key."""
    jwt: JwtConfig | None = None
    """A claim of a JSON Web Token."""
    address: (
        Annotated[
            Annotated[Literal[True], Tag("flag")] | Annotated[AddressConfig, Tag("prefixes")],
            Discriminator(_flag_or_prefixes),
        ]
        | None
    ) = None
    """The address that the request comes from, or that a trusted proxy says it does."""


class ClientsConfig(SectionModel):
    """Who asks: the names that clients have in logs, usage and rules."""

    by: Some[NamedByConfig]
    """What names a client; the first that says something does."""
    hash: Annotated[str, Field(min_length=1)] | None = None
    """A secret: names are kept and shown as hashes that are keyed with it."""
