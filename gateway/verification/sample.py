"""A sample: a converted answer, as the client got it."""

from dataclasses import dataclass

from gateway.core.snapshot import Endpoint, Leg


@dataclass(frozen=True, slots=True)
class Sample:
    """What was answered.

    Attributes:
        endpoint: where the request came in.
        leg: how its version is served.
        method: of the request.
        target: the path and query that the service was asked for.
        status: of the answer.
        body: of the answer, converted.
    """

    endpoint: Endpoint
    leg: Leg
    method: str
    target: str
    status: int
    body: bytes
