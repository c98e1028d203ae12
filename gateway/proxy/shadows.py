"""Shadows: repeat requests in the background, and compare responses if CPU time is available."""

import asyncio
import logging
import os
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextvars import Context
from functools import partial
from math import inf
from time import perf_counter

import msgspec

from gateway.base.headers import HeaderFields
from gateway.base.overrides import VersionKey
from gateway.base.span import Span
from gateway.http.client.message import bodiless
from gateway.http.upstream.upstream import Upstream, UpstreamRequest, UpstreamResponse
from gateway.proxy.body_capture import CaptureBudget, CapturedBody, CapturingResponse
from gateway.proxy.exchange import Exchange
from gateway.proxy.links import public_link
from gateway.proxy.record import Recorder
from gateway.proxy.replay import (
    CapturedResponse,
    ShedError,
    ValidateRequest,
    for_client,
    refuse,
    replay,
    trial,
    unconverted,
)
from gateway.rollout.differences import (
    Difference,
    RefusedField,
    compare,
    plain,
    redacted,
    truncated,
    without_noise,
)
from gateway.rollout.shadow import SAFE, VersionShadow
from gateway.routing.plan import Plan, Refusal

# The seconds between two measurements of the load.
_INTERVAL = 0.1
# The growth per second of the share of planned background work while CPU time is available.
_GROWTH = 0.5
# The event loop is too busy if a task begins later than this number of seconds after its creation.
_LAG = 0.1
# While this number of comparisons is waiting, no more are planned. They would wait too long.
_MOST_WAITING = 16


class Load:
    """Measures whether this process has CPU time available.

    Time counts as used while the thread computes, and also while it is ready to compute but waits
    for a processor, because other processes may occupy all processors.

    Args:
        most: The share of used time above which no background work begins. With 1, background work
            begins under any load.

    Attributes:
        longest_lag: The process is too busy if a task begins more than this number of
            seconds after its creation.
    """

    def __init__(self, used: Callable[[], float], most: float) -> None:
        self._measure = used
        self._most = most
        self.longest_lag = _LAG if most < 1 else inf
        self._at = time.monotonic()
        self._due = self._at + _INTERVAL
        self._used = used()
        self._high = False
        self._crowded = False
        self._share = 1.0

    @property
    def high(self) -> bool:
        if time.monotonic() >= self._due:
            self._look()
        return self._high

    def set_waiting(self, waiting: int) -> None:
        """Update the number of waiting comparisons. Must be called when it changes."""
        self._crowded = self._most < 1 and waiting >= _MOST_WAITING

    def scaled_draw(self, draw: float) -> float:
        """Scale the draw of a request so that only a share of the draws can select a shadow.

        The share is the share of background work for which CPU time is available. Draws below the
        share are scaled to evenly distributed numbers below 1; for all other draws, the result is
        1. While the process is too busy, or many comparisons are waiting, the result is always 1.
        After a measurement without available time, the share is halved, and then grows slowly (as
        in RFC 5681, section 3.1). A process close to its limit therefore does not alternate between
        all background work and none.
        """
        if time.monotonic() >= self._due:
            self._look()
        share = self._share
        return 1.0 if draw >= share or self._high or self._crowded else draw / share

    def _look(self) -> None:
        now, used = time.monotonic(), self._measure()
        passed = now - self._at
        self._high = self._most < 1 and used - self._used > self._most * passed
        self._at, self._used, self._due = now, used, now + _INTERVAL
        grown = min(1.0, self._share + _GROWTH * passed)
        self._share = self._share / 2 if self._high else grown


def time_used() -> Callable[[], float]:
    """Return a function that measures the time used by this thread, in seconds."""
    try:
        # Linux counts the nanoseconds for which a thread runs, and for which it waits for a
        # processor (scheduler/sched-stats.rst). The file stays open until the process ends.
        held = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return time.thread_time

    def used() -> float:
        on, waiting, *_ = os.pread(held, 128, 0).split()
        return (int(on) + int(waiting)) / 1e9

    return used


_log = logging.getLogger(__name__)

# The limits for comparisons in this process: the number of running and of waiting comparisons, and
# the seconds for which one may wait and run.
_AT_ONCE = 16
_LINE = 128
_PATIENCE = 2.0
_LONGEST = 60.0
# The memory budget for all captured bodies together, in bytes.
_MEMORY = 16 * 1024 * 1024
# The seconds after which comparisons that the load prevented are counted together.
_TOGETHER = 0.1
# Bodies larger than this number of bytes are compared in a thread.
_INLINE = 16 * 1024
# Statuses of responses that are not compared, because they depend on the client's cache or ranges.
_PARTIAL = (206, 304)


class Shadows:
    """Captures requests and their responses, and runs the comparisons."""

    def __init__(
        self,
        upstream: Upstream,
        recorder: Recorder,
        validate: ValidateRequest,
        load: Load,
        trace: Callable[[Sequence[Span]], None],
    ) -> None:
        self.upstream = upstream
        self.recorder = recorder
        self.validate = validate
        self.budget = CaptureBudget(_MEMORY)
        self._key = secrets.token_bytes(16)
        self.load = load
        self.trace = trace
        self._waiting: deque[_Case] = deque()
        self._running: set[asyncio.Task[None]] = set()
        # Validations that wait for the document process, whose queue bounds them.
        self._validating: set[asyncio.Task[None]] = set()
        self._next: asyncio.Handle | None = None
        self._given_way: dict[VersionKey, int] = {}

    async def send(
        self, exchange: Exchange, plan: Plan, request: UpstreamRequest
    ) -> UpstreamResponse:
        """Send a client's request and capture it for a later comparison; raises FaultError."""
        assert plan.route.shadow is not None
        if request.upgrade:
            return await self.upstream.send(plan.route.service, request)
        case = _Case(self, plan.route.shadow.rule, exchange, plan, request)
        began = perf_counter()
        try:
            response = await self.upstream.send(plan.route.service, case.passing)
            return case.over(response, perf_counter() - began)
        except BaseException:
            case.drop("unanswered")
            raise

    def shed(self, rule: VersionShadow, why: str) -> None:
        self.recorder.count("shed", *rule.key, why)

    def give_way(self, rule: VersionShadow) -> None:
        """Count a comparison that is not planned because of the load.

        Such comparisons are counted together, because this may happen for every request.
        """
        key, waiting = rule.key, self._given_way
        if not waiting:
            asyncio.get_running_loop().call_later(_TOGETHER, self._count_given_way)
        waiting[key] = waiting.get(key, 0) + 1

    def submit(self, case: "_Case") -> None:
        """Queue a comparison, or skip it if the queue is full."""
        if len(self._waiting) < _LINE:
            self._waiting.append(case)
            self.load.set_waiting(len(self._waiting))
            self._go_on()
        else:
            case.shed("queue")

    def close(self) -> None:
        self._count_given_way()
        self._waiting.clear()
        for task in self._running | self._validating:
            task.cancel()

    def show(self, rule: VersionShadow, difference: Difference) -> dict[str, str]:
        """Describe a difference for operators, with redacted values unless the rule shows them."""
        values = difference.old, difference.new
        if difference.field == "status":  # a status is not secret
            shown = [truncated(str(value)) for value in values]
        else:
            shown = [plain(each) if rule.plain else redacted(each, self._key) for each in values]
        return dict(zip(("field", "old", "new"), (difference.field, *shown), strict=True))

    def _count_given_way(self) -> None:
        waiting, self._given_way = self._given_way, {}
        for (api, version), times in waiting.items():
            self.recorder.count("shed", api, version, "load", times=times)

    def _go_on(self) -> None:
        # Start only one comparison in an iteration of the event loop, so that clients do not wait.
        # Many requests may end in one iteration.
        if self._next is None and self._waiting and len(self._running) < _AT_ONCE:
            self._next = asyncio.get_running_loop().call_soon(self._start)

    def _start(self) -> None:
        """Start the next comparison, and skip comparisons that have waited too long."""
        self._next = None
        while self._waiting:
            case = self._waiting.popleft()
            if time.monotonic() - case.ended > _PATIENCE:
                case.shed("queue")
            elif self.load.high:
                case.shed("load")
            else:
                # In a separate context: unfit values of a shadow are not those of a client.
                compare = case.compare(time.monotonic())
                task = asyncio.get_running_loop().create_task(compare, context=Context())
                (self._validating if case.validates else self._running).add(task)
                task.add_done_callback(self._done)
                break
        self.load.set_waiting(len(self._waiting))
        self._go_on()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._validating.discard(task)
        self._go_on()


class _Case:
    """One captured request and the comparison of its responses."""

    def __init__(
        self,
        shadows: Shadows,
        rule: VersionShadow,
        exchange: Exchange,
        plan: Plan,
        request: UpstreamRequest,
    ) -> None:
        self._shadows, self._rule = shadows, rule
        self._operation = exchange.method, plan.endpoint.template.text
        sent = exchange.method
        if isinstance(plan.repeated, Plan):
            sent = plan.repeated.method(sent)
        self._mode = rule.mode(sent, self._operation[1])
        self._exchange, self._plan = exchange, plan
        self._request = self.passing = request
        self._body = CapturedBody(shadows.budget, rule.body)
        self._response = CapturedBody(shadows.budget, rule.body)
        self._status, self._seconds = 0, 0.0
        self._fields: HeaderFields = []
        self.ended = 0.0
        if isinstance(request.body, AsyncIterator):
            self.passing = msgspec.structs.replace(request, body=self._body.of(request.body))
        elif request.body:
            self._body.keep(request.body)

    def over(self, response: UpstreamResponse, seconds: float) -> UpstreamResponse:
        """Return a response that is captured while read; `seconds` is the time to its head."""
        self._status, self._fields, self._seconds = response.status, response.fields, seconds
        copied = None if self._mode == "validate" else self._response
        return CapturingResponse(response, copied, self._over)

    def shed(self, why: str) -> None:
        self.drop(why)
        self._shadows.shed(self._rule, why)

    def drop(self, why: str) -> None:
        self._body.drop(why)
        self._response.drop(why)

    def _over(self, whole: bool) -> None:
        self.ended = time.monotonic()
        lost = self._body.lost or self._response.lost
        if self._mode == "validate":
            # If the service of the client's version refuses a request, a refusal by the other
            # version is not a difference.
            lost = lost or ("refused" if self._status >= 400 else None)
        elif self._status in _PARTIAL:
            lost = "partial"
        elif not whole and not bodiless(self._exchange.method, self._status):
            lost = lost or "unfinished"
        if lost is None:
            self._shadows.submit(self)
        else:
            self.shed(lost)

    @property
    def validates(self) -> bool:
        return self._mode == "validate"

    async def compare(self, made: float) -> None:
        longest = asyncio.timeout(_LONGEST)
        try:
            if time.monotonic() - made > self._shadows.load.longest_lag:
                raise ShedError("load")
            async with longest:
                await self._compare()
        except ShedError as error:
            self.shed(str(error))
        except Exception:  # includes a TimeoutError that is not from `longest`
            if not longest.expired():
                _log.exception("a shadow of %s %s failed", *self._rule.key)
            self.shed("time" if longest.expired() else "failed")
        finally:
            self.drop("done")

    async def _compare(self) -> None:
        rule, exchange, request = self._rule, self._exchange, self._request
        other = self._plan.repeated
        assert other is not None
        body = None if request.body is None else self._body.whole()
        if self.validates:
            if isinstance(other, Refusal):
                refused: Sequence[RefusedField] = (unconverted(other.fault),)
            else:
                refused = await trial(self._shadows.validate, exchange, other, body, rule)
            self._count_refused(refused)
            return
        captured = CapturedResponse(self._status, self._fields, self._response.whole())
        old = await for_client(exchange, self._plan, captured, rule)
        given: list[CapturedResponse] = []
        for response in await asyncio.gather(*self._replays(other, body), return_exceptions=True):
            if isinstance(response, BaseException):
                raise response
            given.append(response)
        if exchange.span is not None:
            self._shadows.trace([each.span for each in given if each.span is not None])
        new, *twice = given

        def find() -> tuple[tuple[Difference, ...], tuple[Difference, ...]]:
            own = partial(public_link, exchange, self._plan)
            links = (
                own,
                partial(public_link, exchange, other if isinstance(other, Plan) else self._plan),
                own,
            )
            was, now, *again = [
                each.compared(rule, exchange.method, link)
                for each, link in zip((old, *given), links, strict=False)
            ]
            noise = compare(was, again[0], rule.ignored) if again else ()
            return without_noise(compare(was, now, rule.ignored), noise), noise

        if max(len(each.body) for each in (old, new, *twice)) > _INLINE:
            differences, noise = await asyncio.to_thread(find)
        else:
            differences, noise = find()
        self._count(differences, noise)
        # Response times are not comparable if the client streamed the body, or if only one of the
        # services wrote data.
        if new.seconds and self.passing is request and self._mode == "send":
            self._shadows.recorder.latency(*rule.key, self._seconds, new.seconds)

    def _replays(
        self, other: Plan | Refusal, body: bytes | None
    ) -> list[Awaitable[CapturedResponse]]:
        """Return the replay to the other version's service, followed by a replay to detect noise.

        The second replay goes to the service of the client's version, only if the rule requires it
        and the method is safe.
        """
        rule, exchange, upstream = self._rule, self._exchange, self._shadows.upstream
        dry_run = rule.dry_run if self._mode == "dry_run" else None
        replays: list[Awaitable[CapturedResponse]] = [
            refuse(other)
            if isinstance(other, Refusal)
            else replay(upstream, exchange, other, body, rule, dry_run)
        ]
        if rule.noise and exchange.method in SAFE:
            replays.append(replay(upstream, exchange, self._plan, body, rule))
        return replays

    def _count(self, differences: tuple[Difference, ...], noise: tuple[Difference, ...]) -> None:
        recorder, key = self._shadows.recorder, self._rule.key
        recorder.count("compared", *key)
        recorder.count("operations_compared", *key, *self._operation)
        for difference in noise:
            recorder.count("noise", *key, difference.field)
        if differences:
            recorder.count("differing", *key)
        recorder.compare(self._exchange, differs=bool(differences))
        for difference in differences:
            recorder.count("differences", *key, difference.field)
            if recorder.takes_samples:
                self._show(self._shadows.show(self._rule, difference))

    def _count_refused(self, refused: Sequence[RefusedField]) -> None:
        recorder, key = self._shadows.recorder, self._rule.key
        recorder.count("validated", *key)
        recorder.count("operations_compared", *key, *self._operation)
        if refused:
            recorder.count("invalid", *key)
        recorder.compare(self._exchange, differs=bool(refused))
        for one in refused:
            field = f"request {one.field}"
            recorder.count("differences", *key, field)
            # The reason may quote a value, except for the detail of a failed conversion.
            shown = one.reason if self._rule.plain or one.field == "conversion" else one.rule
            self._show(
                {"field": field, "old": str(self._status), "new": truncated(f"refused: {shown}")}
            )

    def _show(self, shown: dict[str, str]) -> None:
        exchange, path = self._exchange, truncated(self._exchange.path)
        request = {"request_id": exchange.request_id, "method": exchange.method, "path": path}
        document = {"endpoint": self._operation[1], **shown}
        self._shadows.recorder.sample("differences", *self._rule.key, document, request)
