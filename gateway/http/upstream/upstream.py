"""Upstream: the interface to the services, used by the pipeline, shadows and health checks."""

from collections.abc import AsyncIterator, Callable
from operator import methodcaller
from typing import Protocol

from msgspec import Struct

from gateway.base.errors import Fault, FaultCode, FaultError
from gateway.base.headers import HeaderFields
from gateway.http.bounds import SlowClients
from gateway.http.upstream.service import Service

RequestBody = bytes | AsyncIterator[bytes] | None
"""A complete body, or a stream of its pieces (some may be empty), or None for no body."""


class UpstreamRequest(Struct, frozen=True):
    """A request to send to a service.

    Attributes:
        fields: the header fields to send, without Host and the framing fields.
        host: the value of Host; None for the authority of the target.
        body: the complete body, or a stream of its pieces; None for no body.
        length: the length of a streamed body in bytes; None to send it in chunks.
        upgrade: the protocol that the service may switch to; None if it must not switch.
        informational: called with the status and fields of every 1xx response except 101.
        lines: further field lines as bytes without the final line end; an item may hold several
            lines.
        network: returns the network of the client's address, for fair queues; empty if no client
            waits for the response.
    """

    method: str
    target: str
    fields: HeaderFields
    host: bytes | None = None
    body: RequestBody = None
    length: int | None = None
    upgrade: bytes | None = None
    informational: Callable[[int, HeaderFields], None] | None = None
    lines: tuple[bytes, ...] = ()
    network: Callable[[], str] = str

    @property
    def all_fields(self) -> HeaderFields:
        """All header fields, including those in `lines`."""
        lines = [line for some in self.lines for line in some.split(b"\r\n")]
        return [*self.fields, *((name, value) for name, _, value in map(_parted, lines))]

    @property
    def complete(self) -> bool:
        """Whether the body is not streamed, so that it can be sent again."""
        return not isinstance(self.body, AsyncIterator)

    @property
    def repeatable(self) -> bool:
        """Whether the service may receive the request twice: complete, and idempotent.

        RFC 9110, section 9.2.2, defines idempotent methods.
        """
        return self.method in _IDEMPOTENT and self.complete

    def permits(self, switch: HeaderFields) -> bool:
        """Return whether a 101 response names the requested protocol (RFC 9110, section 7.8)."""
        named = [value.lower() for name, value in switch if name.lower() == b"upgrade"]
        return self.upgrade is not None and named == [self.upgrade.lower()]


class NoRoomError(Exception):
    """A service has no spare capacity for a background request."""


class StaleConnectionError(Exception):
    """The service closed a kept connection, most likely before it received the request.

    Attributes:
        unsent: whether no byte of the request was sent.
    """

    def __init__(self, *, unsent: bool) -> None:
        super().__init__()
        self.unsent = unsent


def failure(code: FaultCode, name: str, what: str) -> FaultError:
    """`name` is the target, followed by its address in parentheses if it is a host name."""
    target = name.partition(" ")[0]
    return FaultError(Fault(code, _DETAILS[code]), f"{name}: {what}", target)


# The details for clients do not reveal the address of the target.
_DETAILS = {
    FaultCode.UPSTREAM_UNREACHABLE: "The backend could not be reached.",
    FaultCode.UPSTREAM_PROTOCOL: "The backend's response is not valid HTTP, or is incomplete.",
    FaultCode.UPSTREAM_TIMEOUT: "The backend did not respond in time.",
}
_parted = methodcaller("partition", b": ")
_IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})


class UpstreamHead(Protocol):
    """The part of a service's response that is converted for the client.

    Attributes:
        status: the final status code.
        target: the target that responded, as configured, for the log.
    """

    status: int
    fields: HeaderFields
    target: str

    @property
    def complete(self) -> bool:
        """Whether all of the body has arrived, including unread bytes."""
        ...

    async def read(self) -> bytes:
        """Return the next bytes, empty at the end; raises FaultError if the body is cut off."""
        ...

    def unread(self, data: bytes) -> None:
        """Put bytes back, so that the next read returns them first."""
        ...


class UpstreamResponse(UpstreamHead, Protocol):
    """A service's response: the head and a stream of the body.

    Attributes:
        address: the IP address of the target; None if the target is configured as this address.
        sized: whether the fields contain Content-Length.
        switched: whether the connection has switched to another protocol.
        holders: the slow clients that occupy places at the service; None if no request can wait for
            such a place.
    """

    address: str | None
    holders: SlowClients | None
    reason: bytes
    sized: bool
    switched: bool

    @property
    def trailers(self) -> HeaderFields:
        """The trailer fields, available once the body is complete (RFC 9110, section 6.5)."""
        ...

    async def write(self, data: bytes) -> None:
        """Send bytes of the new protocol; wait if the service reads too slowly."""
        ...

    def release(self) -> None:
        """Stop counting the request as one in flight, since the connection switched protocols."""
        ...

    def abandon(self) -> None:
        """Stop reading; this closes the connection unless the body is complete.

        Must be called once for every response, even for one that was read to its end.
        """
        ...


class Upstream(Protocol):
    async def send(
        self, service: Service, request: UpstreamRequest, *, background: bool = False
    ) -> UpstreamResponse:
        """Return the response as soon as its head has arrived.

        Args:
            background: whether no client waits for the response. A background request uses only
                spare capacity, never waits, tries only one target, and does not affect its health.

        Raises:
            FaultError: there is no response; its Fault has the reason and who is to blame.
            NoRoomError: the service has no spare capacity for a background request.
        """
        ...
