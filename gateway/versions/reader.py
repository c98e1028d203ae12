"""Readers and mechanisms: a mechanism is a model of gateway.yaml, which compiles to its reader.

A reader reads the version at one place of a request. It returns the raw values, which may be
missing, contradictory or malformed, and decides nothing: `selection` does. It also writes another
version there, and describes itself, so that nothing else distinguishes mechanisms.
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
    """How a link asks for a version, beside the path, which always names it where it can."""

    host: str | None = None
    query: str | None = None
    header: str | None = None
    media_type: str | None = None

    @property
    def rank(self) -> tuple[bool, bool, bool, bool]:
        """The sort key of addresses: the first is the one of which the URI of a link holds most.

        A host comes before the path: a link with another path stays at the host, whose name would
        go on to name another version.
        """
        return (
            self.host is None,
            self.header is not None,
            self.query is not None,
            self.media_type is None,
        )


IN_PATH = VersionAddress()
"""The address of a version that the path names, or that nothing names."""


class Reader(ABC):
    """Reads the version at one place of a request, and writes another one there.

    Attributes:
        refusal_status: the status of a request whose version is missing, malformed or unknown.
        reads_path: whether it reads the `{version}` of the path. No request leaves that out, so
            there is nothing to default, and the path template of a route rewrites it.
        can_be_added: whether a request that names no version can be given one there.
        has_lookalikes: whether a service may read the version at another place than this.
        has_one_type: whether responses in a version have one media type, if any.
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
    @abstractmethod
    def place(self) -> str:
        """The place where the version belongs, for refusals: `the query parameter 'version'`."""

    @property
    def vary(self) -> tuple[str, ...]:
        return ()

    def joined(self, other: "Reader") -> "Reader | None":
        """Return one reader of this place and of another; None where they are read apart."""
        return None

    @abstractmethod
    def read(self, head: RequestHead, captures: Mapping[str, str]) -> tuple[str, ...]:
        """Return the raw values found, in order of preference; empty when there is none."""

    def lookalike(self, head: RequestHead) -> str | None:
        """Return the name of a part that a service may read instead of this place, or None."""
        return None

    @abstractmethod
    def address(self, version: Version) -> VersionAddress:
        pass

    def refuses(self, head: RequestHead, version: Version) -> bool:
        """Return whether the request rules a version out."""
        return False

    def content_type(self, version: Version) -> str | None:
        """Return the media type of a JSON answer in a version; None keeps the service's own."""
        return None

    def answers_with(
        self, head: RequestHead, version: Version, aliases: Mapping[str, Version]
    ) -> str | None:
        """Return the media type of a JSON answer to a request; None keeps the service's own."""
        return self.content_type(version)

    def rewrite_query(self, query: str, label: str) -> str:
        """Return a query that names the version `label` where it named another one."""
        return query

    def add_to_query(self, query: str | None, label: str) -> str | None:
        """Return a query with a version added, unless it names one."""
        return query

    def add_to_fields(self, fields: HeaderFields, label: str) -> HeaderFields:
        """Return header fields with a version added, unless they name one."""
        return fields

    def rewrite_fields(
        self, fields: HeaderFields, label: str, is_replaced: Callable[[str], bool]
    ) -> HeaderFields:
        """Return header fields in which this mechanism names another version; others stay.

        It is called for requests and for answers. A field of one direction alone is left as it is
        in the other.

        Args:
            is_replaced: whether the media type of a body that names this version is replaced.
        """
        return fields

    def rewrite_authority(self, authority: str, label: str) -> str:
        return authority


class VersionRewrite:
    """Replaces one version by another, wherever a request or a response names one.

    Args:
        label: the version to name.
        readers: of the places that may name one, without the path.
        is_replaced: whether the media type of a body that names this version is replaced.
        added: the reader of the place where the version is added to a message that names none.

    Attributes:
        fields: returns header fields that name the version; order, case and all others stay.
        readers, added: see above.
        changes_query: whether `query` can return another query.
        changes_authority: whether `authority` can return another one.
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
        # Most endpoints have one reader, which is called without a loop around it.
        self.fields = steps[0] if len(steps) == 1 else partial(_apply, steps)

    @classmethod
    def of(
        cls,
        readers: tuple[Reader, ...],
        label: str,
        client: Version | None = None,
        matching: Matching = EXACT,
    ) -> Self | None:
        """Return the rewrite for an endpoint's readers; None where the path alone is read.

        Args:
            readers: of the endpoint.
            label: the version to name.
            client: the client's version in requests; None in responses.
            matching: the texts that stand for the client's version beside its label.
        """
        elsewhere = tuple(reader for reader in readers if not reader.reads_path)
        is_replaced = partial(_is_replaced, client, matching)
        return cls(label, elsewhere, is_replaced) if elsewhere else None

    def adding(self) -> Self:
        """Return the rewrite of requests that name no version: at the first place that can be."""
        added = next((each for each in self.readers if each.can_be_added), None)
        return type(self)(self._label, self.readers, self._is_replaced, added)

    def query(self, query: str | None) -> str | None:
        """Return a query that names the version; what it does not name stays, byte for byte."""
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
    """Return whether the media type of a body that names this version is replaced.

    A request's body of another version than the client's keeps its media type, because the
    gateway converts no such body.
    """
    return client is None or named == str(client) or matching.find(named) == client


def _overrides(readers: Iterable[Reader], method: str) -> bool:
    default = getattr(Reader, method)
    return any(getattr(type(reader), method) is not default for reader in readers)


class Mechanism(SectionModel):
    """A place of the request that names the version."""

    @property
    def default_label(self) -> str | None:
        return None

    @abstractmethod
    def compile(self, versions: Mapping[str, Version], mistakes: Mistakes) -> Reader | None:
        """Return the reader, or None if it is of no use; `versions` are those of the API."""


class OptionalMechanism(Mechanism):
    """A place that a request may leave out."""

    default: str | None = None
    """The version to serve when a request names none. Without it, default_version of the API
    applies."""

    @property
    def default_label(self) -> str | None:
        return self.default
