"""Shadows: send a client's request to another version's service too, and compare the answers.

The client's answer comes from its own version's service and is forwarded as it arrives, while a
bounded copy is kept. After that, the request is sent to the other service by the shadow's plan, and
once more to the own service. A field in which two answers of the own service differ is noise; the
differences in all other fields are counted.

Comparisons have the lowest priority. When the process or a service is busy, or too many comparisons
or bytes are waiting, a comparison is dropped and counted as shed. No comparison delays, changes or
fails a client's answer.
"""

import asyncio
import logging
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import Protocol

import msgspec

from gateway.core.cutover.differences import (
    Difference,
    compare,
    plain,
    redacted,
    without_noise,
)
from gateway.core.cutover.shadow import SAFE, Shadow
from gateway.core.headers import HeaderFields
from gateway.core.plan import Plan
from gateway.proxy.client.exchange import Exchange
from gateway.proxy.shadow.capture import CaptureBudget, CapturedBody, CapturingResponse
from gateway.proxy.shadow.process_load import Load, time_used
from gateway.proxy.shadow.replay import CapturedAnswer, ShedError, for_client, replay
from gateway.proxy.transit import bodiless
from gateway.proxy.upstream.upstream import Upstream, UpstreamRequest, UpstreamResponse

_log = logging.getLogger(__name__)

# The bounds on comparisons in this process: running, waiting, and seconds of waiting.
_AT_ONCE = 16
_LINE = 128
_PATIENCE = 2.0
# The memory budget for all captured bodies together, in bytes.
_MEMORY = 16 * 1024 * 1024
# A task that starts more than so many seconds after its creation shows that the event loop lags.
_LAG = 0.1
# Bodies of more bytes than this are compared in a thread.
_INLINE = 16 * 1024
# The statuses of answers that depend on the client's cache or ranges, and are not compared.
_PARTIAL = (206, 304)


class ShadowCounter(Protocol):
    """The part of `gateway.telemetry.recorder.Recorder` that shadows use."""

    def count(self, kind: str, *labels: str, times: int = 1) -> None:
        """Increment a counter."""
        ...

    def sample(self, kind: str, api: str, version: str, document: object) -> None:
        """Report an example for operators."""
        ...


class Shadows:
    """Captures requests and their answers, and runs the comparisons.

    Args:
        upstream: the interface to the services.
        recorder: counts comparisons and differences.
    """

    def __init__(self, upstream: Upstream, recorder: ShadowCounter) -> None:
        self.upstream = upstream
        self.recorder = recorder
        self.budget = CaptureBudget(_MEMORY)
        self._key = secrets.token_bytes(16)
        self._load = Load(time_used())
        self._waiting: deque[_Case] = deque()
        self._running: set[asyncio.Task[None]] = set()

    @property
    def busy(self) -> bool:
        """Whether the process is too busy for comparisons; checked before a shadow is planned."""
        return self._load.high

    async def send(
        self, exchange: Exchange, plan: Plan, request: UpstreamRequest
    ) -> UpstreamResponse:
        """Send a client's request to its version's own service; compare the answers afterwards.

        Raises:
            FaultError: the service gave no response.
        """
        assert plan.route.shadow is not None
        if request.upgrade:
            return await self.upstream.send(plan.route.service, request)
        case = _Case(self, plan.route.shadow.rule, exchange, plan, request)
        try:
            return case.over(await self.upstream.send(plan.route.service, case.passing))
        except BaseException:
            case.drop("unanswered")
            raise

    def shed(self, rule: Shadow, why: str) -> None:
        """Count a comparison that is not made, with the reason."""
        self.recorder.count("shed", *rule.key, why)

    def submit(self, case: "_Case") -> None:
        """Start a comparison, queue it, or shed it if the queue is full."""
        if len(self._running) < _AT_ONCE:
            self._start(case)
        elif len(self._waiting) < _LINE:
            self._waiting.append(case)
        else:
            case.shed("queue")

    def close(self) -> None:
        """Cancel all running and waiting comparisons."""
        self._waiting.clear()
        for task in self._running:
            task.cancel()

    def show(self, rule: Shadow, difference: Difference) -> dict[str, str]:
        """Return a difference for operators, with values redacted unless the rule shows them."""
        old, new = difference.old, difference.new
        if rule.plain or difference.field == "status":  # a status is no secret
            return {"field": difference.field, "old": plain(old), "new": plain(new)}
        shown = (redacted(value, self._key) for value in (old, new))
        return dict(zip(("field", "old", "new"), (difference.field, *shown), strict=True))

    def _start(self, case: "_Case") -> None:
        task = asyncio.get_running_loop().create_task(case.compare(time.monotonic()))
        self._running.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        while self._waiting:
            case = self._waiting.popleft()
            if time.monotonic() - case.ended > _PATIENCE:
                case.shed("queue")
            elif self._load.high:
                case.shed("load")
            else:
                self._start(case)
                return


class _Case:
    """One captured request and the comparison of its answers."""

    def __init__(
        self,
        shadows: Shadows,
        rule: Shadow,
        exchange: Exchange,
        plan: Plan,
        request: UpstreamRequest,
    ) -> None:
        self._shadows = shadows
        self._rule = rule
        self._exchange = exchange
        self._plan = plan
        self._request = self.passing = request
        self._body = CapturedBody(shadows.budget, rule.body)
        self._answer = CapturedBody(shadows.budget, rule.body)
        self._status = 0
        self._fields: HeaderFields = []
        self.ended = 0.0
        if isinstance(request.body, AsyncIterator):
            self.passing = msgspec.structs.replace(request, body=self._body.of(request.body))

    def over(self, response: UpstreamResponse) -> UpstreamResponse:
        """Return the response for the client, which is captured while it is read."""
        self._status, self._fields = response.status, response.fields
        return CapturingResponse(response, self._answer, self._over)

    def shed(self, why: str) -> None:
        """Drop the copies and count the comparison as shed."""
        self.drop(why)
        self._shadows.shed(self._rule, why)

    def drop(self, why: str) -> None:
        """Drop the copies of both bodies."""
        self._body.drop(why)
        self._answer.drop(why)

    def _over(self, whole: bool) -> None:
        self.ended = time.monotonic()
        lost = self._body.lost or self._answer.lost
        if self._status in _PARTIAL:
            lost = "partial"
        elif not whole and not bodiless(self._exchange.method, self._status):
            lost = lost or "unfinished"
        if lost is None:
            self._shadows.submit(self)
        else:
            self.shed(lost)

    async def compare(self, made: float) -> None:
        """Replay the request, compare the answers, and count the differences."""
        try:
            if time.monotonic() - made > _LAG:
                raise ShedError("load")
            await self._compare()
        except ShedError as error:
            self.shed(str(error))
        except Exception:
            _log.exception("a shadow of %s %s failed", *self._rule.key)
            self.shed("failed")
        finally:
            self.drop("done")

    async def _compare(self) -> None:
        rule, exchange = self._rule, self._exchange
        assert self._plan.shadow is not None
        request = self._request
        body = request.body if isinstance(request.body, bytes) else None
        if self.passing is not request:
            body = self._body.whole()
        plans = [self._plan.shadow]
        if rule.noise and exchange.method in SAFE:
            plans.append(self._plan)
        captured = CapturedAnswer(self._status, self._fields, self._answer.whole())
        given = [await for_client(exchange, self._plan, captured, rule)]
        replays = (replay(self._shadows.upstream, exchange, plan, body, rule) for plan in plans)
        for answer in await asyncio.gather(*replays, return_exceptions=True):
            if isinstance(answer, BaseException):
                raise answer
            given.append(answer)

        def find() -> tuple[tuple[Difference, ...], tuple[Difference, ...]]:
            old, new, *twice = [each.compared(rule, exchange.method) for each in given]
            noise = compare(old, twice[0], rule.ignored) if twice else ()
            return without_noise(compare(old, new, rule.ignored), noise), noise

        if max(len(each.body) for each in given) > _INLINE:
            differences, noise = await asyncio.to_thread(find)
        else:
            differences, noise = find()
        self._count(differences, noise)

    def _count(self, differences: tuple[Difference, ...], noise: tuple[Difference, ...]) -> None:
        recorder, key = self._shadows.recorder, self._rule.key
        recorder.count("compared", *key)
        for difference in noise:
            recorder.count("noise", *key, difference.field)
        if differences:
            recorder.count("differing", *key)
        for difference in differences:
            recorder.count("differences", *key, difference.field)
            shown = self._shadows.show(self._rule, difference)
            endpoint = self._plan.endpoint.template.text
            recorder.sample("differences", *key, {"endpoint": endpoint, **shown})
