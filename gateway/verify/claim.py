"""Claims: what must be true for the service of one version to answer clients of another.

A claim is about one part of the messages of an operation: each example that the sender's document
allows must, once it is converted, be one that the recipient's document allows.
"""

from dataclasses import dataclass
from enum import Enum

from gateway.conversion.schema import Schema
from gateway.verify.part_conversion import PartConversion
from gateway.versions.version import Version


class MessagePart(Enum):
    """The part of a request or a response that a claim is about."""

    QUERY = "query"
    HEADERS = "headers"
    REQUEST = "request"
    RESPONSE = "response"
    MESSAGE = "message"
    FORM = "form"
    FORM_MESSAGE = "form message"
    ROUND_TRIP = "round trip"
    """The body that a client reads and writes back, as the service has it before and after."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Every example of one message part arrives as the recipient's document describes it.

    Attributes:
        api: the name of the API.
        client: the version that the client speaks.
        service: the version that the service speaks.
        operation: as the client's document has it, `GET /person`, and behind an arrow the path in
            the service's document where that is another.
        part: the part of the message.
        status: of a response, as the documents have it; else empty.
        given: the schema of the examples, from the sender's document.
        wanted: the schema that the converted examples must fit, from the recipient's document.
        conversion: from the one to the other; None where examples pass unchanged.
        named: the fields that declared changes name, with `*` for any element of an array.
    """

    api: str
    client: Version
    service: Version
    operation: str
    part: MessagePart
    status: str
    given: Schema
    wanted: Schema
    conversion: PartConversion | None
    named: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that clients of one version may do, and that the service's document lacks."""

    api: str
    client: Version
    service: Version
    operation: str
    reason: str

    @property
    def holds(self) -> bool:
        """Whether the claim holds, as of a proof: a gap never does."""
        return False


@dataclass(frozen=True, slots=True)
class Unchecked:
    """An operation, or its responses of one status, that cannot be checked.

    `status` is as the documents have it; empty where the whole operation is meant.
    """

    api: str
    client: Version
    service: Version
    operation: str
    status: str
    reason: str

    @property
    def holds(self) -> bool:
        """Whether nothing was found wrong, as of a proof: nothing was looked at."""
        return True


@dataclass(frozen=True, slots=True)
class Undocumented:
    """All operations of a pair of versions, of which `lacking` has no OpenAPI document."""

    api: str
    client: Version
    service: Version
    lacking: Version
    operation: str = "all operations"
    status: str = ""

    @property
    def holds(self) -> bool:
        """Whether nothing was found wrong, as of a proof: nothing was looked at."""
        return True

    @property
    def reason(self) -> str:
        """Return a sentence for operators, with the remedy."""
        return (
            f"version {self.lacking} has no OpenAPI document; name one:"
            f' "{self.lacking}": {{ ..., schema: FILE or URL }}'
        )


@dataclass(frozen=True, slots=True)
class Unmatched:
    """An operation of the service's document that the client's document lacks."""

    api: str
    client: Version
    service: Version
    operation: str

    @property
    def holds(self) -> bool:
        """Whether nothing was found wrong: no client of the version can miss the operation."""
        return True

    @property
    def reason(self) -> str:
        """Return a sentence without its subject, which is the operation."""
        return f"version {self.client} has no such operation"


Outcome = Claim | Gap | Unchecked | Unmatched
