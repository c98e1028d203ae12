"""The reader: how a mechanism describes itself, so that nothing else switches on its type.

One reader reads one mechanism at one place. It reports the raw values, which may be missing,
contradictory or nonsense, and decides nothing: `selection` does.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, NamedTuple

from gateway.base.headers import HeaderFields
from gateway.base.request import RequestHead
from gateway.versions.version import Version


class VersionAddress(NamedTuple):
    """How a link asks for a version, beside the path, which always names it where it can.

    Attributes:
        host: the host name to ask, without a port; None for the same one.
        query: the query to ask with.
        header: the header field to send, `Name: value`.
        media_type: the media type of the answer.
    """

    host: str | None = None
    query: str | None = None
    header: str | None = None
    media_type: str | None = None

    @property
    def rank(self) -> tuple[bool, bool, bool, bool]:
        """Order addresses: the more of one the URI of a link itself can hold, the earlier.

        A host comes before the path: a link to another path stays at the host, which would go on
        to name another version than the path does.
        """
        return (
            self.host is None,
            self.header is not None,
            self.query is not None,
            self.media_type is None,
        )


IN_PATH = VersionAddress()
"""Of a version that the path names, or nothing does."""


class Reader(ABC):
    """Reads the version at one place of a request, and writes another one in its stead.

    Attributes:
        mechanism: its name.
        refusal_status: the status of a request whose version is missing, malformed or unknown.
        is_preference: whether several values are a preference, the first that can be served being
            chosen; otherwise they must agree.
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
        """Describe to a person where the version belongs: `the query parameter 'version'`."""

    @property
    def vary(self) -> tuple[str, ...]:
        """Return the names of the request fields that it reads, for Vary."""
        return ()

    def joined(self, other: "Reader") -> "Reader | None":
        """Return one reader of this place and of another; None where they are read apart."""
        return None

    @abstractmethod
    def read(self, head: RequestHead, captures: Mapping[str, str]) -> tuple[str, ...]:
        """Return the raw values found, in order of preference; empty when there is none."""

    def lookalike(self, head: RequestHead) -> str | None:
        """Return the name of what a service may read in place of what this reads; else None."""
        return None

    @abstractmethod
    def address(self, version: Version) -> VersionAddress:
        """Return how a link asks for a version."""

    def refuses(self, head: RequestHead, version: Version) -> bool:
        """Whether the request rules a version out."""
        return False

    def content_type(self, version: Version) -> str | None:
        """Return the media type of a JSON answer in a version; None keeps the service's own."""
        return None

    def answers_with(
        self, head: RequestHead, version: Version, aliases: Mapping[str, Version]
    ) -> str | None:
        """Return the media type of a JSON answer to a request; None keeps the service's own.

        Args:
            head: The request.
            version: The version that it gets.
            aliases: The versions that other names stand for.
        """
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
            fields: the header fields.
            label: the version to name.
            is_replaced: whether the media type of a body that names this version is replaced.
        """
        return fields

    def rewrite_authority(self, authority: str, label: str) -> str:
        """Return the host and port of a request that name another version."""
        return authority
