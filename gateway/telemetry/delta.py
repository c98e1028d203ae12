"""The Report: what one serving process counted in about a second, handed on and forgotten.

Reports are additive: whoever absorbs them needs no order and knows no process.
"""

from collections.abc import Callable

# msgspec: what crosses from process to process is typed, checked and coded in microseconds.
import msgspec

# The upper bounds of the latency histograms, in seconds; a last bucket has what is slower.
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
# By class of status, 1xx to 5xx; the first counts responses that never began.
CLASSES = ("none", "1xx", "2xx", "3xx", "4xx", "5xx")


# What is counted beside requests, and what it is counted by. The last label may be any of many.
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
}


class UsageDelta(msgspec.Struct, array_like=True, frozen=True):
    """What one client asked of one version at one endpoint.

    Attributes:
        api: the name of the API.
        version: the label of the version; empty where the API has none.
        endpoint: the template of the path.
        client: its name; empty where nothing names it.
        count: the requests, those below included.
        refused: the answers of the gateway itself that blame the client or the calendar.
        failed: the answers of status 5xx, and those that broke off.
        served: the requests that were let through, to whatever end.
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
    """How the requests to one version at one endpoint were answered.

    Attributes:
        statuses: how many by class of status, as CLASSES has them.
        buckets: how many by duration, as BOUNDS has them, and one more.
        seconds: all durations together.
        converted: how many had a body converted.
    """

    api: str
    version: str
    endpoint: str
    statuses: list[int]
    buckets: list[int]
    seconds: float
    converted: int


class CounterDelta(msgspec.Struct, array_like=True, frozen=True):
    """How often something happened.

    Attributes:
        kind: what; a key of KINDS.
        labels: to what, as the kind has them.
    """

    kind: str
    labels: tuple[str, ...]
    count: int


class CutoverDelta(msgspec.Struct, array_like=True, frozen=True):
    """How one route of a cutover did: `old` or `new`; `buckets` and `seconds` are as in Traffic."""

    api: str
    version: str
    route: str
    requests: int
    failures: int
    buckets: list[int]
    seconds: float


class SampleDelta(msgspec.Struct, array_like=True, frozen=True):
    """One case of many, redacted, for an operator to look at; `document` is what JSON can say."""

    kind: str
    api: str
    version: str
    document: object


class Delta(msgspec.Struct, array_like=True, frozen=True):
    """All that a process counted since its last one; `at` is in seconds since 1970."""

    at: float
    usages: list[UsageDelta]
    traffic: list[TrafficDelta]
    counts: list[CounterDelta]
    outcomes: list[CutoverDelta]
    samples: list[SampleDelta]


Deliver = Callable[[Delta], None]
