"""A sampled response of live traffic."""

from typing import NamedTuple

from gateway.proxy.cutover_counts import CutoverPlace
from gateway.proxy.record import ResponseCopy
from gateway.routing.snapshot import Endpoint, Route


class AnswerSample(NamedTuple):
    """A response as the client received it.

    Attributes:
        target: the path and query that the request would have for a service of the client's
            version.
        drawn: whether the setting `check` selected the response, as part of its percentage of
            converted responses.
        place: where the request is counted for a cutover; None if it is not a sample for the gates.
    """

    endpoint: Endpoint
    route: Route
    method: str
    target: str
    status: int
    answer: ResponseCopy
    drawn: bool = True
    place: CutoverPlace | None = None
