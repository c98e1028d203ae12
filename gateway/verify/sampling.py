"""Samples of live converted answers, validated in the background.

A sample is offered once the client has its answer, waits in a bounded queue, and is validated in a
thread, one at a time. What finds no room is shed. Nothing here can delay or fail an answer.
"""

import asyncio
import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gateway.proxy.client.client_response import ClientResponse
from gateway.proxy.exchange import Exchange
from gateway.telemetry import log
from gateway.verify.answer_sample import AnswerSample

if TYPE_CHECKING:
    from gateway.verify.contract import Contract

# What may wait: answers, and bytes of them. A larger one would hold up who shares the interpreter.
_QUEUE = 64
_BYTES = 1024 * 1024
_LARGEST = 256 * 1024
# After a document could not be had, answers are not sampled for so many seconds.
_PATIENCE = 60.0
# Bodies may have any number of different fields; no more than so many are told apart.
_FIELDS = 1000


class SampleCounter(Protocol):
    """Counts what was found."""

    def count(self, kind: str, *labels: str) -> None:
        """Count `checked` by API and version, and `violations` by API, version and field.

        A field is a JSON Pointer with `*` for any element of an array.
        """
        ...


@dataclass(slots=True)
class Sampling:
    """Takes samples and validates them.

    Attributes:
        folder: what the paths of documents start from.
        recorder: counts violations; None leaves it to the log.
        draw: returns a number from 0 up to 1 for each answer.
        shed: how many samples found no room.
    """

    folder: Path
    recorder: SampleCounter | None = None
    draw: Callable[[], float] = random.random
    shed: int = 0
    _waiting: deque[AnswerSample] = field(default_factory=deque)
    _size: int = 0
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)
    _contracts: "dict[str, Contract | float]" = field(default_factory=dict)
    _seen: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def record(self, exchange: Exchange, down: ClientResponse) -> None:
        """Take a finished exchange in, if its version is checked and the draw says so."""
        plan, body = exchange.plan, exchange.body
        if plan is None or body is None or plan.route.check is None or exchange.aborted:
            return
        if self.draw() * 100 >= plan.route.check.percent:
            return
        if len(self._waiting) >= _QUEUE or len(body) > _LARGEST or self._size + len(body) > _BYTES:
            self.shed += 1
            return
        self._waiting.append(
            AnswerSample(plan.endpoint, plan.route, exchange.method, plan.target, down.status, body)
        )
        self._size += len(body)
        self._arrived.set()

    def forget(self) -> None:
        """Read the documents anew, as the rules may lead to others."""
        self._contracts.clear()

    async def run(self) -> None:
        """Validate what is sampled, until cancelled."""
        while True:
            await self._arrived.wait()
            while self._waiting:
                sample = self._waiting.popleft()
                self._size -= len(sample.body)
                await self._validate(sample)
            self._arrived.clear()

    async def _validate(self, sample: AnswerSample) -> None:
        assert sample.route.check is not None
        contract = await self._contract(sample.route.check.schema)
        if contract is None:
            return
        try:
            found = await asyncio.to_thread(contract.violations, sample)
        except Exception as error:  # a sample is worth no more than a line
            log.event("check_failed", "error", reason=f"{type(error).__name__}: {error}")
            return
        if self.recorder is not None:
            self.recorder.count("checked", sample.endpoint.api, str(sample.route.version))
        for place, keyword in found:
            self._count(sample, place, keyword)

    async def _contract(self, location: str) -> "Contract | None":
        # Loaded when first needed: most gateways never validate.
        from gateway.verify.contract import load
        from gateway.verify.openapi.openapi import DocumentError

        loop = asyncio.get_running_loop()
        known = self._contracts.get(location)
        if isinstance(known, float):
            if loop.time() < known:
                return None
            known = None
        if known is None:
            try:
                known = await load(location, self.folder)
            except DocumentError as error:
                log.event("check_failed", "error", reason=str(error))
                self._contracts[location] = loop.time() + _PATIENCE
                return None
            self._contracts[location] = known
        return known

    def _count(self, sample: AnswerSample, place: str, keyword: str) -> None:
        api, version = sample.endpoint.api, str(sample.route.version)
        key = (api, version, place)
        if key not in self._seen and len(self._seen) >= _FIELDS:
            key = (api, version, "other")
        self._seen[key] += 1
        if self.recorder is not None:
            self.recorder.count("violations", *key)
        count = self._seen[key]
        if count == 10 ** (len(str(count)) - 1):  # the first, and then each tenfold
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
