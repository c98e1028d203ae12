"""Endings: what requests that ended alike have in common, and how long they took.

The names and values are those of OpenTelemetry's conventions for HTTP metrics:
https://opentelemetry.io/docs/specs/semconv/http/http-metrics/
"""

from typing import NamedTuple

from gateway.base.errors import FaultCode
from gateway.usage.delta import BOUNDS, CounterDelta, TrafficDelta, UpstreamDelta

# What went wrong with a response that broke off and has no fault: its client left.
ABORTED = "aborted"
# The faults of requests to which a service gave no answer, or a part of one.
_UNANSWERED = frozenset(
    {FaultCode.UPSTREAM_UNREACHABLE, FaultCode.UPSTREAM_PROTOCOL, FaultCode.UPSTREAM_TIMEOUT}
)


class RequestEnding(NamedTuple):
    """How requests ended.

    Attributes:
        method: the method of the client's request, one of METHODS, or OTHER.
        asked: the method of the request to the service, likewise.
        status: the status of the response; 0 if it never began.
        code: the code of the fault; None if there was none.
        aborted: whether the response broke off.
        target: the address of the target that was asked; None if none was.
        service_status: the status of its answer; 0 if there was none.
        operations: whether the requests are counted by operation, too.
    """

    method: str
    asked: str
    status: int
    code: str | None
    aborted: bool
    target: str | None
    service_status: int
    operations: bool

    @property
    def error(self) -> str:
        """What went wrong with the response, as `error.type`; empty if it is no failure."""
        if self.status >= 500:
            return self.code or str(self.status)
        return self.code or ABORTED if self.aborted or not self.status else ""

    @property
    def service_error(self) -> str:
        """What went wrong with the service's answer, as `error.type`; empty if nothing did."""
        if self.service_status >= 400:
            return str(self.service_status)
        return self.code if self.code is not None and self.code in _UNANSWERED else ""


class Alike:
    """Requests for one version at one endpoint that ended alike.

    Attributes:
        key: the API, the label of the version, and the path template of the endpoint.
        ending: how they ended.
        buckets: their number by duration, per upper bound in BOUNDS and above the last.
        seconds: the sum of their durations.
        service_buckets: their number by the time that the service took, likewise.
        service_seconds: the sum of these times.
        converted: the number of those of which a body was converted.
    """

    __slots__ = (
        "buckets",
        "converted",
        "ending",
        "key",
        "seconds",
        "service_buckets",
        "service_seconds",
    )

    def __init__(self, key: tuple[str, str, str], ending: RequestEnding) -> None:
        self.key = key
        self.ending = ending
        self.buckets = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0
        self.service_buckets = [0] * (len(BOUNDS) + 1)
        self.service_seconds = 0.0
        self.converted = 0

    @property
    def traffic(self) -> TrafficDelta:
        """The requests of clients."""
        ending = self.ending
        how = ending.method, ending.status, ending.error
        return TrafficDelta(*self.key, *how, self.buckets, self.seconds, self.converted)

    @property
    def operations(self) -> CounterDelta:
        """The requests as an operation."""
        api, version, endpoint = self.key
        labels = api, version, self.ending.method, endpoint
        return CounterDelta("operations", labels, sum(self.buckets))

    @property
    def upstream(self) -> UpstreamDelta | None:
        """The requests to the service; None if it was not asked."""
        api, version, _ = self.key
        ending = self.ending
        if ending.target is None:
            return None
        how = ending.asked, ending.service_status, ending.service_error
        times = self.service_buckets, self.service_seconds
        return UpstreamDelta(api, version, ending.target, *how, *times)
