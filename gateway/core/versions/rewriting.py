"""Version rewriting: a service gets the version that it serves, not the client's.

The client names its version wherever its endpoint reads one. A service that reads it there would
take what was converted for what it was before. The path template of a route rewrites the version of
the path.
"""

from typing import NamedTuple, Self

from gateway.core.headers import HeaderFields
from gateway.core.versions.reader import Reader


class VersionRewrite(NamedTuple):
    """Puts one version in the place of another, wherever a request or an answer names one.

    Attributes:
        label: of the version to name.
        readers: of the places that may name one, the path left out.
    """

    label: str
    readers: tuple[Reader, ...]

    @classmethod
    def of(cls, readers: tuple[Reader, ...], label: str) -> Self | None:
        """Return the rewrite for an endpoint's readers; None where the path alone is read."""
        elsewhere = tuple(reader for reader in readers if not reader.reads_path)
        return cls(label, elsewhere) if elsewhere else None

    def query(self, query: str | None) -> str | None:
        """Return a query that names the version; what it does not name stays, byte for byte."""
        if query:
            for reader in self.readers:
                query = reader.rewrite_query(query, self.label)
        return query

    def fields(self, fields: HeaderFields) -> HeaderFields:
        """Return header fields that name the version; order, case and all others stay."""
        for reader in self.readers:
            fields = reader.rewrite_fields(fields, self.label)
        return fields

    def authority(self, authority: str) -> str:
        """Return a host and port that name the version."""
        for reader in self.readers:
            authority = reader.rewrite_authority(authority, self.label)
        return authority
