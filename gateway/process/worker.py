"""A worker: its end of the channel, its watchdog of the supervisor, and its main function.

It does not import the state and the admin port: this saves a twentieth of the start, and 1.2 MB.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from gateway.access.key_sets import KeySet, adopt_keys
from gateway.access.token_buckets import TokenBuckets
from gateway.base.files import system_reason
from gateway.base.overrides import Overrides
from gateway.base.span import Span
from gateway.observe import log
from gateway.observe.failing_targets import FailingTarget
from gateway.process.channel import (
    Alive,
    Applied,
    ApplyOverrides,
    Channel,
    Counted,
    DocumentCompiled,
    FailingTargets,
    KeysFetched,
    OrphanedListeners,
    Ready,
    SetClock,
    Traced,
)
from gateway.process.listening import BUCKETS, CHANNEL, LISTENERS, UNHEARD, Listening
from gateway.process.reloader import Loaded, Reloader
from gateway.process.running import Tasks, on_hangup, run_with, stop_on_signals
from gateway.process.serving import Serving
from gateway.process.settings import Settings
from gateway.usage.delta import Delta
from gateway.verify.live.document_jobs import (
    NOT_DONE,
    JobQueue,
    JobResult,
    MessageCheck,
    OperationList,
    resolve,
)

# The supervisor hangs if it leaves _UNANSWERED heartbeats unanswered. After it has answered
# _IN_TIME heartbeats in time, it has also stored the counts that were delayed.
_UNANSWERED = 3
_IN_TIME = 5


class SupervisorWatchdog:
    """Detects a hanging supervisor by counting unanswered heartbeats.

    Workers continue to serve while their supervisor is suspended or hangs. If the supervisor is
    then killed, the counts of this time are lost, and nothing that it stored shows the loss.
    Therefore the workers create a file, which the next start of the gateway finds. The watchdog
    counts heartbeats, not seconds, since no worker serves while all processes are frozen, as in a
    paused container.

    Args:
        mark: the file to create while the supervisor hangs; None if the state is only in memory.
    """

    def __init__(self, mark: Path | None) -> None:
        self._mark = mark
        self._unanswered = self._in_time = 0
        self._silent = self._ended = False

    def reported(self) -> None:
        self._in_time = 0 if self._unanswered else self._in_time + 1
        self._unanswered += 1
        if self._unanswered < _UNANSWERED or self._silent or self._ended:
            return
        self._silent = True
        log.event("supervisor_silent", "error", reports=self._unanswered)
        if self._mark is not None:
            try:
                self._mark.touch(0o600)
            except OSError as error:
                reason = f"{self._mark}: {system_reason(error)}"
                log.event("mark_not_kept", "warning", reason=reason)

    def answered(self) -> None:
        self._unanswered = 0
        if not self._silent or self._in_time < _IN_TIME:
            return
        self._silent = False
        log.event("supervisor_heard")
        if self._mark is not None:
            with suppress(OSError):
                self._mark.unlink()

    def end(self) -> None:
        """Stop creating the file: the supervisor has ended, and another one may have started."""
        self._ended = True


# Seconds between two heartbeats: as many as between two checks of the supervisor, and between two
# deltas.
_ALIVE_SECONDS = 1.0


class _SupervisorLostError(Exception):
    """The supervisor ended before this worker received its configuration."""


class Worker:
    """The worker's end of the channel; `listeners` has the sockets of all workers, by address."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.listeners = [Listening.read(each) for each in environment[LISTENERS].split(" ")]
        self._end = socket.socket(fileno=int(environment[CHANNEL]))
        mark = environment.get(UNHEARD)
        self._watchdog = SupervisorWatchdog(None if mark is None else Path(mark))
        self.documents = JobQueue()
        self._result: asyncio.Future[JobResult] | None = None  # the result of the last job

    async def join(self) -> tuple[Loaded, Overrides, float]:
        """Open the channel; return the initial configuration, overrides and clock difference."""
        self._channel = await Channel.over(self._end)
        first = [await self._channel.receive() for _ in range(3)]
        match first:
            case [Loaded() as rules, ApplyOverrides() as overrides, SetClock() as clock]:
                return rules, overrides.overrides, clock.seconds
            case _:
                raise _SupervisorLostError

    def report_ready(self) -> None:
        self._channel.send(Ready())

    async def report_alive(self) -> None:
        while True:
            await asyncio.sleep(_ALIVE_SECONDS)
            self._channel.send(Alive())
            self._watchdog.reported()

    def deliver(self, delta: Delta) -> None:
        self._channel.send(Counted(delta))

    def trace(self, spans: Sequence[Span]) -> bool:
        return self._channel.send(Traced([*spans]))

    def report_targets(self, failing: list[FailingTarget]) -> None:
        self._channel.send(FailingTargets(failing))

    async def pass_on_jobs(self) -> None:
        """Send the waiting jobs to the document process of the gateway, one at a time."""
        while True:
            if self._result is not None:  # the job of a cancelled call
                await asyncio.wait([self._result])
            job, future = await self.documents.next()
            assert isinstance(job, MessageCheck | OperationList)
            self._result = asyncio.get_running_loop().create_future()
            try:
                self._channel.send(job)
                await asyncio.wait([self._result])
                resolve(future, self._result.result())
            finally:
                resolve(future, NOT_DONE)  # this call was cancelled

    def share_keys(self, keys: KeySet, document: bytes, seconds: float) -> None:
        self._channel.send(KeysFetched(keys.url, keys.discover, document, seconds))

    async def listen(
        self,
        load: Callable[[Loaded], None],
        apply: Callable[[Overrides], None],
        set_ahead: Callable[[float], None],
        stand_in: Callable[[list[int]], Awaitable[None]],
        adopt: Callable[[str, bytes], None],
    ) -> None:
        """Dispatch the supervisor's messages; return when the supervisor has ended.

        Args:
            set_ahead: called with the seconds by which the store's clock is ahead of this
                machine's.
            stand_in: called with the descriptors of the listening sockets whose worker is not
                running.
        """
        while (message := await self._channel.receive()) is not None:
            match message:
                case Loaded():
                    load(message)
                case DocumentCompiled(location=location, document=document):
                    adopt(location, document)
                case JobResult():
                    assert self._result is not None
                    resolve(self._result, message)
                case ApplyOverrides(number=number, overrides=overrides):
                    apply(overrides)
                    self._channel.send(Applied(number))
                case SetClock(seconds=seconds):
                    set_ahead(seconds)
                case KeysFetched(url, discover, document, seconds):
                    adopt_keys(url, discover, document, seconds)
                case OrphanedListeners(listeners=listeners):
                    await stand_in(listeners)
                case Alive():
                    self._watchdog.answered()
                case _:
                    raise AssertionError("a message of workers came down")
        self._watchdog.end()

    async def leave(self) -> None:
        await self._channel.close()


def run() -> int:
    return run_with(work)


async def work(settings: Settings) -> None:
    stop = stop_on_signals()
    on_hangup(lambda: None)  # the supervisor reloads the configuration
    worker = Worker(os.environ)
    try:
        rules, in_force, ahead = await worker.join()
    except _SupervisorLostError:
        return
    tasks = Tasks(worker.deliver)
    log.count_dropped(worker.deliver)
    reloader = Reloader(settings.config, os.environ, None, rules)
    load, report = settings.shadow_load, worker.report_targets
    buckets = TokenBuckets(int(os.environ[BUCKETS]))
    serving = Serving(
        reloader,
        in_force,
        worker.deliver,
        worker.trace,
        tasks,
        load,
        report,
        buckets,
        worker.documents,
    )
    serving.share_keys = worker.share_keys
    serving.set_ahead(ahead)

    async def listen() -> None:
        set_ahead, stand_in = serving.set_ahead, serving.stand_in
        await worker.listen(reloader.reload, serving.apply, set_ahead, stand_in, adopt)
        stop.set()

    def adopt(location: str, document: bytes) -> None:
        # Not awaited, since a reload may be in progress.
        adopting = asyncio.create_task(reloader.adopt(location, document))
        tasks_of_documents.add(adopting)
        adopting.add_done_callback(tasks_of_documents.discard)

    tasks_of_documents = set[asyncio.Task[str]]()

    tasks.start("channel", listen)
    tasks.start("alive", worker.report_alive)
    tasks.start("documents", worker.pass_on_jobs)
    await serving.serve(worker.listeners, stop, settings.grace, worker.report_ready)
    tasks.stop()
    await worker.leave()
