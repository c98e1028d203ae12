"""Shared by all serving processes: event loop, signals, exit status, and long-running tasks."""

import asyncio
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Coroutine

try:
    # uvloop: libuv's event loop, which transfers bytes at the lowest cost.
    from uvloop import run
except ModuleNotFoundError:  # an interpreter without a wheel of it, such as PyPy
    from asyncio import run  # type: ignore[assignment]  # fewer parameters, none of them used

from gateway.base.descriptors import open_standard_streams, raise_limit
from gateway.base.mistakes import ConfigError
from gateway.observe import log
from gateway.process.listening import ListenError
from gateway.process.settings import SettingError, Settings
from gateway.store.state import StateError
from gateway.usage.delta import CounterDelta, Deliver, Delta

# A task that fails soon after its start is restarted after a wait that doubles each time. All
# values are in seconds.
_SOON = 5.0
_FIRST_WAIT = 0.1
_LONGEST_WAIT = 10.0


class LongTask:
    """A task that is restarted when it fails; `done` is set when it was stopped or has finished."""

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
        task.get_loop().call_later(wait, self._start)  # first: formatting may fail
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
    def __init__(self, deliver: Deliver) -> None:
        self._deliver = deliver
        self._tasks: set[LongTask] = set()

    def start(self, name: str, run: Callable[[], Coroutine[None, None, None]]) -> LongTask:
        """Start a task; `run` is called again when it raises or is cancelled from elsewhere."""
        task = LongTask(name, run, self._count)
        self._tasks = {each for each in self._tasks if not each.done.is_set()} | {task}
        return task

    def stop(self) -> None:
        for task in self._tasks:
            task.stop()
        self._tasks = set()

    def _count(self, name: str) -> None:
        failure = CounterDelta("task_failures", (name,), 1)
        self._deliver(Delta(time.time(), counts=[failure]))


# Seconds after which Python makes a running thread release the GIL (sys.setswitchinterval). With
# the default of 5 ms, each iteration of the event loop would wait that long while a thread converts
# bodies or loads a configuration; a request takes several iterations.
_THREAD_TURN = 0.0001


def run_with(serve: Callable[[Settings], Coroutine[None, None, None]]) -> int:
    """Serve until stopped; return the exit status.

    The status is 0 after a stop, 1 if the gateway cannot start, and 2 for an invalid setting.
    """
    sys.setswitchinterval(_THREAD_TURN)
    open_standard_streams()
    raise_limit()
    try:
        log.configure()
        run(serve(Settings.from_environment(os.environ)))
    except (ConfigError, StateError, ListenError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except SettingError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    finally:
        log.finish()
    return 0


def on_hangup(act: Callable[[], None]) -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, act)


def stop_on_signals(announce: Callable[[], None] = lambda: None) -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set; the first signal also calls `announce`."""
    stop = asyncio.Event()

    def stop_once() -> None:
        if not stop.is_set():
            announce()
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop_once)
    return stop
