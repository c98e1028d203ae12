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
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.proxy.client.exchange import Exchange
from gateway.telemetry import log
from gateway.telemetry.recorder import Recorder
from gateway.verify.answer_sample import AnswerSample

if TYPE_CHECKING:
    from gateway.verify.contract import Contract

# The maximum number of waiting samples, of bytes of all, and of bytes of each: decoding a larger
# body would block the interpreter for too long.
_QUEUE = 64
_BYTES = 1024 * 1024
_LARGEST = 256 * 1024
# For how many seconds samples are skipped after their document could not be loaded.
_PATIENCE = 60.0
# The maximum number of fields that are counted separately; bodies may have any number of fields.
_FIELDS = 1000


@dataclass(slots=True)
class Sampling:
    """Takes samples of converted responses and validates them.

    Attributes:
        folder: the folder that relative paths of documents start from.
        recorder: counts `checked` by API and version, and `violations` by API, version and field,
            a JSON Pointer with `*` for any element of an array; None to only log violations.
        draw: a function that returns a random number from 0 up to 1 for each response.
        shed: the number of samples dropped because they were too large or the queue was full.
    """

    folder: Path
    recorder: Recorder | None = None
    draw: Callable[[], float] = random.random
    shed: int = 0
    _waiting: deque[AnswerSample] = field(default_factory=deque)
    _size: int = 0
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)
    _contracts: "dict[str, Contract | float]" = field(default_factory=dict)
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
            return
        self._waiting.append(
            AnswerSample(
                plan.endpoint, plan.route, exchange.method, plan.target, exchange.status, body
            )
        )
        self._size += len(body)
        self._arrived.set()

    def forget(self) -> None:
        """Discard the loaded documents after a reload of the rules; they are loaded when needed."""
        self._contracts.clear()

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
        contract = await self._contract(sample.route.check.schema)
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

    async def _contract(self, location: str) -> "Contract | None":
        # Imported when first needed, since most gateways never validate.
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
