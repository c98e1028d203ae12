"""The base classes of mechanisms (models of gateway.yaml) and of the readers compiled from them.

A reader finds the version at one location in a request. It returns the raw values, which may be
missing, contradictory or malformed; `selection` decides which version they name. No other code
distinguishes mechanisms.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import ClassVar, NamedTuple, Self

from gateway.base.headers import HeaderFields
from gateway.base.mistakes import Mistakes
from gateway.base.model import SectionModel
from gateway.base.request import RequestHead
from gateway.versions.matching import EXACT, Matching
from gateway.versions.version import Version


class VersionAddress(NamedTuple):
    host: str | None = None
    query: str | None = None
    header: str | None = None
    media_type: str | None = None

    @property
    def rank(self) -> tuple[bool, bool, bool, bool]:
        """The sort key of addresses: those that a URI expresses best come first.

        A host comes before a path: a link that changes only the path would still point to the host
        of the old version.
        """
        return (
            self.host is None,
            self.header is not None,
            self.query is not None,
            self.media_type is None,
        )


IN_PATH = VersionAddress()
"""The address of a version that is named by the path or needs no name."""


class Reader(ABC):
    """Reads and replaces the version at one location in a request.

    Attributes:
        refusal_status: the status of the response if the version is missing, malformed or unknown.
        is_preference: whether the values are alternatives, the preferred one first, that need not
            agree.
        reads_path: whether the reader reads `{version}` in the path. This segment is always
            present, so it needs no default, and the path template of the route replaces it.
        has_lookalikes: whether a service may confuse other parts of the request with this location.
        parameter: the name of the query parameter that the reader reads; None for other locations.
        has_one_type: False only if the reader has several media type patterns.
    """

    __slots__ = ()

    mechanism: ClassVar[str]
    refusal_status: ClassVar[int] = 400
    is_preference: ClassVar[bool] = False
    reads_path: ClassVar[bool] = False
    can_be_added: ClassVar[bool] = False
    has_lookalikes: ClassVar[bool] = False
    has_one_type: bool = True

    @property
    def parameter(self) -> str | None:
        return None

    @property
    @abstractmethod
    def place(self) -> str:
        """The location of the version for error messages, like `the query parameter 'version'`."""

    @property
    def vary(self) -> tuple[str, ...]:
        return ()

    def joined(self, other: "Reader") -> "Reader | None":
        """Return one reader for the locations of both readers; None if they stay separate."""
        return None

    @abstractmethod
    def read(self, head: RequestHead, captures: Mapping[str, str]) -> tuple[str, ...]:
        """Return the raw values in order of preference; empty without a version."""

    def lookalike(self, head: RequestHead) -> str | None:
        """Return the name of a part that a service may confuse with this location, or None."""
        return None

    @abstractmethod
    def address(self, version: Version) -> VersionAddress:
        pass

    def refuses(self, head: RequestHead, version: Version) -> bool:
        """Return whether the request excludes a version, as Accept does with weight 0."""
        return False

    def content_type(self, version: Version) -> str | None:
        """Return the media type of JSON responses in a version; None keeps that of the service."""
        return None

    def response_media_type(
        self, head: RequestHead, version: Version, aliases: Mapping[str, Version]
    ) -> str | None:
        return self.content_type(version)

    def rewrite_query(self, query: str, label: str) -> str:
        """Return the query with each version replaced by `label`."""
        return query

    def add_to_query(self, query: str | None, label: str) -> str | None:
        """Return the query, with a version added if it has none."""
        return query

    def add_to_fields(self, fields: HeaderFields, label: str) -> HeaderFields:
        """Return the header fields, with a version added if they have none."""
        return fields

    def rewrite_fields(
        self, fields: HeaderFields, label: str, is_replaced: Callable[[str], bool]
    ) -> HeaderFields:
        """Return the header fields with each version of this mechanism replaced by `label`."""
        return fields

    def rewrite_authority(self, authority: str, label: str) -> str:
        return authority


class VersionRewrite:
    """Replaces the version in requests or responses at all locations that can name a version.

    Attributes:
        fields: returns header fields with the new version; everything else is preserved.
    """

    __slots__ = (
        "_is_replaced",
        "_label",
        "added",
        "changes_authority",
        "changes_query",
        "fields",
        "readers",
    )

    def __init__(
        self,
        label: str,
        readers: tuple[Reader, ...],
        is_replaced: Callable[[str], bool],
        added: Reader | None = None,
    ) -> None:
        self._label, self.readers = label, readers
        self._is_replaced, self.added = is_replaced, added
        self.changes_query = _overrides(readers, "rewrite_query") or (
            added is not None and _overrides((added,), "add_to_query")
        )
        self.changes_authority = _overrides(readers, "rewrite_authority")
        steps: list[Callable[[HeaderFields], HeaderFields]] = [
            partial(each.rewrite_fields, label=label, is_replaced=is_replaced)
            for each in readers
            if _overrides((each,), "rewrite_fields")
        ]
        if added is not None:
            steps.append(partial(added.add_to_fields, label=label))
        # Most endpoints have one reader, which is called without a loop.
        self.fields = steps[0] if len(steps) == 1 else partial(_apply, steps)

    @classmethod
    def of(
        cls,
        readers: tuple[Reader, ...],
        label: str,
        client: Version | None = None,
        matching: Matching = EXACT,
    ) -> Self | None:
        """Return the rewrite for an endpoint's readers; None if only the path names versions.

        Args:
            client: the client's version in requests; None in responses.
            matching: how strings other than labels name the client's version.
        """
        elsewhere = tuple(reader for reader in readers if not reader.reads_path)
        is_replaced = partial(_is_replaced, client, matching)
        return cls(label, elsewhere, is_replaced) if elsewhere else None

    def adding(self) -> Self:
        added = next((each for each in self.readers if each.can_be_added), None)
        return type(self)(self._label, self.readers, self._is_replaced, added)

    def query(self, query: str | None) -> str | None:
        if query:
            for reader in self.readers:
                query = reader.rewrite_query(query, self._label)
        return query if self.added is None else self.added.add_to_query(query, self._label)

    def authority(self, authority: str) -> str:
        for reader in self.readers:
            authority = reader.rewrite_authority(authority, self._label)
        return authority


def _apply(
    steps: Iterable[Callable[[HeaderFields], HeaderFields]], fields: HeaderFields
) -> HeaderFields:
    for step in steps:
        fields = step(fields)
    return fields


def _is_replaced(client: Version | None, matching: Matching, named: str) -> bool:
    """Return whether a version in the media type of a body is replaced.

    In a request, only a body in the client's version is converted. A body in any other version
    keeps its media type.
    """
    return client is None or named == str(client) or matching.find(named) == client


def _overrides(readers: Iterable[Reader], method: str) -> bool:
    default = getattr(Reader, method)
    return any(getattr(type(reader), method) is not default for reader in readers)


class Mechanism(SectionModel):
    """A location in the request that names the version."""

    @property
    def default_label(self) -> str | None:
        return None

    @abstractmethod
    def compile(self, versions: Mapping[str, Version], mistakes: Mistakes) -> Reader | None:
        """Return the reader, or None after a mistake; `versions` are the versions of the API."""


class OptionalMechanism(Mechanism):
    """A mechanism whose location may be missing in a request."""

    default: str | None = None
    """The version that requests without a version get. Without it, default_version of the API
    applies."""

    @property
    def default_label(self) -> str | None:
        return self.default
