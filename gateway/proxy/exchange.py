"""The exchange: one request and its response, as the phases of the pipeline see them."""

from collections.abc import Iterable
from random import getrandbits
from typing import NamedTuple

from gateway.base.addresses import Network
from gateway.base.client_names import ANONYMOUS, NOBODY, Identity
from gateway.base.headers import DIGESTS, FieldLines, HeaderFields
from gateway.conversion.unfit import UnfitValues
from gateway.http.client.message import ClientExchange
from gateway.http.client.public_origin import public_origin
from gateway.http.limits import Limits
from gateway.rollout.cutover import CutoverRoute
from gateway.routing.plan import Plan
from gateway.routing.snapshot import Endpoint, Snapshot
from gateway.versions.version import Version


class Exchange(ClientExchange):
    """One request and its response. The phases of the pipeline set the attributes."""

    snapshot: Snapshot
    client: str = ANONYMOUS
    identity: Identity = NOBODY
    endpoint: Endpoint | None = None
    version: Version | None = None
    fields: FieldLines = ()
    """The header fields that every response of the selected version has."""
    plan: Plan | None = None
    cutover_route: CutoverRoute | None = None
    """The route of a cutover that the request took, old or new; None without a cutover."""
    target: str | None = None
    """The address of the target that responded or failed; None if no target was reached."""
    address: str | None = None
    """The IP address of that target; None if the target is configured as this address, or if no
    response arrived."""
    service_status: int = 0
    converted: bool = False
    copy: "ResponseCopy | None" = None
    """A copy of the response for validation; None if responses of the route are not validated, or
    if the response is too large."""
    code: str | None = None
    cause: str | None = None
    """The cause of the fault, only for the log; None without a fault or a cause."""
    mapped_links: set[str] | None = None
    """The URLs in the body of the response that are already mapped; None if none are mapped."""
    unfit: UnfitValues | None = None
    unmapped_links: dict[str, int] | None = None
    """The number of URLs that match no endpoint, by location: the name of a header field, `body` or
    `request`. None if there are no such URLs."""
    unmapped_link: str | None = None
    dropped_digests: list[str] | None = None
    """The names of the header fields with digests and signatures that were dropped because a
    conversion altered the body; None if no such field was dropped."""
    trace_id: str | None = None
    trace_fields: FieldLines = ()
    """The trace fields for the service; empty if the client's trace fields are forwarded."""
    span: "RequestSpan | None" = None
    aborted: bool = False
    sent: float = 0.0
    """When the request was sent to the service, in monotonic seconds; 0 if it was not sent."""
    answered: float = 0.0
    """When the head of the service's response arrived, in monotonic seconds; 0 if it did not
    arrive."""
    ended: float = 0.0
    """When the response was written, or failed, in monotonic seconds; 0 until then."""

    @property
    def limits(self) -> Limits:
        return self.snapshot.limits

    @property
    def trusted_proxies(self) -> tuple[Network, ...]:
        return self.snapshot.trusted_proxies

    @property
    def scheme(self) -> str:
        """The scheme that the client used, `http` or `https`, as a trusted proxy reports it."""
        if self.snapshot.trusted_proxies:
            return public_origin(self)[0]
        return self.connection.scheme

    @property
    def read_fields(self) -> frozenset[bytes]:
        return self.snapshot.read

    def count_digests(self, dropped: Iterable[bytes]) -> None:
        """Record digests and signatures among the dropped fields, whose names are in lower case."""
        names = [name.decode() for name in dropped if name in DIGESTS]
        if names:
            self.dropped_digests = [*(self.dropped_digests or ()), *names]


class RequestSpan:
    """The data for the spans of a traced request.

    Attributes:
        parent_id: The id of the caller's span; empty if the trace begins in the gateway.
        state: The caller's `tracestate`; empty if the caller sent none.
        stages: The name, the beginning and the end of each conversion, in monotonic seconds.
        begun: The name and the beginning of the current conversion; None if none is running.
    """

    __slots__ = ("asked_id", "begun", "parent_id", "span_id", "stages", "state", "trace_id")

    def __init__(self, trace_id: str, parent_id: str, state: str) -> None:
        self.trace_id = trace_id
        self.parent_id = parent_id
        self.state = state
        self.span_id = new_span_id()
        self.asked_id = new_span_id()
        self.stages: list[tuple[str, float, float]] = []
        self.begun: tuple[str, float] | None = None

    def end(self, at: float, *, converted: bool) -> None:
        if converted and self.begun is not None:
            self.stages.append((*self.begun, at))
        self.begun = None


def new_span_id() -> str:
    """Return a random id for a span. The id does not need to be hard to guess."""
    return (getrandbits(64) | 1).to_bytes(8).hex()


class ResponseCopy(NamedTuple):
    """The body of a response and its header fields, before the gateway compresses the body."""

    fields: HeaderFields
    body: bytes
    converted: bool
