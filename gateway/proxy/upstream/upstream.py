"""The upstream side, as the handler sees it: one narrow interface.

What stands behind it (today `pool` and `connection`) can be replaced without touching anything
else: a request goes in, a response with a body stream comes out, every error is a Fault already.
"""

from collections.abc import AsyncIterator, Callable
from typing import Protocol

from msgspec import Struct

from gateway.core.errors import Fault, FaultCode, FaultError
from gateway.core.headers import HeaderFields
from gateway.core.service import Service


class UpstreamRequest(Struct, frozen=True):
    """What to ask a service.

    Attributes:
        method: such as `GET`.
        target: path and query, raw.
        fields: the header fields to send, Host and framing excluded.
        host: what Host says; None for the authority of the target.
        body: all of it, or its pieces as they come; None for no body.
        length: of a body that comes in pieces, in bytes; None sends it chunked.
        expects: whether the client waits for 100 (Continue) before it sends the body.
        upgrade: whether another protocol is asked for, and may be switched to.
        informational: called with the status and fields of every 1xx response but 101.
    """

    method: str
    target: str
    fields: HeaderFields
    host: bytes | None = None
    body: bytes | AsyncIterator[bytes] | None = None
    length: int | None = None
    expects: bool = False
    upgrade: bool = False
    informational: Callable[[int, HeaderFields], None] | None = None

    @property
    def repeatable(self) -> bool:
        """Whether sending it twice does what sending it once does (RFC 9110, section 9.2.2)."""
        return self.method in _IDEMPOTENT and not isinstance(self.body, AsyncIterator)


class StaleConnectionError(Exception):
    """The service closed a kept connection before it took the request."""


def failure(code: FaultCode, target: str, what: str) -> FaultError:
    """Return the failure of a target: the log learns which one it was, and what it did."""
    return FaultError(Fault(code, _DETAILS[code]), f"{target}: {what}")


# The client learns what happened, not on which machine.
_DETAILS = {
    FaultCode.UPSTREAM_UNREACHABLE: "The backend could not be reached.",
    FaultCode.UPSTREAM_PROTOCOL: "The backend's response is not valid HTTP, or it broke off.",
    FaultCode.UPSTREAM_TIMEOUT: "The backend did not answer in time.",
}
_IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})


class UpstreamResponse(Protocol):
    """What a service answered: the head, and the body as it comes."""

    status: int
    reason: bytes
    fields: HeaderFields
    sized: bool
    switched: bool
    target: str

    @property
    def complete(self) -> bool:
        """Whether all of the body has arrived, be it read or not."""
        ...

    @property
    def trailers(self) -> HeaderFields:
        """Return the fields behind the body, once it is complete (RFC 9110, section 6.5)."""
        ...

    async def read(self) -> bytes:
        """Return the next bytes of the body, empty at its end.

        Raises:
            FaultError: the body broke off, or the service is too slow.
        """
        ...

    async def write(self, data: bytes) -> None:
        """Send bytes of the protocol that was switched to; waits while the service is slower."""
        ...

    def abandon(self) -> None:
        """Read no more: unless the body is complete, the connection is closed.

        To be called once for every response, read to its end or not.
        """
        ...


class Upstream(Protocol):
    """Sends requests to services."""

    async def send(self, service: Service, request: UpstreamRequest) -> UpstreamResponse:
        """Return the response as soon as its head is there.

        Raises:
            FaultError: there is none; the Fault says why and whose fault it was.
        """
        ...

    def close(self) -> None:
        """Close every connection."""
        ...
