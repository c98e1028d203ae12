"""Upstream: the one interface to the services, for the handler, shadows and health checks.

What stands behind it (`pool`) can be replaced without touching anything else: a request goes in, a
response with a body stream comes out, every error is a Fault already.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Protocol

from msgspec import Struct

from gateway.core.errors import Fault, FaultCode, FaultError
from gateway.core.headers import HeaderFields
from gateway.core.service import Service, Target, Timeouts

RequestBody = bytes | AsyncIterator[bytes] | None
"""All of a body, or its pieces as they come; None for no body."""


class UpstreamRequest(Struct, frozen=True):
    """What to send to a service.

    Attributes:
        method: such as `GET`.
        target: path and query, raw.
        fields: the header fields to send, Host and framing excluded.
        host: what Host says; None for the authority of the target.
        body: all of it, or its pieces as they come; None for no body.
        length: of a body that comes in pieces, in bytes; None sends it chunked.
        upgrade: whether the client wants another protocol, which may be switched to.
        informational: called with the status and fields of every 1xx response but 101.
    """

    method: str
    target: str
    fields: HeaderFields
    host: bytes | None = None
    body: RequestBody = None
    length: int | None = None
    upgrade: bool = False
    informational: Callable[[int, HeaderFields], None] | None = None

    @property
    def repeatable(self) -> bool:
        """Whether sending it twice does what sending it once does (RFC 9110, section 9.2.2)."""
        return self.method in _IDEMPOTENT and not isinstance(self.body, AsyncIterator)


class NoRoomError(Exception):
    """A service has no spare room for a request in the background."""


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


class UpstreamHead(Protocol):
    """What a service answered, as far as it is changed on its way to the client.

    Attributes:
        status: the final status.
        fields: the header fields as received.
        target: the address of the service, for the log.
    """

    status: int
    fields: HeaderFields
    target: str

    @property
    def complete(self) -> bool:
        """Whether all of the body has arrived, be it read or not."""
        ...

    async def read(self) -> bytes:
        """Return the next bytes of the body, empty at its end.

        Raises:
            FaultError: the body broke off, or the service is too slow.
        """
        ...


class UpstreamResponse(UpstreamHead, Protocol):
    """What a service answered: the head, and the body as it comes.

    Attributes:
        reason: the reason phrase.
        sized: whether the fields hold Content-Length.
        switched: whether the connection speaks another protocol from here on.
    """

    reason: bytes
    sized: bool
    switched: bool

    @property
    def trailers(self) -> HeaderFields:
        """Return the fields behind the body, once it is complete (RFC 9110, section 6.5)."""
        ...

    async def write(self, data: bytes) -> None:
        """Send bytes of the protocol that was switched to; waits while the service is slower."""
        ...

    def release(self) -> None:
        """Count no longer as a request in flight: the response has switched protocols."""
        ...

    def abandon(self) -> None:
        """Read no more: unless the body is complete, the connection is closed.

        To be called once for every response, read to its end or not.
        """
        ...


class Upstream(Protocol):
    """Sends requests to services, and keeps the health of their targets."""

    async def send(
        self, service: Service, request: UpstreamRequest, *, background: bool = False
    ) -> UpstreamResponse:
        """Return the response as soon as its head is there.

        Args:
            service: whose targets there are to choose from.
            request: what to send.
            background: whether no client waits for it. Such a request takes only spare room, never
                waits for any, goes to one target only, and has no effect on the target's health.

        Raises:
            FaultError: there is none; the Fault says why and whose fault it was.
            NoRoomError: there is no spare room for a request in the background.
        """
        ...

    async def probe(
        self, target: Target, request: UpstreamRequest, timeouts: Timeouts
    ) -> UpstreamResponse:
        """Return the response of one target, whatever its health and beside every limit.

        Raises:
            FaultError: there is none.
        """
        ...

    def is_down(self, service: Service, target: Target) -> bool:
        """Return whether active health checks have found a target down."""
        ...

    def set_down(self, service: Service, target: Target, *, down: bool) -> None:
        """Set whether a target is down: then no request is sent to it, probes excepted."""
        ...

    def follow(self, services: Iterable[Service]) -> None:
        """Forget what is known of targets that these services no longer have."""
        ...

    def close(self) -> None:
        """Close every connection."""
        ...
