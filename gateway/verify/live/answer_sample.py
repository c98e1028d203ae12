"""A sample of live traffic: one response, as the client got it."""

from typing import NamedTuple

from gateway.proxy.cutover_counts import CutoverPlace
from gateway.proxy.record import ResponseCopy
from gateway.routing.snapshot import Endpoint, Route


class AnswerSample(NamedTuple):
    """One response.

    Attributes:
        endpoint: that the request was routed to.
        route: by which its version is served.
        method: of the request.
        target: the path and query that a service of the client's version is asked for.
        status: of the response.
        answer: the response itself.
        drawn: whether it belongs to the percentage of converted responses that `check` validates.
        place: where the request of a cutover is counted; None if it is no sample for its gates.
    """

    endpoint: Endpoint
    route: Route
    method: str
    target: str
    status: int
    answer: ResponseCopy
    drawn: bool = True
    place: CutoverPlace | None = None
