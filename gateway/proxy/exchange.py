"""The Exchange: the record of one request. Its log line is written from it, once."""

import time

# msgspec: its structs are made in a tenth of the time that a class of Python's own takes.
from msgspec import Struct, field

from gateway.core.clients import ANONYMOUS
from gateway.core.plan import Plan
from gateway.core.snapshot import Endpoint
from gateway.core.versions.version import Version


class Exchange(Struct):
    """What happened to one request; filled while it walks through the phases.

    Attributes:
        request_id: the client's, or one of ours.
        method: of the request.
        path: of the request, without the query, which may hold secrets.
        peer: the address that the request came from.
        client: the name of who asks; empty where nothing names it.
        endpoint: where it came in; None if the path names no endpoint.
        version: the version that was asked for; None if none was chosen.
        plan: what was planned; None if it was refused.
        target: the address of the service that answered.
        converted: whether a body was converted.
        body: of the converted answer, where its version is checked; None where it is not.
        code: the code of the fault, if there was one.
        cause: what went wrong, for the log alone.
        aborted: whether the response ended before it was whole.
        began: when the head of the request was there, in monotonic seconds.
        asked: when the service was asked; 0 if it was not.
        answered: when the head of its response was there; 0 if none came.
    """

    request_id: str
    method: str
    path: str
    peer: str
    client: str = ANONYMOUS
    endpoint: Endpoint | None = None
    version: Version | None = None
    plan: Plan | None = None
    target: str | None = None
    converted: bool = False
    body: bytes | None = None
    code: str | None = None
    cause: str | None = None
    aborted: bool = False
    began: float = field(default_factory=time.perf_counter)
    asked: float = 0.0
    answered: float = 0.0
