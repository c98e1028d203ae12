"""Sampling: validates samples of live converted responses in the background.

A sample is taken after the response was sent to the client, and waits in a bounded queue. Samples
are validated one at a time in a thread. When the queue is full, a sample is dropped. Sampling
cannot delay or fail a response.
"""

import asyncio
import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.core.plan import Plan
from gateway.proxy.client.exchange import Exchange
from gateway.telemetry import log
from gateway.telemetry.recorder import Recorder
from gateway.verify.live.answer_sample import AnswerSample
from gateway.verify.live.contracts import Contracts

# The maximum number of waiting samples, of bytes of all, and of bytes of each: decoding a larger
# body would block the interpreter for too long.
_QUEUE = 64
_BYTES = 1024 * 1024
_LARGEST = 256 * 1024
# The maximum number of fields that are counted separately; bodies may have any number of fields.
_FIELDS = 1000


@dataclass(slots=True)
class Sampling:
    """Takes samples of converted responses and validates them.

    Attributes:
        contracts: loads the documents of versions.
        recorder: counts `checked` and `unchecked` by API and version, and `violations` by API,
            version and field, a JSON Pointer with `*` for any element of an array; None to only
            log violations.
        draw: a function that returns a random number from 0 up to 1 for each response.
        shed: the number of samples dropped because they were too large or the queue was full.
    """

    contracts: Contracts
    recorder: Recorder | None = None
    draw: Callable[[], float] = random.random
    shed: int = 0
    _waiting: deque[AnswerSample] = field(default_factory=deque)
    _size: int = 0
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)
    _seen: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def record(self, exchange: Exchange) -> None:
        """Sample a finished exchange if its version is checked and the draw selects it."""
        plan, body = exchange.plan, exchange.body
        if plan is None or body is None or plan.route.check is None or exchange.aborted:
            return
        if self.draw() * 100 >= plan.route.check.percent:
            return
        if len(self._waiting) >= _QUEUE or len(body) > _LARGEST or self._size + len(body) > _BYTES:
            self.shed += 1
            if self.recorder is not None:
                self.recorder.count("unchecked", plan.endpoint.api, str(plan.route.version))
            return
        self._waiting.append(
            AnswerSample(
                plan.endpoint,
                plan.route,
                exchange.method,
                _target(exchange, plan),
                exchange.status,
                body,
            )
        )
        self._size += len(body)
        self._arrived.set()

    async def run(self) -> None:
        """Validate samples as they arrive, until cancelled."""
        while True:
            await self._arrived.wait()
            while self._waiting:
                sample = self._waiting.popleft()
                self._size -= len(sample.body)
                await self._validate(sample)
            self._arrived.clear()

    async def _validate(self, sample: AnswerSample) -> None:
        assert sample.route.check is not None
        contract = await self.contracts.get(sample.route.check.schema)
        if contract is None:
            return
        try:
            found = await asyncio.to_thread(contract.violations, sample)
        except Exception as error:  # a failing sample is only logged
            log.event("check_failed", "error", reason=f"{type(error).__name__}: {error}")
            return
        if self.recorder is not None:
            self.recorder.count("checked", sample.endpoint.api, str(sample.route.version))
        for place, keyword in found:
            self._count(sample, place, keyword)

    def _count(self, sample: AnswerSample, place: str, keyword: str) -> None:
        api, version = sample.endpoint.api, str(sample.route.version)
        key = (api, version, place)
        if key not in self._seen and len(self._seen) >= _FIELDS:
            key = (api, version, "other")
        self._seen[key] += 1
        if self.recorder is not None:
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
    """Return the path of a request in its own version, where the service has another operation."""
    if plan.passage is None:
        return plan.target
    path = exchange.message.path.partition("?")[0]
    found = exchange.snapshot.router.find(path)
    captures = {} if found is None else found[1]
    template = plan.route.upstream_path or plan.endpoint.template
    return template.fill({**captures, "version": str(plan.version)})
