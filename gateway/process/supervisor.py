"""Supervisor: starts several workers that share a port; it processes no requests itself.

docs/architecture.md (Processes) describes deaths and hangs. Workers get the configuration as text,
so a replacement gets the last valid one, whatever the file contains by then.
"""

import asyncio
import socket
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from msgspec.structs import replace

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
    ChannelMessage,
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
from gateway.process.reloader import Loaded
from gateway.process.running import LongTask, Tasks
from gateway.usage.delta import Deliver
from gateway.verify.live.document_jobs import JobResult, MessageCheck, OperationList
from gateway.verify.live.document_process import DocumentProcess

# A worker that dies within _YOUNG seconds is replaced after a wait that doubles each time. All
# values are in seconds.
_YOUNG = 5.0
_FIRST_WAIT = 0.1
_LONGEST_WAIT = 10.0
# A worker is killed after _LOOKS checks without a heartbeat. The checks are _LOOK_SECONDS apart, or
# _START_LOOK_SECONDS while the worker loads the configuration. A single long timeout could pass
# while this process itself is suspended.
_LOOKS = 5
_LOOK_SECONDS = 1.0
_START_LOOK_SECONDS = 60.0
# After this many checks, other workers also accept the connections of its socket. This is harmless
# if the worker is only slow.
_STAND_IN_LOOKS = 2
# The seconds after the grace period in which a worker may still exit before it is killed.
_SPARE = 5.0
# The maximum seconds for a worker to apply overrides; it takes milliseconds.
_APPLY_SECONDS = 5.0


@dataclass(slots=True)
class _RunningWorker:
    """A worker; `applied` is the sequence number of the overrides that are in force in it."""

    process: asyncio.subprocess.Process
    channel: Channel
    applied: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    failing: list[FailingTarget] = field(default_factory=list)

    async def set_applied(self, number: int) -> None:
        async with self.changed:
            self.applied = number
            self.changed.notify_all()

    async def wait_applied(self, number: int) -> None:
        async with self.changed:
            await self.changed.wait_for(lambda: self.applied >= number)


class Supervisor:
    """Starts workers, replaces those that die, and stops them together.

    Args:
        unheard: the file that workers create while this process hangs and cannot store their
            counts; None if the state is only in memory.
    """

    def __init__(
        self,
        listeners: list[list[Listening]],
        environment: Mapping[str, str],
        tasks: Tasks,
        deliver: Deliver,
        export: Callable[[Sequence[Span]], object],
        documents: DocumentProcess,
        rules: Loaded,
        overrides: Overrides,
        unheard: Path | None,
        buckets: int,
    ) -> None:
        self._listeners = listeners
        self._buckets = buckets
        self._environment = {**environment, **({UNHEARD: str(unheard)} if unheard else {})}
        self._tasks = tasks
        self._deliver = deliver
        self._export = export
        self._documents = documents
        self._rules = rules
        self._overrides = ApplyOverrides(0, overrides)
        self._clock = SetClock(0.0)
        self._keys: dict[tuple[str, bool], KeysFetched] = {}  # for workers that start
        self._running: dict[int, _RunningWorker] = {}
        self._ready: set[int] = set()
        self._orphaned: set[int] = set()
        self._slots: list[LongTask] = []
        self._stopping = asyncio.Event()

    @property
    def ready(self) -> int:
        return len(self._ready)

    @property
    def failing_targets(self) -> list[FailingTarget]:
        """The failing targets; a target occurs once for each worker that sees it fail."""
        return [target for worker in self._running.values() for target in worker.failing]

    async def start(self) -> None:
        """Start all workers; return when each one serves, has died or could not be started."""
        first = [asyncio.Event() for _ in self._listeners]
        for index, event in enumerate(first):
            self._slots.append(self._tasks.start("worker", partial(self._fill, index, event)))
        for event in first:
            await event.wait()

    def reload(self, rules: Loaded) -> None:
        self._rules = rules
        _send(self._running.values(), self._rules)

    def share_document(self, rules: Loaded, location: str) -> None:
        """Send a compiled document, which `rules` already contain, to all workers."""
        self._rules = rules
        message = DocumentCompiled(location, rules.documents[location])
        _send(self._running.values(), message)

    def set_ahead(self, seconds: float) -> None:
        """Set the seconds by which the store's clock is ahead; dates refer to that clock."""
        self._clock = SetClock(seconds)
        _send(self._running.values(), self._clock)

    async def apply(self, overrides: Overrides) -> None:
        """Return when the overrides are in force in every worker.

        Raises TimeoutError if a worker has not confirmed them; it applies them as soon as it can.
        """
        message = self._overrides = ApplyOverrides(self._overrides.number + 1, overrides)
        workers = tuple(self._running.values())
        _send(workers, message)
        async with asyncio.timeout(_APPLY_SECONDS):
            for worker in workers:
                await worker.wait_applied(message.number)

    async def stop(self, grace: float) -> None:
        """Stop accepting connections; return when all workers have exited, within the grace."""
        self._stopping.set()
        for each in self._listeners:
            for listening in each:
                listening.own.close()
        for worker in self._running.values():
            with suppress(ProcessLookupError):
                worker.process.terminate()
        ends = [slot.done.wait() for slot in self._slots]
        try:
            async with asyncio.timeout(grace + _SPARE):
                await asyncio.gather(*ends)
        except TimeoutError:
            for worker in self._running.values():
                with suppress(ProcessLookupError):
                    worker.process.kill()
            await asyncio.gather(*(slot.done.wait() for slot in self._slots))

    async def _fill(self, index: int, first: asyncio.Event) -> None:
        wait = _FIRST_WAIT
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                status = await self._run(index, first)
            except OSError as error:  # no free descriptor, memory or process
                reason = system_reason(error)
                log.event("worker_not_started", "error", worker=index, reason=reason)
            else:
                if self._stopping.is_set():
                    return
                log.event("worker_died", "error", worker=index, exit_status=status)
            finally:
                first.set()
            young = time.monotonic() - began <= _YOUNG
            wait = min(wait * 2, _LONGEST_WAIT) if young else _FIRST_WAIT
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._stopping.wait()

    async def _run(self, index: int, first: asyncio.Event) -> int:
        listeners = self._listeners[index]
        numbers = (each.own.fileno() for row in self._listeners for each in row)
        ours, theirs = socket.socketpair()
        with theirs:
            channel = await Channel.over(ours)
            try:
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    "gateway",
                    env={
                        **self._environment,
                        LISTENERS: " ".join(each.written for each in listeners),
                        CHANNEL: str(theirs.fileno()),
                        BUCKETS: str(self._buckets),
                    },
                    pass_fds=(*numbers, theirs.fileno(), self._buckets),
                )
            except BaseException:
                await channel.close()
                raise
        worker = self._running[index] = _RunningWorker(process, channel)
        try:
            _send([worker], self._rules, self._overrides, self._clock, *self._keys.values())
            await self._listen(worker, index, first)
            return await process.wait()
        finally:
            with suppress(ProcessLookupError):  # it has ended, unless this task failed
                process.kill()
            await process.wait()
            self._ready.discard(index)
            del self._running[index]
            self._orphaned.add(index)
            self._share_orphans()
            await channel.close()

    async def _listen(self, worker: _RunningWorker, index: int, first: asyncio.Event) -> None:
        # The messages that a killed worker sent are still in the socket, and are received here.
        while (message := await self._next(worker, index)) is not None:
            match message:
                case Alive():
                    worker.channel.send(message)
                case Ready():
                    self._ready.add(index)
                    self._orphaned.discard(index)
                    self._share_orphans()
                    if first.is_set():
                        log.event("worker_replaced", worker=index)
                    first.set()
                case Counted(delta=delta):
                    self._deliver(delta)
                case Traced(spans=spans):
                    self._export(spans)
                case FailingTargets(targets=targets):
                    worker.failing = targets
                case Applied(number=number):
                    await worker.set_applied(number)
                case MessageCheck() | OperationList():
                    result = self._documents.ask(message)
                    result.add_done_callback(partial(_answer, worker))
                case KeysFetched(url=url, discover=discover):
                    # A worker that starts uses these keys, and fetches them again at once.
                    self._keys[url, discover] = replace(message, seconds=0.0)
                    _send((each for each in self._running.values() if each is not worker), message)
                case _:
                    raise AssertionError("a message of the supervisor came up")
        # No change has to wait for a worker that has ended; its replacement gets the current
        # overrides.
        await worker.set_applied(sys.maxsize)

    async def _next(self, worker: _RunningWorker, index: int) -> ChannelMessage | None:
        """Return the next message, or None if the worker has ended; kill a worker that hangs.

        The kernel would continue to assign connections to a worker that hangs.
        """
        serves = index in self._ready
        seconds = _LOOK_SECONDS if serves else _START_LOOK_SECONDS
        for look in range(_LOOKS):
            if serves and look == _STAND_IN_LOOKS:
                self._orphaned.add(index)
                self._share_orphans()
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    message = await worker.channel.receive()
                if serves and index in self._orphaned:
                    self._orphaned.discard(index)
                    self._share_orphans()
                return message
        log.event("worker_hangs", "error", worker=index, silent=_LOOKS * seconds)
        with suppress(ProcessLookupError):
            worker.process.kill()
        return await worker.channel.receive()

    def _share_orphans(self) -> None:
        if not self._stopping.is_set():
            numbers = [
                each.own.fileno() for index in self._orphaned for each in self._listeners[index]
            ]
            _send((self._running[index] for index in self._ready), OrphanedListeners(numbers))


def _answer(worker: _RunningWorker, result: "asyncio.Future[JobResult]") -> None:
    worker.channel.send(result.result())


def _send(workers: Iterable[_RunningWorker], *messages: ChannelMessage) -> None:
    for worker in workers:
        for message in messages:
            worker.channel.send(message)
