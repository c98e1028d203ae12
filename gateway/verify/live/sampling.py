"""Sampling: validates samples of live responses in the background.

A sample is taken after the response was sent. Samples are added to a bounded queue and validated
one at a time in a thread. When the queue is full, samples are dropped.

For the gates of a cutover, the responses on both routes share one budget. With separate budgets, a
burst of one kind of request would have a larger share in the samples of the busier route. Responses
to writes are rarer, so they have their own budget and are validated first.
"""

import asyncio
import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic

from gateway.observe import log
from gateway.proxy.cutover_counts import CutoverPlace, place_of
from gateway.proxy.record import Exchange, Recorder
from gateway.rollout.cutover import CutoverRoute
from gateway.rollout.shadow import WRITES
from gateway.routing.plan import Plan
from gateway.verify.live.answer_sample import AnswerSample
from gateway.verify.live.contracts import Contracts
from gateway.verify.live.sample_budget import SampleBudget
from gateway.versions.version import Version

# The maximum number of queued samples, their total size, and the size of each sample in bytes.
# Decoding a larger body would block the interpreter for too long.
_QUEUE = 64
_BYTES = 1024 * 1024
_LARGEST = 256 * 1024
# The maximum number of fields that are counted separately, since bodies may have any number of
# fields.
_FIELDS = 1000
# Limits per second for the gates of a cutover: the number of validated responses, separately for
# reads and writes, and the number of bytes.
_ANSWERS_A_SECOND = 50
_BYTES_A_SECOND = 1024 * 1024


@dataclass(slots=True)
class Sampling:
    """Takes samples of responses and validates them.

    Attributes:
        recorder: counts `checked` and `unchecked` by API and version, `violations` by API, version
            and field (a JSON Pointer with `*` for array elements), and the evidence for gates. A
            sample is also `unchecked` if the document cannot be loaded. Without a recorder,
            violations are only logged.
        clock: returns monotonic seconds.
        shed: the number of samples that were dropped because they were too large or the queue was
            full.
    """

    contracts: Contracts
    recorder: Recorder | None = None
    draw: Callable[[], float] = random.random
    clock: Callable[[], float] = monotonic
    shed: int = 0
    _waiting: deque[AnswerSample] = field(default_factory=deque)
    _size: int = 0
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)
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
        if len(self._waiting) >= _QUEUE or size > _LARGEST or self._size + size > _BYTES:
            self.shed += 1
            if drawn and self.recorder is not None:
                self.recorder.count("unchecked", plan.endpoint.api, str(plan.route.version))
            return
        sample = AnswerSample(
            plan.endpoint,
            plan.route,
            exchange.method,
            _target(exchange, plan),
            exchange.status,
            answer,
            drawn,
            place,
        )
        if place is not None and exchange.method in WRITES:
            self._waiting.appendleft(sample)
        else:
            self._waiting.append(sample)
        self._size += size
        self._arrived.set()

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

    async def run(self) -> None:
        while True:
            await self._arrived.wait()
            while self._waiting:
                sample = self._waiting.popleft()
                self._size -= len(sample.answer.body)
                await self._validate(sample)
            self._arrived.clear()

    async def _validate(self, sample: AnswerSample) -> None:
        assert sample.route.check is not None
        # Without `check`, a missing document is not an error.
        level = "error" if sample.route.check.percent else "info"
        contract = await self.contracts.get(sample.route.check.schema, level)
        if contract is None:
            if self.recorder is not None:
                labels = sample.endpoint.api, str(sample.route.version)
                self.recorder.count("unchecked", *labels)
            return
        try:
            found = await asyncio.to_thread(contract.violations, sample)
        except Exception as error:  # an error in the validation is only logged
            log.event("check_failed", "error", reason=f"{type(error).__name__}: {error}")
            return
        if self.recorder is not None:
            if sample.drawn:
                self.recorder.count("checked", sample.endpoint.api, str(sample.route.version))
            if sample.place is not None and found is not None:
                operation = f"{sample.method} {sample.endpoint.template.text}"
                fields = {f"{operation} {place}" for place, _ in found}
                asked = sample.method, sample.endpoint.template.text
                self.recorder.check(sample.place, asked, fields)
        # Violations on the old route are compared by the gate but not logged.
        if sample.drawn or (sample.place is not None and sample.place[2] == CutoverRoute.NEW):
            for place, keyword in found or ():
                self._count(sample, place, keyword)

    def _count(self, sample: AnswerSample, place: str, keyword: str) -> None:
        api, version = sample.endpoint.api, str(sample.route.version)
        key = (api, version, place)
        if key not in self._seen and len(self._seen) >= _FIELDS:
            key = (api, version, "other")
        self._seen[key] += 1
        if self.recorder is not None and sample.drawn:
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
