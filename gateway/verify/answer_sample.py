"""A sample: a converted answer, as the client got it."""

from dataclasses import dataclass

from gateway.core.snapshot import Endpoint, Route


@dataclass(frozen=True, slots=True)
class AnswerSample:
    """What was answered.

    Attributes:
        endpoint: where the request came in.
        route: how its version is served.
        method: of the request.
        target: the path and query that the service was asked for.
        status: of the answer.
        body: of the answer, converted.
    """

    endpoint: Endpoint
    route: Route
    method: str
    target: str
    status: int
    body: bytes
