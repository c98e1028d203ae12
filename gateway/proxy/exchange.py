"""The exchange: one request of a client, its answer, and the record of both.

The log line, the metrics and the usage of a request are written once, from its exchange.
"""

import secrets
import time
from collections.abc import Iterable
from itertools import count
from random import getrandbits
from typing import Final, NamedTuple

from aiohttp import StreamReader
from aiohttp.streams import EMPTY_PAYLOAD

from gateway.base.addresses import Network
from gateway.base.client_names import ANONYMOUS
from gateway.base.headers import DIGESTS, FieldLines, HeaderFields
from gateway.http.client.client_request import (
    REQUEST_ID,
    X_REQUEST_ID,
    ClientRequest,
    is_loggable,
    loggable_path,
)
from gateway.http.client.client_response import ClientResponse, ClientTransport, RequestMessage
from gateway.http.limits import Limits
from gateway.rollout.cutover import CutoverRoute
from gateway.routing.plan import Plan
from gateway.routing.snapshot import Endpoint, Snapshot
from gateway.versions.version import Version

# Request ids are unique without a system call for each; no security depends on them. The numbers
# have twelve digits, so that all ids have 32.
_id_prefix: Final = secrets.token_hex(10)
_id_count: Final = count(10**11)


class Exchange(ClientRequest, ClientResponse):
    """One request and its answer; each step of the handler fills in attributes.

    Attributes:
        request_id: the client's X-Request-Id if it is safe to log, else a new one.
        request_id_given: whether it is the client's.
        method: the method of the request.
        path: the path of the request as it can be logged, without the query, which may hold
            secrets.
        client: the name of the client; empty if it has none.
        endpoint: the endpoint that matches the path; None if no endpoint does.
        version: the chosen version; None if none was chosen.
        fields: the header fields that every answer of that version carries.
        plan: the plan for the request; None if the request was refused.
        cutover_route: the side of a cutover that the request took; None if it took none.
        target: the address of the target that answered or failed; None if none did.
        service_status: the status of its answer; 0 if there was none.
        converted: whether a body was converted.
        copy: a copy of the answer if its route is checked; None if not, or if it is too large.
        code: the code of the fault; None if there was no fault.
        cause: the cause of the fault, for the log only.
        mapped_links: the links that a conversion of the answer's body has mapped; None without one.
        unmapped_links: the number of links that fit no endpoint, by their places: a header field,
            `body` or `request`; None if there are none.
        dropped_digests: the names of the fields of digests and signatures that were dropped, since
            a conversion altered the body; None if there are none.
        unmapped_link: the first of those links; None if there is none.
        trace_id: the id of the trace that the request belongs to; None unless requests are traced.
        trace_fields: the fields by which the service goes on with the trace; empty if it does by
            those of the request as they are.
        span: what becomes the spans of the request; None unless it is sampled.
        aborted: whether the response ended before it was complete.
        began: when the head of the request had arrived, in monotonic seconds.
        sent: when the request was sent to the service, in monotonic seconds; 0 if it was not.
        answered: when the head of the service's response had arrived, in monotonic seconds; 0 if
            it did not arrive.
        ended: when the answer was written, or had failed, in monotonic seconds; 0 before.
    """

    __slots__ = (
        *("aborted", "answered", "authority", "began", "bytes_sent", "cause"),
        *(
            "chunked",
            "client",
            "code",
            "connection",
            "content",
            "converted",
            "copy",
            "cutover_route",
            "dropped_digests",
        ),
        *("ended", "endpoint", "fields"),
        *("has_body", "keep_alive", "length", "mapped_links", "message", "method"),
        *("path", "peer", "plan"),
        *(
            "request_id",
            "request_id_given",
            "sent",
            "service_status",
            "snapshot",
            "span",
            "status",
            "target",
        ),
        *("trace_fields", "trace_id", "unmapped_link", "unmapped_links", "version"),
    )

    snapshot: Snapshot

    def __init__(
        self, connection: ClientTransport, message: RequestMessage, content: StreamReader
    ) -> None:
        self.began = time.perf_counter()
        self.connection = connection
        self.message = message
        self.content = content
        self.has_body = content is not EMPTY_PAYLOAD
        self.length: int | None = None
        self.authority = ""
        self.keep_alive: bool = not message.should_close
        self.chunked = False
        self.status = 0
        self.bytes_sent = 0
        self.method: str = message.method
        self.peer = connection.peer
        self.client: str = ANONYMOUS
        self.endpoint: Endpoint | None = None
        self.version: Version | None = None
        self.fields: FieldLines = ()
        self.plan: Plan | None = None
        self.cutover_route: CutoverRoute | None = None
        self.target: str | None = None
        self.service_status = 0
        self.converted = False
        self.copy: AnswerCopy | None = None
        self.code: str | None = None
        self.cause: str | None = None
        self.mapped_links: set[str] | None = None
        self.unmapped_links: dict[str, int] | None = None
        self.dropped_digests: list[str] | None = None
        self.unmapped_link: str | None = None
        self.trace_id: str | None = None
        self.trace_fields: FieldLines = ()
        self.span: RequestSpan | None = None
        self.aborted = False
        self.sent = 0.0
        self.answered = 0.0
        self.ended = 0.0
        path = message.path
        if "?" in path:
            path = path.partition("?")[0]
        self.path = path if is_loggable(path) else loggable_path(path)
        given = message.headers.get(X_REQUEST_ID)
        self.request_id_given = False
        if given is not None and REQUEST_ID.match(given):
            self.request_id, self.request_id_given = given, True
        else:  # 32 hexadecimal digits, so that it can be the id of a trace as well
            self.request_id = f"{_id_prefix}{next(_id_count)}"

    @property
    def limits(self) -> Limits:
        """The limits of the snapshot."""
        return self.snapshot.limits

    @property
    def trusted_proxies(self) -> tuple[Network, ...]:
        """The networks of the proxies whose forwarding fields the gateway trusts."""
        return self.snapshot.trusted_proxies

    @property
    def read_fields(self) -> frozenset[bytes]:
        """The names of the request header fields from which versions and clients are read."""
        return self.snapshot.read

    def count_digests(self, dropped: Iterable[bytes]) -> None:
        """Count the fields of digests and signatures among those that are dropped, by their names.

        Args:
            dropped: the names in lower case.
        """
        names = [name.decode() for name in dropped if name in DIGESTS]
        if names:
            self.dropped_digests = [*(self.dropped_digests or ()), *names]


class RequestSpan:
    """A request that is traced.

    Attributes:
        trace_id: the id of its trace.
        span_id: the id of the span of the request.
        parent_id: the id of the caller's span; empty if the trace begins here.
        state: what the caller said of the trace in `tracestate`; empty for nothing.
        asked_id: the id of the span of the request to the service.
        stages: the conversions: the name of each, its beginning and its end in monotonic seconds.
        begun: the name and the beginning of what may become one; None between them.
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
        """Note that what has begun was a conversion, which is over, or that it was none."""
        if converted and self.begun is not None:
            self.stages.append((*self.begun, at))
        self.begun = None


def new_span_id() -> str:
    """Return an id for a span; it need not be hard to guess."""
    return (getrandbits(64) | 1).to_bytes(8).hex()


class AnswerCopy(NamedTuple):
    """The body of an answer with the header fields that describe it.

    Attributes:
        fields: the header fields, before the gateway compressed the body.
        body: the body, likewise.
        converted: whether a conversion has made it.
    """

    fields: HeaderFields
    body: bytes
    converted: bool
