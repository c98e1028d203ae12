"""Sampling: validates samples of live responses in the background.

A sample is taken after the response was sent, and is validated in the document process. When the
queue of that process is full, samples are dropped.

For the gates of a cutover, the responses on both routes share one budget. With separate budgets, a
burst of one kind of request would have a larger share in the samples of the busier route. Responses
to writes are rarer, so they have their own budget and are urgent jobs.
"""

import random
from asyncio import Future
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import NamedTuple

from gateway.observe import log
from gateway.proxy.cutover_counts import CutoverPlace, place_of
from gateway.proxy.exchange import Exchange
from gateway.proxy.record import Recorder
from gateway.rollout.cutover import CutoverRoute
from gateway.rollout.shadow import WRITES
from gateway.routing.plan import Plan
from gateway.routing.snapshot import Endpoint
from gateway.verify.live.document_jobs import (
    JobQueue,
    JobResult,
    MessageCheck,
    documented_endpoint,
)
from gateway.versions.version import Version

# The maximum size of a sample in bytes.
_LARGEST = 256 * 1024
# The maximum number of fields that are counted separately, since bodies may have any number of
# fields.
_FIELDS = 1000
# Limits per second for the gates of a cutover: the number of validated responses, separately for
# reads and writes, and the number of bytes.
_ANSWERS_A_SECOND = 50
_BYTES_A_SECOND = 1024 * 1024


class SampleBudget:
    """A token bucket that limits the samples per second; it holds the tokens of one second."""

    __slots__ = ("_at", "_left", "_rate")

    def __init__(self, rate: float) -> None:
        self._rate = self._left = rate
        self._at: float | None = None

    def has(self, size: float, now: float) -> bool:
        """Return whether enough tokens are available; `now` is in monotonic seconds."""
        if self._at is not None:
            self._left = min(self._left + (now - self._at) * self._rate, self._rate)
        self._at = now
        return size <= self._left

    def take(self, size: float) -> None:
        self._left -= size


class _Sample(NamedTuple):
    """A response as the client received it.

    Attributes:
        drawn: whether the setting `check` selected the response, as part of its percentage of
            converted responses.
        place: where the request is counted for a cutover; None if it is not a sample for the gates.
    """

    endpoint: Endpoint
    version: Version | None
    method: str
    status: int
    drawn: bool
    place: CutoverPlace | None


@dataclass(slots=True)
class Sampling:
    """Takes samples of responses and validates them.

    Attributes:
        recorder: counts `checked` and `unchecked` by API and version, `violations` by API, version
            and field (a JSON Pointer with `*` for array elements), and the evidence for gates. A
            sample is `unchecked` if it is too large, if the queue is full, or if the document
            cannot be used.
        clock: returns monotonic seconds.
    """

    documents: JobQueue
    recorder: Recorder
    draw: Callable[[], float] = random.random
    clock: Callable[[], float] = monotonic
    _seen: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    _answers: dict[tuple[str, Version | None, bool], SampleBudget] = field(default_factory=dict)
    _bytes: SampleBudget = field(default_factory=lambda: SampleBudget(_BYTES_A_SECOND))

    def record(self, exchange: Exchange) -> None:
        """Sample a finished exchange if `check` selects it or the budget for a gate allows it."""
        plan, answer = exchange.plan, exchange.copy
        if plan is None or answer is None or plan.route.check is None or exchange.aborted:
            return
        check, size = plan.route.check, len(answer.body)
        drawn = answer.converted and self.draw() * 100 < check.percent
        place = self._place(exchange, size) if check.gated else None
        if not drawn and place is None:
            return
        endpoint, version = plan.endpoint, plan.route.version
        if size > _LARGEST:
            self.recorder.count("unchecked", endpoint.api, str(version))
            return
        job = MessageCheck(
            check.schema,
            documented_endpoint(endpoint, version),
            str(version),
            exchange.method,
            _target(exchange, plan),
            answer.fields,
            answer.body,
            exchange.status,
        )
        sample = _Sample(endpoint, version, exchange.method, exchange.status, drawn, place)
        is_write = place is not None and exchange.method in WRITES
        result = self.documents.ask(job, urgent=is_write)
        result.add_done_callback(partial(self._validated, sample))

    def _place(self, exchange: Exchange, size: int) -> CutoverPlace | None:
        if exchange.cutover_route is None:
            return None
        assert exchange.endpoint is not None  # a request with a route has an endpoint
        key = exchange.endpoint.api, exchange.version, exchange.method in WRITES
        budget = self._answers.get(key)
        if budget is None:
            budget = self._answers[key] = SampleBudget(_ANSWERS_A_SECOND)
        now = self.clock()
        if budget.has(1, now) and self._bytes.has(size, now):
            budget.take(1)
            self._bytes.take(size)
            return place_of(exchange)
        return None

    def _validated(self, sample: _Sample, future: "Future[JobResult]") -> None:
        result, labels = future.result(), (sample.endpoint.api, str(sample.version))
        if not result.done or result.problem:
            self.recorder.count("unchecked", *labels)
            return
        found = result.found
        if sample.drawn:
            self.recorder.count("checked", *labels)
        if sample.place is not None and found is not None:
            operation = f"{sample.method} {sample.endpoint.template.text}"
            fields = {f"{operation} {place}" for place, _, _ in found}
            asked = sample.method, sample.endpoint.template.text
            self.recorder.check(sample.place, asked, fields)
        # Violations on the old route are compared by the gate but not logged.
        if sample.drawn or (sample.place is not None and sample.place[2] == CutoverRoute.NEW):
            for place, keyword, _ in found or ():
                self._count(sample, place, keyword)

    def _count(self, sample: _Sample, place: str, keyword: str) -> None:
        api, version = sample.endpoint.api, str(sample.version)
        key = (api, version, place)
        if key not in self._seen and len(self._seen) >= _FIELDS:
            key = (api, version, "other")
        self._seen[key] += 1
        if sample.drawn:
            self.recorder.count("violations", *key)
        count = self._seen[key]
        if count == 10 ** (len(str(count)) - 1):  # log the counts 1, 10, 100 and so on
            log.event(
                "violation",
                "warning",
                api=api,
                version=version,
                endpoint=sample.endpoint.template.text,
                status=sample.status,
                field=key[2],
                keyword=keyword,
                count=count,
            )


def _target(exchange: Exchange, plan: Plan) -> str:
    if plan.operation_path is None:
        return plan.target
    path = exchange.message.path.partition("?")[0]
    found = exchange.snapshot.router.find(path)
    captures = {} if found is None else found[1]
    template = plan.route.upstream_path or plan.endpoint.template
    return template.fill({**captures, "version": str(plan.version)})
