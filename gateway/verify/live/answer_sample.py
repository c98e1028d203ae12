"""A sample of live traffic: one converted response, as the client got it."""

from typing import NamedTuple

from gateway.core.snapshot import Endpoint, Route


class AnswerSample(NamedTuple):
    """One converted response.

    Attributes:
        endpoint: that the request was routed to.
        route: by which its version is served.
        method: of the request.
        target: the path and query that a service of the client's version is asked for.
        status: of the response.
        body: of the response, converted.
    """

    endpoint: Endpoint
    route: Route
    method: str
    target: str
    status: int
    body: bytes
