"""Delta: what one serving process counted in about a second.

Deltas are additive: they are summed in any order, whichever process they come from.
"""

from collections.abc import Callable

# msgspec: what crosses from process to process is typed, checked and coded in microseconds.
import msgspec

# The upper bounds of the latency histograms, in seconds; one more bucket has no bound.
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
# The classes of status; the first counts responses that never began.
CLASSES = ("none", "1xx", "2xx", "3xx", "4xx", "5xx")


# The kinds of counters beside requests, with their labels. The last label may have many values.
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
        version: the label of the version; empty where the API has none.
        endpoint: the template of the path.
        client: its name; empty for requests that name none.
        count: the number of requests, those below included.
        refused: the number of refusals by the gateway for a fault of the client or by date.
        failed: the number of answers of status 5xx, and of those that broke off.
        served: the number of requests that were sent to a service.
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
        statuses: the number of requests of each class in CLASSES.
        buckets: the number up to each duration in BOUNDS, and above the last.
        seconds: the sum of all durations.
        converted: the number of requests with a body converted.
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
        kind: of the counter; a key of COUNTERS.
        labels: the values of the labels of that kind.
    """

    kind: str
    labels: tuple[str, ...]
    count: int


class CutoverDelta(msgspec.Struct, array_like=True, frozen=True):
    """The outcomes of one route of a cutover, `old` or `new`; fields as in TrafficDelta."""

    api: str
    version: str
    route: str
    requests: int
    failures: int
    buckets: list[int]
    seconds: float


class SampleDelta(msgspec.Struct, array_like=True, frozen=True):
    """One of many cases, redacted, as an example for operators; `document` is a JSON value."""

    kind: str
    api: str
    version: str
    document: object


class Delta(msgspec.Struct, array_like=True, frozen=True):
    """All that a process counted since its last delta; `at` is in seconds since 1970."""

    at: float
    usages: list[UsageDelta]
    traffic: list[TrafficDelta]
    counts: list[CounterDelta]
    outcomes: list[CutoverDelta]
    samples: list[SampleDelta]


Deliver = Callable[[Delta], None]
