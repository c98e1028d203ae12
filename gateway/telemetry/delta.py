"""Deltas: the counts of one serving process for about one second.

Deltas are additive: they can be summed in any order, from any number of processes.
"""

from collections.abc import Callable

# msgspec: encodes, decodes and validates typed messages between processes in microseconds.
import msgspec

# The upper bounds of the latency histograms, in seconds; one more bucket has no bound.
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
# The classes of status codes; the first counts responses that never began.
CLASSES = ("none", "1xx", "2xx", "3xx", "4xx", "5xx")


# The kinds of counters other than requests, with their labels. The last may have many values.
COUNTERS = {
    "refusals": ("api", "version", "code"),
    "upstream_errors": ("service", "code"),
    "client_bounds": ("bound",),
    "compared": ("api", "version"),
    "differing": ("api", "version"),
    "noise": ("api", "version", "field"),
    "shed": ("api", "version", "reason"),
    "differences": ("api", "version", "field"),
    "checked": ("api", "version"),
    "violations": ("api", "version", "field"),
    "task_failures": ("task",),
}


class UsageDelta(msgspec.Struct, array_like=True, frozen=True):
    """The requests of one client for one version at one endpoint.

    Attributes:
        api: the name of the API.
        version: the label of the version; empty if the API has no versions.
        endpoint: the path template of the endpoint.
        client: the name of the client; empty for requests without one.
        count: the number of all requests, including the refused and failed ones.
        refused: the number of requests refused before a plan was made, or for the client's fault.
        failed: the number of requests that failed with status 5xx or whose answer broke off.
        served: the number of requests that were planned for a service.
    """

    api: str
    version: str
    endpoint: str
    client: str
    count: int
    refused: int
    failed: int
    served: int


class TrafficDelta(msgspec.Struct, array_like=True, frozen=True):
    """The outcomes of the requests for one version at one endpoint.

    Attributes:
        api: the name of the API; empty if the path matches no endpoint.
        version: the label of the version; empty if there is none.
        endpoint: the path template of the endpoint; empty if the path matches none.
        statuses: the number of requests for each status class in CLASSES.
        buckets: the number of requests by duration, per upper bound in BOUNDS and above the last.
        seconds: the sum of the durations of all requests, in seconds.
        converted: the number of requests of which a body was converted.
    """

    api: str
    version: str
    endpoint: str
    statuses: list[int]
    buckets: list[int]
    seconds: float
    converted: int


class CounterDelta(msgspec.Struct, array_like=True, frozen=True):
    """An increment of a counter.

    Attributes:
        kind: the kind of the counter, a key of COUNTERS.
        labels: the values of the labels that COUNTERS has for the kind.
        count: the increment.
    """

    kind: str
    labels: tuple[str, ...]
    count: int


class CutoverDelta(msgspec.Struct, array_like=True, frozen=True):
    """The outcomes of requests on one route of a cutover, `old` or `new`; see TrafficDelta."""

    api: str
    version: str
    route: str
    requests: int
    failures: int
    buckets: list[int]
    seconds: float


class SampleDelta(msgspec.Struct, array_like=True, frozen=True):
    """A redacted example of a counted case for operators; `document` is a JSON value."""

    kind: str
    api: str
    version: str
    document: object


class Delta(msgspec.Struct, array_like=True, frozen=True):
    """All counts of a process since its last delta; `at` is in seconds since 1970."""

    at: float
    usages: list[UsageDelta]
    traffic: list[TrafficDelta]
    counts: list[CounterDelta]
    outcomes: list[CutoverDelta]
    samples: list[SampleDelta]


Deliver = Callable[[Delta], None]
