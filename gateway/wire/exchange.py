"""The Exchange: the record of one request. Its log line is written from it, once."""

import time

from gateway.core.plan import Plan
from gateway.core.snapshot import Endpoint
from gateway.core.version import Version


class Exchange:
    """What happened to one request; filled while it walks through the phases.

    Attributes:
        request_id: the client's, or one of ours.
        method: of the request.
        path: of the request, without the query, which may hold secrets.
        peer: the address that the request came from.
        endpoint: where it came in; None if the path names no endpoint.
        version: the version that was asked for; None if none was chosen.
        plan: what was planned; None if it was refused.
        target: the address of the service that answered.
        converted: whether a body was converted.
        code: the code of the fault, if there was one.
        cause: what went wrong, for the log alone.
        aborted: whether the response ended before it was whole.
        began: when the head of the request was there, in monotonic seconds.
        asked: when the service was asked; 0 if it was not.
        answered: when the head of its response was there; 0 if none came.
    """

    __slots__ = (
        "aborted",
        "answered",
        "asked",
        "began",
        "cause",
        "code",
        "converted",
        "endpoint",
        "method",
        "path",
        "peer",
        "plan",
        "request_id",
        "target",
        "version",
    )

    def __init__(self, request_id: str, method: str, path: str, peer: str) -> None:
        self.request_id = request_id
        self.method = method
        self.path = path
        self.peer = peer
        self.endpoint: Endpoint | None = None
        self.version: Version | None = None
        self.plan: Plan | None = None
        self.target: str | None = None
        self.converted = False
        self.code: str | None = None
        self.cause: str | None = None
        self.aborted = False
        self.began = time.perf_counter()
        self.asked = 0.0
        self.answered = 0.0
