"""`api_key` in gateway.yaml: an API key gives a client its name."""

from collections.abc import Callable

from pydantic import Field

from gateway.base.client_names import digest
from gateway.base.mistakes import Location, Mistakes
from gateway.base.model import ClientName, FieldName, NonEmptyText, Secret, SectionModel


class ApiKey(SectionModel):
    """An API key gives the client its name. The key itself is never shown."""

    header: FieldName | None = None
    """The request header that holds the API key. An API key is in either a header or the query."""
    query: NonEmptyText | None = None
    """The query parameter that holds the API key."""
    keys: dict[ClientName, Secret] = Field(default_factory=dict)
    """The API keys by the names of their owners. A key that is not listed has a short hash of
    itself for a name. By default, none is listed."""

    def compile(
        self, hash_key: bytes, at: Location, mistakes: Mistakes
    ) -> Callable[[str], str] | None:
        """Return the function from an API key to its owner, or to its hash if it is not listed."""
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
