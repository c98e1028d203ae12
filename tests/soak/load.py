"""A load that checks every response, and separates the errors that a kill explains.

A response is right, wrong or missing. A missing response is explained only if something was killed
while the request was in flight: the worker that held the connection or the backend.
"""

import asyncio
import json
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from math import inf
from time import monotonic
from typing import Any, NamedTuple

from tests.gateway.kit import Program
from tests.gateway.talk import Answer, Client, ask, connect

# Errors that a client gets from a cut connection or a missing response.
FAILURES = (OSError, asyncio.IncompleteReadError)  # TimeoutError is an OSError


class WrongAnswerError(Exception):
    """A response that does not belong to the request."""


@dataclass(frozen=True, slots=True)
class Question:
    """A request and the check of its response.

    Attributes:
        service: the service that responds, as kills name it.
        right: whether a response is right; it checks status, fields and body.
        fields: header lines besides Host, X-Request-Id and those of the body.
        key: an Idempotency-Key, by which the service recognizes a repeated request; the client
            repeats it if the gateway cannot know whether the request was processed.
    """

    service: str
    line: str
    right: Callable[[Answer], bool]
    fields: tuple[str, ...] = ()
    body: Any = None
    key: str = ""

    def request(self, request_id: str) -> bytes:
        fields = (*self.fields, f"X-Request-Id: {request_id}")
        if self.key:
            fields = (*fields, f"Idempotency-Key: {self.key}")
        if self.body is None:
            return ask(self.line, *fields)
        body = json.dumps(self.body).encode()
        about = ("Content-Type: application/json", f"Content-Length: {len(body)}")
        return ask(self.line, *fields, *about, body=body)


def is_refusal(answer: Answer) -> bool:
    """Whether the gateway reports that it got no response from a backend."""
    return answer.status in (502, 503, 504) and "problem+json" in answer["content-type"]


class Failure(NamedTuple):
    """A missing response; the request id is empty if the gateway may have read no request."""

    text: str
    request_id: str = ""


@dataclass(slots=True)
class Kill:
    """A period in which requests to some services may fail; both ends in seconds of `monotonic`."""

    services: frozenset[str]
    since: float
    until: float = inf


@dataclass
class Load:
    """The requests to a gateway, and the results.

    Attributes:
        explained: errors that a kill explains, by their kind.
        unexplained: errors that no kill explains.
        cut: the local ports of clients whose connections ended with their worker, and the time.
        created: the names of the users that the service has stored according to its responses, by
            id.
        pace: the factor of the pauses between requests; a large one saves CPU time.
        seen: the monotonic time until which each IP address of `vault.test` may get requests.
    """

    gateway: Program
    secure_place: tuple[str, int] = ("", 0)
    tls: ssl.SSLContext | None = None
    over: bool = False
    pace: float = 1.0
    right: int = 0
    wrong: list[str] = field(default_factory=list)
    explained: Counter[str] = field(default_factory=Counter)
    unexplained: list[Failure] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    cut: dict[int, float] = field(default_factory=dict)
    created: dict[int, str] = field(default_factory=dict)
    seen: dict[str, float] = field(default_factory=dict)
    serial: Iterator[int] = field(default_factory=count)

    @asynccontextmanager
    async def visit(
        self, service: str, *, window: int = 0, secure: bool = False
    ) -> AsyncIterator["Visit"]:
        """Connect, by TLS if `secure`; an error inside is judged and ends only this visit."""
        visit = Visit(self, service)
        try:
            async with AsyncExitStack() as stack:
                if secure:
                    client = await stack.enter_async_context(self._secured(visit))
                else:
                    client = await stack.enter_async_context(connect(self.gateway, window=window))
                visit.client = client
                visit.port = client.writer.get_extra_info("sockname")[1]
                yield visit
        except WrongAnswerError as wrong:
            self.wrong.append(str(wrong))
        except FAILURES as error:
            visit.failed(repr(error))
        except (AssertionError, LookupError, ValueError) as error:  # it is not a valid response
            self.wrong.append(f"{visit.service}: {error!r}")

    @asynccontextmanager
    async def _secured(self, visit: "Visit") -> AsyncIterator[Client]:
        """Connect by TLS, again if a worker is killed during the handshake."""
        async with AsyncExitStack() as stack:
            while True:
                connection = connect(self.gateway, tls=self.tls, place=self.secure_place)
                try:
                    client = await stack.enter_async_context(connection)
                except FAILURES as error:
                    if all(time < visit.opened for time in self.cut.values()):
                        self.unexplained.append(Failure(f"TLS handshake: {error!r}"))
                    await asyncio.sleep(0.01)
                else:
                    break
            yield client

    async def steady(self, questions: Callable[[], Question], pause: float = 0.002) -> None:
        while not self.over:
            async with self.visit("") as visit:
                while not self.over and not visit.ended:
                    await visit.ask(questions())
                    await asyncio.sleep(pause * self.pace)

    @asynccontextmanager
    async def running(
        self, clients: int, questions: Callable[[], Question], pause: float = 0.002
    ) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            for _ in range(clients):
                group.create_task(self.steady(questions, pause))
            try:
                yield
            finally:
                self.over = True

    def explains(self, visit: "Visit") -> bool:
        """Whether something was killed while a request of the visit was in flight to it."""
        if self.cut.get(visit.port, 0.0) >= visit.opened:
            return True
        return any(
            visit.service in kill.services and kill.until >= visit.since for kill in self.kills
        )


@dataclass
class Visit:
    load: Load
    service: str
    opened: float = field(default_factory=monotonic)
    port: int = 0
    client: Client = field(init=False)

    def __post_init__(self) -> None:
        self.since, self.request_id = self.opened, ""

    @property
    def ended(self) -> bool:
        reader = self.client.reader
        return reader.at_eof() or reader.exception() is not None

    async def ask(self, question: Question) -> Answer | None:
        """Return the right response, or None if a kill explains that there is none."""
        self.begin(question)
        request_id = f"load-{next(self.load.serial)}"
        self.client.send(question.request(request_id))
        return self.judge(question, request_id, await self.client.final())

    def begin(self, question: Question) -> None:
        self.service, self.since, self.request_id = question.service, monotonic(), ""

    def judge(self, question: Question, request_id: str, answer: Answer) -> Answer | None:
        """Return the response if it is right, None if a kill explains it.

        Raises:
            WrongAnswerError: the response is neither right nor explained.
        """
        self.request_id = request_id
        if is_refusal(answer):
            code = json.loads(answer.body)["code"]
            if question.key and code == "upstream_unreachable":
                # A service may close an idle connection just when the gateway sends a request. Such
                # a request is never repeated unless it is idempotent (RFC 9110, section 9.2.2).
                self.load.explained["a write to be repeated"] += 1
            else:
                self.failed(f"{answer.status} {code}")
            return None
        if answer.all("x-request-id") != [request_id] or not question.right(answer):
            raise WrongAnswerError(f"{question.line} {request_id}: {str(answer)[:500]}")
        self.load.right += 1
        return answer

    def failed(self, what: str) -> None:
        if self.load.explains(self):
            self.load.explained[what] += 1
        else:
            after = monotonic() - self.since
            text = f"{self.service or 'gateway'}: {what} after {after:.3f} s"
            self.load.unexplained.append(Failure(text, self.request_id))
