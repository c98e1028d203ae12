"""`api_key` in gateway.yaml: an API key gives a client its name."""

from pydantic import Field

from gateway.access.clients import ClientSource, HeaderName, KeyName, QueryName, digest
from gateway.base.mistakes import Location, Mistakes
from gateway.base.model import ClientName, FieldName, NonEmptyText, Secret, SectionModel


class ApiKeyConfig(SectionModel):
    """An API key gives the client its name. The key itself is never shown."""

    header: FieldName | None = None
    """The request header that holds the API key. An API key is in either a header or the query."""
    query: NonEmptyText | None = None
    """The query parameter that holds the API key."""
    keys: dict[ClientName, Secret] = Field(default_factory=dict)
    """The API keys by the names of their owners. A key that is not listed has a short hash of
    itself for a name. By default, none is listed."""


def build_api_key(
    config: ApiKeyConfig, key: bytes, at: Location, mistakes: Mistakes
) -> KeyName | None:
    """Return how API keys name clients; mistakes go to `mistakes`.

    Args:
        config: the API keys as configured.
        key: the key of all hashes of names; empty where names are not hashed.
        at: the location of the API keys.
        mistakes: collects the mistakes.
    """
    place: ClientSource
    if config.header is not None and config.query is None:
        place = HeaderName(config.header)
    elif config.query is not None and config.header is None:
        place = QueryName(config.query)
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
