"""Version rewriting: a service gets the version that was decided on, where it reads one.

The client names its version wherever its endpoint reads one, by its label or otherwise, or names
none. A service that reads it there would take what was converted for what it was before, or apply a
default of its own. The path template of a route rewrites the version of the path.
"""

from typing import NamedTuple, Self

from gateway.base.headers import HeaderFields
from gateway.versions.matching import EXACT, Matching
from gateway.versions.reader import Reader
from gateway.versions.version import Version


class VersionRewrite(NamedTuple):
    """Puts one version in the place of another, wherever a request or an answer names one.

    Attributes:
        label: of the version to name.
        readers: of the places that may name one, the path left out.
        added: the reader of the place where the version is added to a message that names none.
        client: the client's version in requests; None in responses.
        matching: the texts that stand for the client's version beside its label.
    """

    label: str
    readers: tuple[Reader, ...]
    added: Reader | None = None
    client: Version | None = None
    matching: Matching = EXACT

    @classmethod
    def of(
        cls,
        readers: tuple[Reader, ...],
        label: str,
        client: Version | None = None,
        matching: Matching = EXACT,
    ) -> Self | None:
        """Return the rewrite for an endpoint's readers; None where the path alone is read."""
        elsewhere = tuple(reader for reader in readers if not reader.reads_path)
        return cls(label, elsewhere, None, client, matching) if elsewhere else None

    def adding(self) -> Self:
        """Return the rewrite of requests that name no version: at the first place that can be."""
        return self._replace(added=next((each for each in self.readers if each.can_be_added), None))

    def query(self, query: str | None) -> str | None:
        """Return a query that names the version; what it does not name stays, byte for byte."""
        if query:
            for reader in self.readers:
                query = reader.rewrite_query(query, self.label)
        return query if self.added is None else self.added.add_to_query(query, self.label)

    def fields(self, fields: HeaderFields) -> HeaderFields:
        """Return header fields that name the version; order, case and all others stay."""
        for reader in self.readers:
            fields = reader.rewrite_fields(fields, self.label, self._is_replaced)
        return fields if self.added is None else self.added.add_to_fields(fields, self.label)

    def _is_replaced(self, named: str) -> bool:
        """Return whether the media type of a body that names this version is replaced.

        A request's body of another version than the client's keeps its media type, because the
        gateway converts no such body.
        """
        client = self.client
        return client is None or named == str(client) or self.matching.find(named) == client

    def authority(self, authority: str) -> str:
        """Return a host and port that name the version."""
        for reader in self.readers:
            authority = reader.rewrite_authority(authority, self.label)
        return authority
