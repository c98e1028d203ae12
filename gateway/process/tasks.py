"""Tasks: the long-lived tasks of a process, each started again when it fails."""

import asyncio
import time
import traceback
from collections.abc import Callable, Coroutine

from gateway.observe import log
from gateway.usage.delta import CounterDelta, Deliver, Delta

# A task that fails soon after its start waits before the next one, each time longer, in seconds.
_SOON = 5.0
_FIRST_WAIT = 0.1
_LONGEST_WAIT = 10.0


class LongTask:
    """A task that is meant to run until it is stopped, or until its work is done.

    Attributes:
        name: of the task, and of every run of it.
        done: set when it was stopped or its work is done.
    """

    def __init__(
        self,
        name: str,
        run: Callable[[], Coroutine[None, None, None]],
        failed: Callable[[str], None],
    ) -> None:
        self.name = name
        self.done = asyncio.Event()
        self._run = run
        self._failed = failed
        self._wait = _FIRST_WAIT
        self._start()

    def stop(self) -> None:
        """Cancel the task, and do not start it again."""
        self.done.set()
        self._task.cancel()

    def _start(self) -> None:
        if not self.done.is_set():
            self._began = time.monotonic()
            self._task = asyncio.create_task(self._run(), name=self.name)
            self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is None:
            self.done.set()
        if self.done.is_set():
            return
        if time.monotonic() - self._began > _SOON:
            self._wait = _FIRST_WAIT
        wait, self._wait = self._wait, min(self._wait * 2, _LONGEST_WAIT)
        task.get_loop().call_later(wait, self._start)  # first: an error may have no text
        log.event(
            "task_failed",
            "error",
            task=self.name,
            reason=f"{type(error).__name__}: {error}",
            restart_in=wait,
            traceback="".join(traceback.format_exception(error)),
        )
        self._failed(self.name)


class Tasks:
    """Starts the long-lived tasks of a process, and counts their failures."""

    def __init__(self, deliver: Deliver) -> None:
        self._deliver = deliver
        self._tasks: set[LongTask] = set()

    def start(self, name: str, run: Callable[[], Coroutine[None, None, None]]) -> LongTask:
        """Start a task; `run` is called again whenever it raises or is cancelled by another."""
        task = LongTask(name, run, self._count)
        self._tasks = {each for each in self._tasks if not each.done.is_set()} | {task}
        return task

    def stop(self) -> None:
        """Stop all tasks."""
        for task in self._tasks:
            task.stop()
        self._tasks = set()

    def _count(self, name: str) -> None:
        failure = CounterDelta("task_failures", (name,), 1)
        self._deliver(Delta(time.time(), counts=[failure]))
