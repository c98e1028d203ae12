"""Shadows: another version's service is asked in the background, and its answer compared.

A client's answer comes from the version's own service as ever, and is passed on as it arrives; a
copy of it is kept beside, within a bound. When the client has its answer, the same request goes to
the other service through the conversion, and once more to the own service: where two answers of
that differ, the field is noise. What is counted is what is left.

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
from gateway.proxy.shadow.background import Load, ShedError, time_used
from gateway.proxy.shadow.capture import CaptureBudget, CapturedBody, CapturingResponse
from gateway.proxy.shadow.replay import CapturedAnswer, bodiless, replay
from gateway.proxy.upstream.pool import Pool
from gateway.proxy.upstream.upstream import UpstreamRequest, UpstreamResponse

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
# What tells a request in the background from one that a client waits for.
_MARK = (b"X-Shadow", b"1")


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
        pool: sends requests.
        recorder: counts what is found.
    """

    def __init__(self, pool: Pool, recorder: ShadowCounter) -> None:
        self.pool = pool
        self.recorder = recorder
        self.budget = CaptureBudget(_MEMORY)
        self._key = secrets.token_bytes(16)
        self._load = Load(time_used())
        self._waiting: deque[_Case] = deque()
        self._running: set[asyncio.Task[None]] = set()

    async def send(self, todo: Plan, asked: UpstreamRequest) -> UpstreamResponse:
        """Send a client's request to the own service and see to it that the answer is compared.

        Raises:
            Failed: there is no response.
        """
        assert todo.route.shadow is not None
        rule = todo.route.shadow.rule
        if asked.upgrade:
            return await self.pool.send(todo.route.service, asked)
        if self._load.high:
            self.shed(rule, "load")
            return await self.pool.send(todo.route.service, asked)
        case = _Case(self, rule, todo, asked)
        try:
            return case.over(await self.pool.send(todo.route.service, case.passing))
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

    def __init__(self, shadows: Shadows, rule: Shadow, todo: Plan, asked: UpstreamRequest) -> None:
        self._shadows = shadows
        self._rule = rule
        self._todo = todo
        self._asked = self.passing = asked
        self._body = CapturedBody(shadows.budget, rule.body)
        self._answer = CapturedBody(shadows.budget, rule.body)
        self._status = 0
        self._fields: HeaderFields = []
        self.ended = 0.0
        if isinstance(asked.body, AsyncIterator):
            self.passing = msgspec.structs.replace(asked, body=self._body.of(asked.body))

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
        elif not whole and not bodiless(self._asked.method, self._status):
            lost = lost or "unfinished"
        if lost is None:
            self._shadows.submit(self)
        else:
            self.shed(lost)

    async def compare(self, made: float) -> None:
        """Ask again, compare, and count."""
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
        rule, method = self._rule, self._asked.method
        assert self._todo.shadow is not None
        again = self._again()
        plans = [self._todo.shadow]
        if rule.noise and method in SAFE:
            plans.append(self._todo)
        given = [CapturedAnswer(self._status, self._fields, self._answer.whole())]
        asking = (replay(self._shadows.pool, todo, again, rule) for todo in plans)
        for answer in await asyncio.gather(*asking, return_exceptions=True):
            if isinstance(answer, BaseException):
                raise answer
            given.append(answer)

        def find() -> tuple[tuple[Difference, ...], tuple[Difference, ...]]:
            old, new, *twice = [
                each.answer(rule, self._todo.content_type, method) for each in given
            ]
            noise = compare(old, twice[0], rule.ignored) if twice else ()
            return without_noise(compare(old, new, rule.ignored), noise), noise

        if max(len(each.body) for each in given) > _INLINE:
            differences, noise = await asyncio.to_thread(find)
        else:
            differences, noise = find()
        self._count(differences, noise)

    def _again(self) -> UpstreamRequest:
        fields = [line for line in self._asked.fields if line[0].lower() != b"expect"]
        return msgspec.structs.replace(
            self._asked,
            fields=[*fields, _MARK],
            body=self._body.whole() if self.passing is not self._asked else self._asked.body,
            length=None,
            expects=False,
            informational=None,
        )

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
            endpoint = self._todo.endpoint.template.text
            recorder.sample("differences", *key, {"endpoint": endpoint, **shown})
