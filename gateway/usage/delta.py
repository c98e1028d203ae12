"""Deltas: the counts of one process for about one second.

Deltas of any number of processes can be summed in any order.
"""

from collections.abc import Callable, Mapping
from math import ceil, log

# msgspec encodes, decodes and validates typed messages between processes in microseconds.
import msgspec

from gateway.rollout.evidence import EvidenceRow
from gateway.rollout.route_outcomes import OUTCOMES

# The upper bounds of duration histograms in seconds, from OpenTelemetry's conventions for HTTP
# metrics. One additional bucket has no upper bound.
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)


# The methods that are counted separately, according to OpenTelemetry's conventions. All other
# methods, which clients may invent, are counted as OTHER.
METHODS = frozenset(
    {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY"}
) | {"CONNECT"}
OTHER = "_OTHER"
# A service that responds with such a status has not accepted the request: the credential, the path
# or the method is wrong, as in the requests of scanners.
REJECTED = frozenset({401, 403, 404, 405})
OperationName = tuple[str, str]
"""An operation: its method, and the path of its endpoint."""


class UsageDelta(msgspec.Struct, array_like=True, frozen=True):
    """The requests of one client for one operation of a version.

    Attributes:
        version: the label of the version; empty if the API has no versions.
        operation: the method and the path: those in the document of the version if `schema` names
            it, or else those of the endpoint.
        refused: the number of requests that the gateway refused because of the version or because
            they are invalid.
        failed: the number of requests with status 5xx or an incomplete response.
        served: the number of uses: requests that were not refused, rejected or failed.
        rejected: the number of requests that the service did not accept; see `REJECTED`.
    """

    api: str
    version: str
    operation: str
    client: str
    count: int
    refused: int
    failed: int
    served: int
    rejected: int = 0


class TrafficDelta(msgspec.Struct, array_like=True, frozen=True):
    """The requests for one version at one endpoint with equal method, status, error and scheme.

    Attributes:
        endpoint: the path template of the endpoint; empty if the path matches no endpoint.
        error: the value of `error.type` in OpenTelemetry's conventions; empty without an error.
        buckets: the number of requests by duration: one number for each bound in BOUNDS, and one
            for longer requests.
    """

    api: str
    version: str
    endpoint: str
    method: str
    status: int
    error: str
    buckets: list[int]
    seconds: float
    converted: int
    scheme: str = "http"


class UpstreamDelta(msgspec.Struct, array_like=True, frozen=True):
    """The requests to one target for one version with equal method, status and error.

    Attributes:
        buckets: the number of requests by the time until the response head, or until the gateway
            stopped waiting. The bounds are the same as in TrafficDelta.
    """

    api: str
    version: str
    target: str
    method: str
    status: int
    error: str
    buckets: list[int]
    seconds: float


class CounterDelta(msgspec.Struct, array_like=True, frozen=True):
    """An increment of a counter. For `kind`, see `metric_table.MetricRow.kind`."""

    kind: str
    labels: tuple[str, ...]
    count: int


class CutoverDelta(msgspec.Struct, array_like=True):
    """Request outcomes for one route of a cutover; see `RouteOutcomes`.

    A CutoverDelta is mutable until it is delivered.

    Attributes:
        buckets: the number of ended requests by duration, as in TrafficDelta.
        whole: the sum of the full durations of ended requests.
        fields: the number of responses that violate the document, by field. The name of a field
            contains its method, endpoint and location.
        rows: the requests of each client for each operation, as evidence for the gates.
    """

    api: str
    version: str
    route: str
    requests: int = 0
    overdue: int = 0
    ends: list[int] = msgspec.field(default_factory=lambda: [0] * len(OUTCOMES))
    seconds: float = 0.0
    buckets: list[int] = msgspec.field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    whole: float = 0.0
    checked: int = 0
    violating: int = 0
    fields: dict[str, int] = {}
    rows: list[EvidenceRow] = []


class LatencyDelta(msgspec.Struct, array_like=True, frozen=True):
    """Durations on one route of a shadow; `buckets` has the count of each `latency_bucket`."""

    api: str
    version: str
    route: str
    buckets: dict[int, int]


class SampleDelta(msgspec.Struct, array_like=True, frozen=True):
    """A redacted example of a counted event, for operators.

    Attributes:
        document: the event as a JSON value. Samples with equal values are duplicates.
        request: the `request_id`, `method` and `path` of the request.
    """

    kind: str
    api: str
    version: str
    document: object
    request: dict[str, str]


Admitted = tuple[str, int, int]
"""A shared rate limit, a bucket number (`access.token_buckets`), and its admitted requests."""


class Delta(msgspec.Struct, array_like=True, frozen=True):
    """All counts of a process since its previous delta. `lost` marks a loss of earlier counts."""

    at: float
    usages: list[UsageDelta] = []
    traffic: list[TrafficDelta] = []
    counts: list[CounterDelta] = []
    outcomes: list[CutoverDelta] = []
    samples: list[SampleDelta] = []
    latencies: list[LatencyDelta] = []
    upstream: list[UpstreamDelta] = []
    lost: bool = False
    admitted: list[Admitted] = []


Deliver = Callable[[Delta], None]


# Each bucket is wider than the previous one by a tenth, as in DDSketch (Masson, Rim and Lee, 2019),
# so the error of a quantile is at most 5 %. The first and the last bucket are unbounded.
_LATENCY_FACTOR = 1.1
_SHORTEST_LATENCY = 0.0001
LATENCY_BUCKETS = 150
"""The number of buckets. The last bucket begins at 134 seconds."""


def latency_bucket(seconds: float) -> int:
    if seconds <= _SHORTEST_LATENCY:
        return 0
    return min(ceil(log(seconds / _SHORTEST_LATENCY, _LATENCY_FACTOR)), LATENCY_BUCKETS - 1)


def latency_quantile(buckets: Mapping[int, int], share: float) -> float:
    """Return the quantile of durations in seconds; 0 without responses."""
    wanted = share * sum(buckets.values())
    seen = 0
    for index in sorted(buckets):
        seen += buckets[index]
        if seen >= wanted:
            # The value that has the same relative error at both ends of the bucket.
            return (
                _SHORTEST_LATENCY * _LATENCY_FACTOR**index * 2 / (1 + _LATENCY_FACTOR)
                if index
                else _SHORTEST_LATENCY
            )
    return 0.0
