"""Jobs for the document process, and the bounded queue in which they wait.

Each process of a gateway has a queue. A worker sends its jobs to the supervisor one at a time, so
no worker can occupy the document process alone.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Final

import msgspec

from gateway.base.headers import HeaderFields
from gateway.http.upstream.upstream import UpstreamRequest
from gateway.rollout.differences import RefusedField
from gateway.routing.plan import Plan
from gateway.routing.snapshot import Endpoint
from gateway.versions.version import Version

LENGTH: Final = 4
"""The bytes of the length that precedes each job and result."""
MOST_MEMORY: Final = 512 * 1024 * 1024
"""The maximum bytes of memory of the document process."""
LONGEST: Final = 60.0
"""The maximum seconds of processor time for one job."""
OUT_OF_MEMORY: Final = 3
"""The exit status of a process that needs more memory."""
# The maximum number of messages in a queue, their total size, and the size of each, in bytes.
_MOST = 64
_MOST_BYTES = 2 * 1024 * 1024
_LARGEST = 1024 * 1024


class DocumentedEndpoint(msgspec.Struct, array_like=True, frozen=True):
    """The parts of an endpoint that determine its operations in the document of a version.

    Attributes:
        serves: whether clients can get the version at the endpoint.
    """

    path: str
    upstream_path: str | None
    methods: tuple[str, ...] | None
    serves: bool


class MessageCheck(msgspec.Struct, tag=True, frozen=True):
    """Validate a message of a version: a request if `status` is None, else a response."""

    document: str
    endpoint: DocumentedEndpoint
    version: str
    method: str
    target: str
    fields: HeaderFields
    body: bytes | None
    status: int | None = None


class FileCheck(msgspec.Struct, tag=True, frozen=True):
    """Check that a file exists and looks like an OpenAPI document."""

    document: str


class Compilation(msgspec.Struct, tag=True, frozen=True):
    """Compile a document for conversions with `additional` or merged writes."""

    document: str


class OperationList(msgspec.Struct, tag=True, frozen=True):
    """Find the operations of a version, with the endpoints that route to them."""

    document: str
    version: str
    endpoints: list[DocumentedEndpoint]


class Reread(msgspec.Struct, tag=True, frozen=True):
    """Load each document again when it is next needed."""

    document: str = ""


Job = MessageCheck | FileCheck | Compilation | OperationList | Reread


class JobResult(msgspec.Struct, tag=True, frozen=True):
    """The result of a job.

    Attributes:
        found: the violations of a message: field, keyword of JSON Schema, and reason; None if the
            document has no schema for the message.
        operations: the fields of each DocumentedOperation; its public paths as text.
        shapes: the compiled document.
        problem: a mistake in the document; empty without one.
        done: whether the document could be used.
    """

    found: list[tuple[str, str, str]] | None = None
    operations: list[tuple[str, str, str, str | None]] = []
    shapes: bytes = b""
    problem: str = ""
    done: bool = True


NOT_DONE = JobResult(done=False)
Waiting = tuple[Job, "asyncio.Future[JobResult]"]


class JobQueue:
    """A bounded queue of jobs.

    Writes are rarer than reads, so they are urgent. Urgent jobs and others alternate, so that many
    writes do not prevent the validation of reads.
    """

    def __init__(self) -> None:
        self._urgent: deque[Waiting] = deque()
        self._others: deque[Waiting] = deque()
        self._messages = self._bytes = 0
        self._took_urgent = False
        self._arrived = asyncio.Event()

    def ask(self, job: Job, *, urgent: bool = False) -> "asyncio.Future[JobResult]":
        """Return the future result; NOT_DONE if the queue is full or the document unusable."""
        future: asyncio.Future[JobResult] = asyncio.get_running_loop().create_future()
        if isinstance(job, MessageCheck):
            size = _size(job)
            while urgent and len(self._others) > len(self._urgent) and self._is_full(size):
                self._dropped(self._others.pop())
            if size > _LARGEST or self._is_full(size):
                future.set_result(NOT_DONE)
                return future
            self._messages, self._bytes = self._messages + 1, self._bytes + size
        is_first = urgent or not isinstance(job, MessageCheck)
        (self._urgent if is_first else self._others).append((job, future))
        self._arrived.set()
        return future

    async def next(self) -> Waiting:
        while not (self._urgent or self._others):
            self._arrived.clear()
            await self._arrived.wait()
        self._took_urgent = bool(self._urgent) and not (self._others and self._took_urgent)
        job, future = (self._urgent if self._took_urgent else self._others).popleft()
        self._taken(job)
        return job, future

    def _is_full(self, size: int) -> bool:
        return self._messages >= _MOST or self._bytes + size > _MOST_BYTES

    def _dropped(self, waiting: Waiting) -> None:
        job, future = waiting
        self._taken(job)
        resolve(future, NOT_DONE)

    def _taken(self, job: Job) -> None:
        if isinstance(job, MessageCheck):
            self._messages, self._bytes = self._messages - 1, self._bytes - _size(job)

    async def validate(
        self, document: str, plan: Plan, request: UpstreamRequest
    ) -> list[RefusedField] | None:
        """Return the invalid parts of a request for a service; None if it was not validated."""
        version, body = plan.route.service_version, request.body
        assert body is None or isinstance(body, bytes)
        job = MessageCheck(
            document,
            documented_endpoint(plan.endpoint, version),
            str(version),
            request.method,
            request.target,
            request.all_fields,
            body,
        )
        result = await self.ask(job, urgent=True)
        return [RefusedField(*one) for one in result.found or ()] if result.done else None


def resolve(future: "asyncio.Future[JobResult]", result: JobResult) -> None:
    if not future.done():
        future.set_result(result)


def documented_endpoint(endpoint: Endpoint, version: Version | None) -> DocumentedEndpoint:
    route = endpoint.routes.get(version)
    upstream = None if route is None or route.upstream_path is None else route.upstream_path.text
    supported: Iterable[object] = (
        (version,) if endpoint.selector is None else endpoint.selector.supported.values()
    )
    return DocumentedEndpoint(
        endpoint.template.text, upstream, endpoint.methods, version in supported
    )


def _size(job: MessageCheck) -> int:
    return len(job.body or b"") + sum(len(name) + len(value) for name, value in job.fields)
