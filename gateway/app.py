"""The composition root: puts the parts together, runs them, and takes them down in order.

One process serves by itself. Several are workers under a supervisor, which holds the port, the
admin port, the state and the watch over the rules; they answer requests and do nothing else.
"""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path

# uvloop: libuv's event loop, on which moving bytes costs least.
import uvloop
from aiohttp import web

from gateway.admin.admin_app import admin_app
from gateway.admin.operator import Operator
from gateway.config.load import load_file
from gateway.config.text.mistakes import ConfigError
from gateway.core.overrides import Overrides
from gateway.process.reloader import Reloader
from gateway.process.serving import Serving
from gateway.process.supervisor import Supervisor, Worker, is_worker, listening_sockets
from gateway.settings import SettingError, Settings, from_environment
from gateway.state.active_overrides import ActiveOverrides
from gateway.state.cutover_controller import CutoverController
from gateway.state.state_changes import StateError
from gateway.state.state_writer import StateWriter
from gateway.telemetry import log


class ListenError(Exception):
    """An address that cannot be listened on; the text says which and why."""


def run() -> int:
    """Serve until told to stop; return the exit status: 0 done, 1 refused, 2 wrongly set."""
    try:
        log.configure()
        uvloop.run(_role(from_environment(os.environ)))
    except (ConfigError, StateError, ListenError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except SettingError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def _role(settings: Settings) -> Coroutine[None, None, None]:
    if is_worker(os.environ):
        return work(settings)
    rules = load_file(settings.config, os.environ)
    count = settings.workers or rules.workers or len(os.sched_getaffinity(0))
    return serve(settings) if count == 1 else supervise(settings, count)


async def serve(settings: Settings) -> None:
    """Serve in this process until told to stop, then finish what is in flight within the grace.

    Raises:
        ConfigError: the rules cannot be used.
        StateError: the state cannot.
        ListenError: a port is taken, or an address is not ours.
    """
    stop = _stop_on_signals()
    reloader = _reloader(settings)
    async with _keeping(reloader.latest.state) as writer:
        overrides = ActiveOverrides(writer)
        serving = Serving(reloader, overrides.in_force, writer.totals.absorb)

        async def apply(overrides: Overrides) -> None:
            serving.apply(overrides)

        overrides.follow(apply)
        cutovers = CutoverController(writer, overrides, lambda: reloader.latest)
        operator = Operator(
            writer, overrides, cutovers, reloader, lambda: 1, lambda: _stopping(stop)
        )
        async with _admin(settings, operator) as admin:
            (listener,) = _listen(settings.host, settings.port, 1)
            url = _url(listener)
            await serving.serve(
                [listener],
                stop,
                settings.grace,
                lambda: log.event("listening", url=url, admin=admin),
            )
    log.event("stopped")


async def work(settings: Settings) -> None:
    """Serve as one of several workers, until told to stop or left alone; raises ConfigError."""
    stop = _stop_on_signals(say=False)
    worker = Worker(os.environ)
    reloader = _reloader(settings, interval=None)
    serving = Serving(reloader, await worker.join(), worker.deliver)
    listening = asyncio.create_task(worker.listen(serving.apply, serving.stand_in))
    listening.add_done_callback(lambda _: stop.set())
    await serving.serve(worker.listeners, stop, settings.grace, worker.report_ready)
    listening.cancel()
    await worker.leave()


async def supervise(settings: Settings, count: int) -> None:
    """Have workers serve until told to stop, then let them finish within the grace.

    Raises:
        ConfigError: the rules cannot be used.
        StateError: the state cannot.
        ListenError: a port is taken, or an address is not ours.
    """
    stop = _stop_on_signals()
    reloader = _reloader(settings)

    def unready() -> str | None:
        return _stopping(stop) or (None if workers.ready else "no worker is ready")

    async with _keeping(reloader.latest.state) as writer:
        overrides = ActiveOverrides(writer)
        cutovers = CutoverController(writer, overrides, lambda: reloader.latest)
        operator = Operator(writer, overrides, cutovers, reloader, lambda: workers.ready, unready)
        async with _admin(settings, operator) as admin:
            listeners = _listen(settings.host, settings.port, count)
            workers = Supervisor(listeners, os.environ, writer.totals.absorb, overrides.in_force)
            overrides.follow(workers.apply)
            await workers.start()
            log.event("listening", url=_url(listeners[0]), admin=admin, workers=count)

            following = asyncio.create_task(_pass_on(reloader, workers))
            await stop.wait()
            following.cancel()
            await workers.stop(settings.grace)
    log.event("stopped")


async def _pass_on(reloader: Reloader, workers: Supervisor) -> None:
    async for _ in reloader.changes():
        workers.reload()


def _reloader(settings: Settings, interval: float | None = 0.5) -> Reloader:
    reloader = Reloader(settings.config, os.environ, interval)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reloader.tell)
    return reloader


def _stop_on_signals(*, say: bool = True) -> asyncio.Event:
    stop = asyncio.Event()

    def told() -> None:
        if say and not stop.is_set():
            log.event("stopping")
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told)
    return stop


def _stopping(stop: asyncio.Event) -> str | None:
    return "the gateway is stopping" if stop.is_set() else None


@asynccontextmanager
async def _keeping(state: str | None) -> AsyncIterator[StateWriter]:
    store = None
    if state is not None:
        # SQLite is a megabyte that neither workers nor a gateway without state need.
        from gateway.state.sqlite_store import SqliteStore

        store = SqliteStore(Path(state))
    async with StateWriter(store).keeping() as writer:
        yield writer


@asynccontextmanager
async def _admin(settings: Settings, operator: Operator) -> AsyncIterator[str]:
    runner = web.AppRunner(admin_app(operator), access_log=None)
    await runner.setup()
    (listener,) = _listen(settings.admin_host, settings.admin_port, 1)
    await web.SockSite(runner, listener).start()
    moving = asyncio.create_task(operator.cutovers.run())
    try:
        yield _url(listener)
    finally:
        moving.cancel()
        await runner.cleanup()


def _listen(host: str, port: int, count: int) -> list[socket.socket]:
    try:
        return listening_sockets(host, port, count)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ListenError(f"cannot listen on {host}:{port}: {reason}") from None


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
