"""Clients: from `clients:` in gateway.yaml to a ClientNaming."""

from functools import partial
from hashlib import blake2b
from pathlib import Path

from gateway.config.sections.client_models import ApiKeyConfig, ClientsConfig, NamedByConfig
from gateway.config.sections.verified_token import claims_of
from gateway.config.text.mistakes import Location, Mistakes
from gateway.core.clients import (
    AddressName,
    ClaimName,
    ClientNaming,
    ClientSource,
    HeaderName,
    KeyName,
    Network,
    Proof,
    QueryName,
    digest,
)
from gateway.core.versions.readers import QueryReader


def build_naming(
    config: ClientsConfig | None,
    trusted: tuple[Network, ...],
    folder: Path,
    mistakes: Mistakes,
) -> ClientNaming | None:
    """Return how clients are named, or None if they are not; mistakes go to `mistakes`.

    Args:
        config: what the rules say of it.
        trusted: the proxies whose word about addresses is believed.
        folder: what the paths of files start from.
        mistakes: collects what is wrong.
    """
    if config is None:
        return None
    # A secret of any length makes a key that BLAKE2 takes.
    key = b"" if config.hash is None else blake2b(config.hash.encode()).digest()
    sources = (
        _source(named_by, key, trusted, folder, ("clients", "by", index), mistakes)
        for index, named_by in enumerate(config.by)
    )
    return ClientNaming(tuple(source for source in sources if source is not None), key)


def _source(
    config: NamedByConfig,
    key: bytes,
    trusted: tuple[Network, ...],
    folder: Path,
    at: Location,
    mistakes: Mistakes,
) -> ClientSource | None:
    said = [name for name in NamedByConfig.model_fields if getattr(config, name) is not None]
    if len(said) != 1:
        mistakes.add(
            f"one entry names by exactly one of {', '.join(NamedByConfig.model_fields)}", *at
        )
        return None
    if config.header is not None:
        return HeaderName(config.header)
    if config.api_key is not None:
        return _api_key(config.api_key, key, (*at, "api_key"), mistakes)
    if config.jwt is not None:
        claims = mistakes.attempt(partial(claims_of, config.jwt, folder), *at, "jwt")
        place = HeaderName(config.jwt.header)
        keyed = config.jwt.key is not None or config.jwt.key_file is not None
        proof = Proof.CREDENTIAL if keyed else Proof.CLAIM
        return None if claims is None else ClaimName(place, config.jwt.claim, claims, proof)
    if config.address is None or config.address is True:
        return AddressName(trusted=trusted)
    return AddressName(config.address.ipv4, config.address.ipv6, trusted)


def _api_key(config: ApiKeyConfig, key: bytes, at: Location, mistakes: Mistakes) -> KeyName | None:
    place: ClientSource
    if config.header is not None and config.query is None:
        place = HeaderName(config.header)
    elif config.query is not None and config.header is None:
        place = QueryName(QueryReader(config.query))
    else:
        mistakes.add(
            "an API key is in a header or in the query; write { header: X-Api-Key } or"
            " { query: key }",
            *at,
        )
        return None
    owners: dict[str, str] = {}
    for owner, secret in config.keys.items():
        other = owners.setdefault(digest(secret, key), owner)
        if other != owner:
            mistakes.add(f"has the same key as {other}; one key has one owner", *at, "keys", owner)
    return KeyName(place, owners, key)
