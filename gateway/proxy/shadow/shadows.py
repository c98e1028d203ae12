"""Shadows: a client's request is sent to another version's service too, and the answers compared.

A client's answer comes from the version's own service as ever, and is passed on as it arrives; a
copy of it is kept, within a bound. When the client has its answer, the same request goes to the
other service by the plan of the shadow, and once more to the own service: where two answers of that
differ, the field is noise. What is counted is what is left.

All of it gives way: when the process or a service is busy, when too much is waiting or kept, the
comparison is not made, and that is counted. Nothing here delays, changes or fails an answer.
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

# At most so many comparisons are under way in this process, so many more wait, and for so long.
_AT_ONCE = 16
_LINE = 128
_PATIENCE = 2.0
# All bodies that are kept together, in bytes.
_MEMORY = 16 * 1024 * 1024
# A task that is begun so much later than it was made shows that the event loop lags, in seconds.
_LAG = 0.1
# Larger bodies are compared beside the event loop.
_INLINE = 16 * 1024
# What depends on what the client has already cannot be compared.
_PARTIAL = (206, 304)


class ShadowCounter(Protocol):
    """Counts; see `gateway.telemetry.recorder`."""

    def count(self, kind: str, *labels: str, times: int = 1) -> None:
        """Count what has a name."""
        ...

    def sample(self, kind: str, api: str, version: str, document: object) -> None:
        """Hand on a case to look at."""
        ...


class Shadows:
    """Watches requests on their way and makes the comparisons.

    Args:
        upstream: sends requests.
        recorder: counts what is found.
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
        """Whether no comparison can begin now; looked at before one is planned."""
        return self._load.high

    async def send(
        self, exchange: Exchange, plan: Plan, request: UpstreamRequest
    ) -> UpstreamResponse:
        """Send a client's request to its version's own service; compare the answer afterwards.

        Raises:
            FaultError: there is no response.
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
        """Count a comparison that is not made."""
        self.recorder.count("shed", *rule.key, why)

    def submit(self, case: "_Case") -> None:
        """Compare soon, or never."""
        if len(self._running) < _AT_ONCE:
            self._start(case)
        elif len(self._waiting) < _LINE:
            self._waiting.append(case)
        else:
            case.shed("queue")

    def close(self) -> None:
        """Compare nothing any more."""
        self._waiting.clear()
        for task in self._running:
            task.cancel()

    def show(self, rule: Shadow, difference: Difference) -> dict[str, str]:
        """Return what an operator may see of a difference."""
        old, new = difference.old, difference.new
        if rule.plain or difference.field == "status":  # which is no secret
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
    """One request whose answers are compared."""

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
        """Return the response as the client gets it, which is kept while it passes."""
        self._status, self._fields = response.status, response.fields
        return CapturingResponse(response, self._answer, self._over)

    def shed(self, why: str) -> None:
        """Make no comparison."""
        self.drop(why)
        self._shadows.shed(self._rule, why)

    def drop(self, why: str) -> None:
        """Keep nothing."""
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
        """Send the request again, compare, and count."""
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
